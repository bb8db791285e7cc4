"""`ketrag eval`: score retrieval and answers on a data set; compare two runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command_parser import mark_rare
from ketrag_fast.apps.cli.index import report_of
from ketrag_fast.base.config import Settings, catalogue, parse
from ketrag_fast.errors import ConfigError, DocumentError

if TYPE_CHECKING:
    from ketrag_fast.eval import Collected, ComparedRun, DataSet, Run
    from ketrag_fast.eval.answers import ModelAnswers
    from ketrag_fast.eval.judge import Judge
    from ketrag_fast.eval.run import Answerer
    from ketrag_fast.index import Index

_BUDGETS = "12000,6000,3000"


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "eval",
        parents=[shared],
        description="Score a data set: one row per mode and budget. DATASET is a folder in BEIR layout "
        "(corpus.jsonl, queries.jsonl, qrels.tsv), or a file of MuSiQue, HotpotQA or "
        "2WikiMultihopQA as published. Without -i it is indexed in a temporary folder.",
        examples=(
            "ketrag eval dataset/ --mode bm25,walk --budget 6000,3000",
            "ketrag eval dataset/ -i docs-index --compare text walk",
            "ketrag eval --compare runs/a:walk runs/b:walk",
        ),
    )
    parser.add_argument("dataset", metavar="DATASET", nargs="?", help="folder or file of the data set")
    parser.add_argument(
        "--mode", metavar="LIST", help="modes, comma-separated (default: all that need no language model)"
    )
    parser.add_argument("--budget", metavar="LIST", help=f"budgets in tokens (default {_BUDGETS})")
    parser.add_argument("--save", metavar="FOLDER", help="write all results, and the runs in TREC format")
    parser.add_argument(
        "--compare",
        nargs=2,
        metavar=("A", "B"),
        help="two modes, or two saved runs (FOLDER or FOLDER:MODE): paired tests",
    )
    parser.add_argument(
        "--answers",
        nargs="?",
        const="",
        metavar="FILE",
        help="score answers by EM and F1: those in FILE (JSONL), or those of --llm",
    )
    parser.add_argument("--judge", metavar="SPEC", help="with --compare: LLM that picks the better answer")
    mark_rare(
        parser.add_argument(
            "--substring", action="store_true", help="count an answer inside a longer word as covered"
        ),
        parser.add_argument(
            "--explain",
            action="store_true",
            help="store why each passage was retrieved (needs --save or --json)",
        ),
    )
    options.topic(parser, "retrieval", "query", shown=("top", "filter"), but=("mode", "budget", "deadline"))
    options.topic(
        parser, "what to build without -i", "build", shown=("system", "embedder", "llm", "chunk_tokens")
    )
    options.topic(parser, "extraction by a language model (--llm)", "reading", but=("llm",))
    options.model(parser)
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.dataset is None:
        return _compare_saved(args)
    if args.judge is not None and args.compare is None:
        raise ConfigError("--judge needs two sides to compare", hint="name them: --compare A B")
    if args.explain and (args.compare is not None or not args.json) and args.save is None:
        raise ConfigError("--explain has nowhere to store its reasons", hint="add --save FOLDER or --json")
    modes = _modes(args)
    budgets = _budgets(args.budget or _BUDGETS)
    settings = options.build_settings_of(args)
    from ketrag_fast.eval import collect, describe, load_dataset, render, save

    options.require_data_set(args.dataset)
    dataset = load_dataset(args.dataset)
    answers, warnings = _answers(args, dataset)
    asked: ModelAnswers | None = None
    if not args.quiet:
        for warning in (*dataset.warnings, *warnings):
            output.warn(warning)
    with _index(args, dataset) as index:
        if args.mode is None and args.compare is None:
            modes = list(index.modes)
        if args.answers == "":
            from ketrag_fast.eval.answers import ModelAnswers

            asked = answers = ModelAnswers(index, options.flags(args).get("llm"), top=settings.top)
        found = collect(
            index,
            dataset,
            modes,
            budgets,
            top=settings.top,
            substring=args.substring,
            answer=answers,
            explain=args.explain,
        )
        if args.save is not None:
            more = {"substring": args.substring, "top": settings.top}
            if asked is not None:
                more["answers"] = asked.about()
            save(Path(args.save), describe(dataset, index.stats(), **more), dataset, found)
    if asked is not None and asked.failed and not args.quiet:
        output.warn(f"the model gave no answer to {asked.failed:,} questions: EM and F1 leave them out")
    if args.compare is not None:
        _print_comparisons(args, _evaluate_modes(args, dataset, found))
        return 0
    rows = found.rows()
    absent = _absent(args, dataset)
    if args.json:
        output.write_json(
            {
                "schema": "ketrag/eval/1",
                "dataset": str(args.dataset),
                "questions": len(dataset.questions),
                "rows": [row.as_dict() for row in rows],
                "not_run": absent,
                **({"results": [result.to_json() for result in found.results]} if args.explain else {}),
            }
        )
    else:
        output.write(render(rows, absent))
    return 0


# ---------------------------------------------------------------- arguments


def _modes(args: argparse.Namespace) -> list[str]:
    given = args.mode or (",".join(args.compare) if args.compare else "auto")
    modes = [Settings(mode=parse("mode", text)).mode for text in given.split(",")]
    if args.compare:
        lacking = [mode for mode in args.compare if mode not in modes]
        if lacking:
            raise ConfigError(
                f"--compare {lacking[0]}: not one of the modes {', '.join(modes)}",
                hint="with a DATASET, --compare names two modes; without one, two saved runs",
            )
    return list(dict.fromkeys(modes))


def _budgets(text: str) -> list[int]:
    found = []
    for part in text.split(","):
        try:
            found.append(Settings(budget=parse("budget", part)).budget)
        except ConfigError as error:
            raise ConfigError(
                f"--budget {text!r}: {error.message}", hint="a list of whole numbers, such as 12000,6000,3000"
            ) from None
    return list(dict.fromkeys(found))


def _answers(args: argparse.Namespace, dataset: DataSet) -> tuple[Answerer | None, tuple[str, ...]]:
    if not args.answers:  # with an empty value a model writes them later, from the open index
        return None, ()
    from ketrag_fast.eval import read_answers

    answers = read_answers(Path(args.answers), dataset)
    return answers, answers.warnings


def _absent(args: argparse.Namespace, dataset: DataSet) -> dict[str, str]:
    """Return the scores that were not computed, with the reason."""
    absent: dict[str, str] = {}
    if not any(question.answers for question in dataset.questions):
        reason = "the data set has no gold answers"
        return dict.fromkeys(("em", "f1", "win_rate"), reason)
    if args.answers is None:
        absent |= dict.fromkeys(("em", "f1"), "no answers to score (--answers FILE, or --answers --llm SPEC)")
    absent["win_rate"] = "needs two sides and a judge (--compare A B --answers FILE --judge SPEC)"
    return absent


# ---------------------------------------------------------------- two side by side


def _evaluate_modes(
    args: argparse.Namespace, dataset: DataSet, found: Collected
) -> Iterator[tuple[int, ComparedRun, ComparedRun]]:
    from ketrag_fast.eval import ComparedRun

    for mode in args.compare:
        if mode in found.skipped:
            raise ConfigError(f"--compare {mode}: not run: {found.skipped[mode]}")
    for budget in found.budgets:
        one, other = (ComparedRun(mode, dataset.questions, found.of(mode, budget)) for mode in args.compare)
        yield budget, one, other


def _compare_saved(args: argparse.Namespace) -> int:
    if args.compare is None:
        raise ConfigError("eval needs a DATASET, or two saved runs: --compare A B")
    from ketrag_fast.eval import ComparedRun

    (a, only_a), (b, only_b) = (_load_saved_run(name) for name in args.compare)
    if only_a is None and only_b is None:
        pairs = [(pair, pair) for pair in a.pairs if pair in b.pairs]
    else:
        modes_a, modes_b = (
            [only] if only is not None else list(dict.fromkeys(mode for mode, _ in run.pairs))
            for run, only in ((a, only_a), (b, only_b))
        )
        if len(modes_a) != 1 or len(modes_b) != 1:
            raise ConfigError("--compare: name the mode of both runs, FOLDER:MODE", hint="or of neither")
        pairs = [
            ((modes_a[0], budget), (modes_b[0], budget))
            for mode, budget in a.pairs
            if mode == modes_a[0] and (modes_b[0], budget) in b.pairs
        ]
    wanted = _budgets(args.budget) if args.budget else None
    pairs = [pair for pair in pairs if wanted is None or pair[0][1] in wanted]
    if not pairs:
        raise ConfigError(
            f"{args.compare[0]} and {args.compare[1]} have no mode and budget in common",
            hint="name a mode of each: FOLDER:MODE",
        )

    def sides() -> Iterator[tuple[int, ComparedRun, ComparedRun]]:
        for (mode_a, budget), (mode_b, _) in pairs:
            results_a = [r for r in a.results if (r.mode, r.budget) == (mode_a, budget)]
            results_b = [r for r in b.results if (r.mode, r.budget) == (mode_b, budget)]
            yield (
                budget,
                ComparedRun(f"{a.folder}:{mode_a}", a.questions, results_a),
                ComparedRun(f"{b.folder}:{mode_b}", b.questions, results_b),
            )

    _print_comparisons(args, sides())
    return 0


def _load_saved_run(name: str) -> tuple[Run, str | None]:
    """Return a saved run, and the mode of `FOLDER:MODE` or None."""
    from ketrag_fast.eval import load

    folder, _, mode = name.rpartition(":")
    if not folder or Path(name).is_dir():
        return load(Path(name)), None
    run = load(Path(folder))
    modes = list(dict.fromkeys(own for own, _ in run.pairs))
    if mode not in modes:
        raise ConfigError(f"{folder} has no mode {mode!r}", hint=f"it has {', '.join(modes)}")
    return run, mode


def _print_comparisons(
    args: argparse.Namespace, sides: Iterator[tuple[int, ComparedRun, ComparedRun]]
) -> None:
    from ketrag_fast.eval import compare, render_comparison

    rows: list[dict[str, Any]] = []
    with _judge(args) as judge:
        for budget, a, b in sides:
            comparison = compare(a, b)
            wins = None if judge is None else judge.win_rate(a, b)
            if args.json:
                rate = None if wins is None else wins.to_json()
                rows.append({"budget": budget, **comparison.to_json(), "win_rate": rate})
                continue
            output.write(f"{chr(10) if rows else ''}budget {budget}\n{render_comparison(comparison)}")
            rows.append({})
            if judge is not None:
                from ketrag_fast.eval.judge import render_win_rate

                none = "win rate: not run: the sides have no answers to one question in common"
                output.write(none if wins is None else render_win_rate(wins, b.name))
    if args.json:
        output.write_json({"schema": "ketrag/eval-comparison/1", "comparisons": rows})


@contextmanager
def _judge(args: argparse.Namespace) -> Iterator[Judge | None]:
    if args.judge is None:
        yield None
        return
    from ketrag_fast.eval.judge import Judge, judge_options

    with Judge(args.judge, judge_options(options.query_settings_of(args, strict=False))) as judge:
        yield judge


# ---------------------------------------------------------------- the index


@contextmanager
def _index(args: argparse.Namespace, dataset: DataSet) -> Iterator[Index]:
    from ketrag_fast.index import Index

    if args.index is not None:
        # The embedder may be in another folder than when the index was built; opening the index checks it.
        built = {name for name, spec in catalogue().items() if spec.concerns == "build"}
        lost = next((name for name in options.flags(args) if name in built - {"embedder", "llm"}), None)
        if lost is not None:
            raise ConfigError(f"{lost} changes the build, but the index of -i is already built")
        settings = options.query_settings_of(args)
        with Index.open(Path(args.index), settings=settings) as index:
            yield index
        return
    if not dataset.sources:
        raise DocumentError(f"{args.dataset} has no corpus.jsonl", hint="name an index that holds it with -i")
    import tempfile

    settings = options.build_settings_of(args)
    if "modes" not in settings.given:  # build only what is scored
        settings = settings.having(modes=_modes(args))
    if settings.on_error == "stop":
        raise ConfigError("on_error: a data set is indexed with skip")
    with tempfile.TemporaryDirectory(prefix="ketrag-", ignore_cleanup_errors=True) as folder:
        progress = options.progress(args)
        with Index.build(
            dataset.sources, Path(folder) / "index", settings=settings, progress=progress
        ) as index:
            failures = report_of(index).failures
            if failures and not args.quiet:
                output.warn(f"{len(failures):,} passages could not be read:")
                output.list_failures(failures)
            yield index
