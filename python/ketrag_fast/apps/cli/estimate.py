"""`ketrag estimate SOURCE...`: predict what a build takes, before anything is spent."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.base.config import Settings, parse
from ketrag_fast.errors import ConfigError, IndexLocked, ReadOnly


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "estimate",
        parents=[shared],
        description="Predict what a build takes: read the documents, build a sample in a temporary "
        "folder, and extrapolate. A local model is timed on a few chunks; an endpoint is "
        "called only with --spend. With -i DIR, earlier builds of DIR are used, and its next "
        "build report shows the estimate.",
        examples=(
            "ketrag estimate docs/",
            "ketrag estimate docs/ --llm openai:MODEL@URL --prices prices.toml",
            "ketrag estimate docs/ -i docs-index --system ket-rag",
        ),
    )
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="file, folder, glob or .jsonl data set")
    parser.add_argument(
        "--sample", metavar="N", default="2000", help="documents in the sample (default 2000)"
    )
    parser.add_argument("--calls", metavar="N", default="3", help="LLM calls to time (default 3)")
    parser.add_argument(
        "--spend", action="store_true", help="allow calls of an endpoint, which may cost money"
    )
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
    from ketrag_fast.lab.cost.estimate import render
    from ketrag_fast.lab.cost.history import save_estimate
    from ketrag_fast.lab.cost.predicting import Wish, predict
    from ketrag_fast.lab.cost.prices import read_prices

    path, origin = options.index_path(args)
    wish = Wish(
        sample=_number("--sample", args.sample),
        calls=_number("--calls", args.calls),
        spend=args.spend,
        index=path,
        prices=read_prices(args.prices),
        progress=options.progress(args),
    )
    estimate = predict(args.sources, _settings(args), wish)
    kept = False
    try:
        kept = save_estimate(path, estimate.to_json(), create=origin != "default")
    except (IndexLocked, ReadOnly) as error:
        output.warn(f"the estimate was not stored: {error.message}")
    if args.json:
        output.write_json(estimate.to_json())
    else:
        output.write(render(estimate))
    if not args.quiet:
        if not estimate.documents and not estimate.failures:
            output.warn(f"no document found in {', '.join(args.sources)}: check the path")
        if estimate.failures:
            output.warn(f"{estimate.failures:,} documents cannot be read; `ketrag index` lists them")
        if kept:
            output.say(f"stored in {path}: the build report will compare it with the build")
    return 0


def _settings(args: argparse.Namespace) -> Settings:
    return options.build_settings_of(args)


def _number(flag: str, text: str) -> int:
    try:
        value = Settings(top=parse("top", text)).top
    except ConfigError:
        value = None
    if not value:
        raise ConfigError(f"{flag} {text!r} is not a whole number from 1 up")
    return value
