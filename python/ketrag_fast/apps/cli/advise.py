"""`ketrag bench advise`: recommend a mode, a budget and a size of chunks for an index, without labels."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ConfigError


def add(kinds: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the kind of `ketrag bench`."""
    parser = kinds.add_parser(
        "advise",
        parents=[shared],
        help="recommend a mode, a budget and a chunk size for an index, without labels",
        description="Recommend a mode, a budget and a chunk size for the documents of an index, and say "
        "whether they need hops and whether an embedding model would help. Questions are made from the "
        "documents by rules: sentences are cut out and searched for in a temporary index. No language model "
        "is called.",
        examples=(
            "ketrag bench advise -i docs-index",
            "ketrag bench advise -i docs-index --html advice.html",
            "ketrag bench advise -i docs-index --embedder native:all-MiniLM-L6-v2",
        ),
    )
    parser.add_argument(
        "--questions", metavar="N", default="400", help="questions of each kind (default 400)"
    )
    parser.add_argument("--html", metavar="FILE", help="write the advice as a web page with plots")
    options.setting(parser, "embedder", "chunk_tokens")
    options.model(parser)
    parser.set_defaults(run=run, go_on="run the same command again; the index was not changed")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from ketrag_fast.lab.advice.findings import advise
    from ketrag_fast.lab.advice.report import page, render
    from ketrag_fast.lab.advice.trial import run_trial

    if args.html is not None:
        output.has_place(Path(args.html))
    given = options.flags(args)
    result = advise(
        run_trial(
            options.index_path(args)[0],
            count=_count(args.questions),
            given=Settings(**{name: given[name] for name in ("embedder", "chunk_tokens") if name in given}),
            progress=options.progress(args),
            tell=(lambda _: None) if args.quiet else output.say,
        )
    )
    if args.html is not None:
        output.write_page(Path(args.html), page(result))
    if args.json:
        output.write_json({"schema": "ketrag/advice/1", **result.to_json()})
    else:
        output.write(render(result))
    return 0


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text) <= 10_000:
        return int(text)
    raise ConfigError(f"--questions must be a whole number from 1 to 10,000, got {text!r}")
