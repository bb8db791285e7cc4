"""`ketrag bench train`: train a reranker or a model that quotes answers, and score it on other questions."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.apps.cli import options, output
from ketrag_fast.errors import ConfigError

if TYPE_CHECKING:
    from ketrag_fast.lab.answers.training import AnswersTraining
    from ketrag_fast.lab.reranker.training import RerankerTraining

TRAINED: Final = ("reranker", "answers")
"""The models that the command can train."""


def add(kinds: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the kind of `ketrag bench`."""
    parser = kinds.add_parser(
        "train",
        parents=[shared],
        help="train a reranker for mode walk, or a model that quotes answers",
        description="reranker: train a small network on judged questions, which reorders what mode walk "
        "finds, and cross-validate it: by data set if several are given, otherwise in five parts. "
        "answers: train a model that quotes answers on questions with answers, with torch. No language model "
        "is called. Run it again after an interruption to continue.",
        examples=(
            "ketrag bench train reranker questions/ --out my-reranker",
            "ketrag bench train answers one/ two/ --judge three/ --out my-answers",
            "ketrag ask QUERY --answer-llm native:my-answers",
        ),
    )
    parser.add_argument("what", metavar="{reranker,answers}", choices=TRAINED, help="what is trained")
    parser.add_argument("datasets", metavar="DATASET", nargs="+", help="folder or file with judged questions")
    parser.add_argument(
        "--out", metavar="FOLDER", help="folder for the weights (default: reranker or answers)"
    )
    parser.add_argument(
        "--cut", metavar="N", default="300", help="reranker: sentences cut out of each data set (default 300)"
    )
    parser.add_argument(
        "--only-named",
        action="store_true",
        help="reranker: change nothing unless the query names the subject of a candidate",
    )
    parser.add_argument(
        "--base", metavar="MODEL", help="answers: model to start from (default all-MiniLM-L6-v2)"
    )
    parser.add_argument(
        "--judge",
        metavar="DATASET",
        action="append",
        default=[],
        help="answers: data set on which the result is scored; repeatable",
    )
    parser.add_argument(
        "--epochs", metavar="N", default="2", help="answers: passes over the questions (default 2)"
    )
    options.setting(parser, "embedder", "chunk_tokens", "seed")
    options.model(parser)
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    settings = options.build_settings_of(args)
    tell: Callable[[str], None] = (lambda _: None) if args.quiet else output.say
    out = Path(args.out or args.what)
    for dataset in (*args.datasets, *args.judge):
        options.require_data_set(dataset)
    result: RerankerTraining | AnswersTraining
    if args.what == "answers":
        from ketrag_fast.lab.answers.training import BASE, train_answers

        result = train_answers(
            args.datasets,
            out,
            settings=settings,
            base=args.base or BASE,
            judged=args.judge,
            epochs=_count("--epochs", args.epochs, least=1, most=100),
            seed=settings.seed,
            progress=options.progress(args),
            tell=tell,
        )
        text = "" if args.json else _render_answers(result)
    else:
        from ketrag_fast.lab.reranker.training import train_reranker

        if args.base or args.judge:
            raise ConfigError("--base and --judge are for: ketrag bench train answers")
        result = train_reranker(
            args.datasets,
            out,
            settings=settings,
            probes=_count("--cut", args.cut, most=10_000),
            only_named=args.only_named,
            seed=settings.seed,
            progress=options.progress(args),
            tell=tell,
        )
        text = "" if args.json else _render(result)
    if args.json:
        output.write_json(result.to_json())
    else:
        output.write(text)
    return 0


def _render_answers(result: AnswersTraining) -> str:
    lines = []
    for judged in result.judgements:
        lines.append(f"{judged.dataset}, {judged.questions:,} questions, {judged.answered:,} answered")
        lines.append(f"{'':14} {'exact match':>11} {'95 %':>14} {'F1':>6} {'95 %':>14}")
        lines += [
            f"{score.name:14} {100 * score.exact:11.1f} {_interval(score.exact_ci95):>14} "
            f"{100 * score.f1:6.1f} {_interval(score.f1_ci95):>14}"
            for score in judged.scores
        ]
        lines.append("")
    lines.append(f"{result.folder}: trained on {result.questions:,} questions, {result.steps:,} steps")
    lines.append(f"use it: ketrag ask QUERY --answer-llm native:{result.folder}")
    return "\n".join(lines)


def _interval(bounds: tuple[float, float]) -> str:
    return f"{100 * bounds[0]:.1f} to {100 * bounds[1]:.1f}"


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


def _count(flag: str, text: str, *, least: int = 0, most: int) -> int:
    if text.isascii() and text.isdigit() and least <= int(text) <= most:
        return int(text)
    raise ConfigError(f"{flag} must be a whole number from {least} to {most:,}, got {text!r}")
