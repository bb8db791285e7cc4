"""`ketrag merge DIR...`: one index of several."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import index, options, output
from ketrag_fast.apps.cli.terminal_text import inline


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "merge",
        parents=[shared],
        description="Makes one index (-i OUT) of several: the same, to the byte, as one build over all their "
        "documents, in whatever order they are named. No source is read, no text is embedded again and no "
        "language model is asked. The indexes must have been built with the same settings and models.",
    )
    parser.add_argument("parts", nargs="+", metavar="DIR", help="folder of an index")
    parser.add_argument(
        "--prefer",
        choices=("first", "last"),
        help="where they hold different documents under one id, whose counts: that of the index named first "
        "or last (else it is an error that lists them)",
    )
    options.setting(parser, "embedder")
    options.topic(parser, "how it runs", "running")
    options.model(parser)
    parser.set_defaults(
        run=run, go_on="what is finished is kept: run the same command again and it goes on from there"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    path, _ = options.index_path(args)
    from ketrag_fast.index import Index

    with Index.merge(
        args.parts,
        path,
        prefer=args.prefer,
        settings=options.build_settings_of(args),
        progress=options.progress(args),
    ) as merged:
        report = index.report_of(merged)
    if args.json:
        output.write_json({**report.to_json(), "index": str(path), "parts": list(args.parts)})
    else:
        output.write(index.summary(report, inline(path)))
    if not args.quiet:
        index.tell(args, report)
    return output.PARTIAL if report.failures else 0
