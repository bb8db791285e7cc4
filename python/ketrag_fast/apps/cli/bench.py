"""`ketrag bench`: compare builds, systems or settings on the same documents and queries."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.base.config import Settings, parse
from ketrag_fast.errors import ConfigError, DocumentError, ReadOnly

if TYPE_CHECKING:
    from ketrag_fast.eval.comparison.configurations import Configuration
    from ketrag_fast.eval.comparison.report import Report
    from ketrag_fast.eval.comparison.running import Answers

_BUDGETS = "12000,6000,3000"
_SYSTEMS = "default,ket-rag,g2cons,noderag,cg-rag"
_ALL_FAILED = 1
_EXAMPLES = {
    "builds": (
        'ketrag bench builds dataset/ --build "plain: seed=42" --build "rules: llm=heuristic"',
        "ketrag bench builds dataset/ --builds builds.toml",
        "ketrag bench builds dataset/ --builds builds.toml --shared --keep indexes",
    ),
    "systems": (
        "ketrag bench systems dataset/",
        "ketrag bench systems dataset/ --systems walk,noderag,cg-rag --budget 2000,1000",
        "ketrag bench systems dataset/ --systems all --documents docs/ --answer-with openai:MODEL@URL",
    ),
    "sweep": (
        "ketrag bench sweep dataset/ --vary core_ratio=0.2,0.8 --mode walk",
        "ketrag bench sweep dataset/ --vary knn_k=1,2,4 --vary budget=500,2000",
        "ketrag bench sweep dataset/ --vary core_ratio=0.2,0.8 --vary knn_k=1,4 --grid",
    ),
}


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "bench",
        description="Run the same documents and queries through several configurations and print one "
        "report: the cost of each build, the size of its graph, its scores, and where they "
        "differ.",
        examples=(
            "ketrag bench systems dataset/",
            'ketrag bench builds dataset/ --build "plain: seed=42" --build "rules: llm=heuristic"',
        ),
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    builds = _kind(kinds, shared, "builds", "compare configurations from a file or from flags")
    builds.add_argument("--builds", metavar="FILE", help="TOML file with a table [[build]] per configuration")
    builds.add_argument(
        "--build",
        metavar="ROW",
        action="append",
        default=[],
        help="NAME: setting=value, setting=value; repeatable",
    )
    builds.add_argument(
        "--shared",
        action="store_true",
        help="compute vectors and LLM replies once for all builds",
    )
    systems = _kind(kinds, shared, "systems", "compare the presets of published systems")
    systems.add_argument(
        "--systems", metavar="LIST", default=_SYSTEMS, help=f"presets, or all (default {_SYSTEMS})"
    )
    systems.add_argument(
        "--apart", action="store_true", help="share nothing between builds, and measure each in full"
    )
    sweep = _kind(kinds, shared, "sweep", "compare values of settings; finished stages are reused")
    sweep.add_argument(
        "--vary",
        metavar="SETTING=VALUES",
        action="append",
        default=[],
        help="values of a setting, such as core_ratio=0.1,0.2,0.4; repeatable",
    )
    sweep.add_argument(
        "--grid", action="store_true", help="run every combination instead of varying one setting at a time"
    )
    parser.set_defaults(json=False)


def _kind(kinds: Any, shared: argparse.ArgumentParser, name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = kinds.add_parser(
        name,
        parents=[shared],
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        examples=_EXAMPLES[name],
    )
    parser.add_argument("dataset", metavar="DATASET", help="folder or file of the data set")
    parser.add_argument(
        "--documents",
        metavar="SOURCE",
        action="append",
        help="index these instead of the passages of the data set",
    )
    parser.add_argument("--mode", metavar="LIST", help="modes (default: those of each configuration)")
    parser.add_argument(
        "--budget", metavar="LIST", default=_BUDGETS, help=f"budgets in tokens (default {_BUDGETS})"
    )
    parser.add_argument(
        "--answer-with", metavar="SPEC", help="LLM that answers every question, for EM and F1"
    )
    parser.add_argument(
        "--keep", metavar="FOLDER", help="keep the indexes in FOLDER, so that a later run continues from them"
    )
    parser.add_argument("--prices", metavar="FILE", help="price table (default ./prices.toml if it exists)")
    every = "settings of all configurations, unless they set another value"
    options.topic(
        parser,
        every,
        *("build", "query", "writing"),
        shown=("embedder", "llm", "chunk_tokens", "top"),
        but=("mode", "budget"),
    )
    options.topic(parser, "extraction by a language model (--llm)", "reading", but=("llm",))
    options.model(parser)
    go_on = "with --keep FOLDER the same command continues from finished builds"
    parser.set_defaults(run=run, go_on=go_on)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from ketrag_fast.eval.comparison import configurations as sweeps
    from ketrag_fast.eval.comparison.configurations import (
        check_configurations,
        from_file,
        from_flag,
        from_systems,
    )
    from ketrag_fast.eval.comparison.running import parse_systems

    common = options.build_settings_of(args)
    if args.kind == "sweep":
        configurations = sweeps.points([sweeps.parse_vary(text) for text in args.vary], grid=args.grid)
    elif args.kind == "systems":
        configurations = from_systems(parse_systems(args.systems))
    else:
        listed = from_file(args.builds) if args.builds is not None else []
        configurations = check_configurations([*listed, *(from_flag(text) for text in args.build)])
    report = _measure(args, common, configurations)
    if args.json:
        output.write_json(report.to_json())
    else:
        from ketrag_fast.eval.comparison.report import render

        output.write(render(report))
    if not report.good:
        return _ALL_FAILED
    lost = len(report.good) < len(report.outcomes) or any(o.failures for o in report.good)
    return output.PARTIAL if lost else 0


def _measure(args: argparse.Namespace, common: Settings, configurations: Sequence[Configuration]) -> Report:
    from ketrag_fast.eval import load_dataset
    from ketrag_fast.eval.comparison.running import Bench, report_of
    from ketrag_fast.eval.prices import read_prices

    prices = read_prices(args.prices)
    budgets = _list("budget", args.budget)
    modes = _list("mode", args.mode) if args.mode else []
    if common.on_error == "stop":
        raise ConfigError("on_error = stop is not supported here: a comparison skips unreadable documents")
    options.require_data_set(args.dataset)
    dataset = load_dataset(args.dataset)
    sources = list(args.documents or dataset.sources)
    if not sources:
        raise DocumentError(f"{args.dataset} has no passages", hint="name the documents: --documents SOURCE")
    if not args.quiet:
        for warning in dataset.warnings:
            output.warn(warning)
    apart = not args.shared if args.kind == "builds" else args.apart if args.kind == "systems" else False
    with _folder(args.keep) as folder:
        bench = Bench(
            dataset,
            sources,
            folder,
            common,
            budgets,
            modes,
            apart=apart,
            prices=prices,
            progress=options.progress(args),
            answers=_answers(args.answer_with),
            tell=(lambda _: None) if args.quiet else output.say,
        )
        return report_of(args.kind, bench, configurations)


def _answers(spec: str | None) -> Answers | None:
    """Return the function that opens the answering model; None without --answer-with."""
    if spec is None:
        return None
    from ketrag_fast.eval.comparison.running import answers_by

    return answers_by(spec)


def _list(name: str, text: str) -> list[Any]:
    found = []
    for part in text.split(","):
        try:
            value = Settings(**{name: parse(name, part)}).value(name)
        except ConfigError as error:
            raise ConfigError(f"--{name} {text!r}: {error.message}", hint=error.hint) from None
        if value not in found:
            found.append(value)
    return found


@contextmanager
def _folder(keep: str | None) -> Iterator[Path]:
    if keep is not None:
        folder = Path(keep)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ReadOnly(f"{folder}: cannot be created: {error.strerror or error}") from None
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="ketrag-", ignore_cleanup_errors=True) as name:
        yield Path(name)
