"""`ketrag bench train reranker`: train on judged questions, and report what it gains on others."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.errors import ConfigError

if TYPE_CHECKING:
    from ketrag_fast.lab.reranker.training import RerankerTraining

_WHAT = ("reranker",)


def add(kinds: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the kind of `ketrag bench`."""
    parser = kinds.add_parser(
        "train",
        parents=[shared],
        help="train a reranker for mode walk on judged questions",
        description="Train a small network on judged questions, which reorders what mode walk finds, and "
        "cross-validate it: by data set if several are given, otherwise in five parts of the questions. No "
        "language model is called and torch is not needed. Run it again after an interruption to continue.",
        examples=(
            "ketrag bench train reranker questions/ --out my-reranker",
            "ketrag bench train reranker one/ two/ three/ --embedder native:all-MiniLM-L6-v2",
            "ketrag retrieve QUERY --mode walk --rerank walk-features:my-reranker",
        ),
    )
    parser.add_argument("what", metavar="reranker", choices=_WHAT, help="what is trained")
    parser.add_argument("datasets", metavar="DATASET", nargs="+", help="folder or file with judged questions")
    parser.add_argument(
        "--out", metavar="FOLDER", default="reranker", help="folder for the weights (default reranker)"
    )
    parser.add_argument(
        "--cut", metavar="N", default="300", help="sentences cut out of each data set (default 300)"
    )
    options.setting(parser, "embedder", "chunk_tokens", "seed")
    options.model(parser)
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from ketrag_fast.lab.reranker.training import train_reranker

    settings = options.build_settings_of(args)
    result = train_reranker(
        args.datasets,
        Path(args.out),
        settings=settings,
        probes=_count(args.cut),
        seed=settings.seed,
        progress=options.progress(args),
        tell=(lambda _: None) if args.quiet else output.say,
    )
    if args.json:
        output.write_json(result.to_json())
    else:
        output.write(_render(result))
    return 0


def _render(result: RerankerTraining) -> str:
    lines = [f"{'data set':20} {'of':13} {'measure':15} {'walk':>6} {'reranked':>8}  difference (95 %)"]
    for row in result.validation.rows:
        d = row.difference
        low, high = (100 * x for x in d.ci95)
        lines.append(
            f"{row.dataset[:20]:20} {'cut sentences' if row.is_probe else 'questions':13} {row.measure:15} "
            f"{100 * d.a:6.1f} {100 * d.b:8.1f}  {100 * d.difference:+.1f} ({low:+.1f} to {high:+.1f})"
        )
    verdict = (
        "better than the walk on questions that it was not trained on"
        if result.validation.is_better
        else "not better than the walk beyond chance: do not use it"
    )
    lines += [
        "",
        f"cross-validated, strength {result.validation.strength:g} of the walk's score: {verdict}",
        f"{result.folder}: trained on all {result.questions:,} questions",
    ]
    if result.validation.is_better:
        lines.append(f"use it: ketrag retrieve QUERY --mode walk --rerank walk-features:{result.folder}")
    return "\n".join(lines)


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) <= 10_000:
        return int(text)
    raise ConfigError(f"--cut must be a whole number from 0 to 10,000, got {text!r}")
