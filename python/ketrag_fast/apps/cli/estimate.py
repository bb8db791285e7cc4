"""`ketrag estimate SOURCE...`: predict what a build takes, before anything is spent."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import options, output

if TYPE_CHECKING:
    from ketrag_fast.eval.estimate import Estimate


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "estimate",
        parents=[shared],
        description="Predict what a build takes: read documents for some seconds, build a sample of them in "
        "a temporary folder, and multiply. No LLM and no endpoint is called; an embedding model on this "
        "machine is timed. With -i DIR, the settings and documents of that index count.",
        examples=(
            "ketrag estimate docs/",
            "ketrag estimate docs/ --llm openai:MODEL@URL --prices prices.toml",
            "ketrag estimate docs/ -i docs-index --system ket-rag",
        ),
    )
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="file, folder, glob or .jsonl data set")
    parser.add_argument("--prices", metavar="FILE", help="price table (default ./prices.toml if it exists)")
    options.topic(
        parser,
        "what to build",
        "build",
        shown=("system", "modes", "embedder", "llm", "chunk_tokens", "core_ratio"),
    )
    options.topic(parser, "extraction by a language model (--llm)", "reading", but=("llm",))
    options.model(parser)
    parser.set_defaults(run=run, go_on="run the same command again; nothing was built")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from ketrag_fast.eval.estimate import estimate
    from ketrag_fast.eval.prices import read_prices

    found = estimate(
        args.sources,
        options.build_settings_of(args),
        index=options.index_path(args)[0],
        prices=read_prices(args.prices),
        progress=options.progress(args),
    )
    if args.json:
        output.write_json(found.to_json())
    else:
        output.write(_render(found))
    if not args.quiet:
        if not found.documents and not found.failures:
            output.warn(f"no document found in {', '.join(args.sources)}: check the path")
        if found.failures:
            output.warn(f"{found.failures:,} documents cannot be read; `ketrag index` lists them")
    return 0


def _render(found: Estimate) -> str:
    """Return the estimate as text: a number for each line, then the notes."""
    from ketrag_fast.eval.prices import usd_text

    longest = sorted(found.stages.items(), key=lambda part: -part[1])[:4]
    names = ("documents", "words", "chunks", "calls", "tokens_in", "tokens_out", "embedding_tokens")
    labels = {"calls": "calls of the LLM", "tokens_in": "tokens in", "tokens_out": "tokens out"}
    labels["embedding_tokens"] = "tokens embedded"
    rows = [
        *((labels.get(name, name), f"{getattr(found, name):,}") for name in names),
        ("USD", usd_text(found.usd.total)),
        ("time on this machine", output.time_text(found.seconds)),
        *((f"  {name}", output.time_text(seconds)) for name, seconds in longest if seconds >= 0.05),
        ("disk", output.size_text(found.disk)),
        ("per million words", output.time_text(found.seconds_per_million_words)),
        ("", output.size_text(found.bytes_per_million_words)),
    ]
    wide = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join([*(f"{name:<{wide[0]}}  {value:>{wide[1]}}" for name, value in rows), *found.notes])
