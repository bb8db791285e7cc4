"""`ketrag eval`: score retrieval and answers on a data set; compare two runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import READING, Command, argument, embedding, option, switch, topic
from ketrag_fast.apps.cli.index import report_of
from ketrag_fast.base.config import Settings, catalogue, parse
from ketrag_fast.errors import ConfigError, DocumentError

if TYPE_CHECKING:
    from ketrag_fast.eval import Collected, ComparedRun, DataSet, Run
    from ketrag_fast.eval.answers import ModelAnswers
    from ketrag_fast.eval.bertscore import BertScore
    from ketrag_fast.eval.judge import Judge
    from ketrag_fast.eval.run import Answerer
    from ketrag_fast.index import Index
    from ketrag_fast.index.indexes import Indexes

_BUDGETS = "12000,6000,3000"

_TOGETHER: Final = ("bm25", "walk")
"""Modes that several indexes rank as one."""


class Evaluate(Command):
    """Score a data set: one row per mode and budget. DATASET is a folder in BEIR layout (corpus.jsonl,
    queries.jsonl, qrels.tsv), or a file of MuSiQue, HotpotQA or 2WikiMultihopQA as published. Without -i it
    is indexed in a temporary folder."""

    examples = (
        "ketrag eval dataset/ --mode bm25,walk --budget 6000,3000",
        "ketrag eval dataset/ -i docs-index --compare text walk",
        "ketrag eval --compare runs/a:walk runs/b:walk",
    )
    dataset: str | None = argument("DATASET", "folder or file of the data set")
    mode: str | None = option("LIST", "modes, comma-separated (default: all that need no language model)")
    budget: str | None = option("LIST", f"budgets in tokens (default {_BUDGETS})")
    save: str | None = option("FOLDER", "write all results, and the runs in TREC format")
    compare: tuple[str, str] | None = option(
        ("A", "B"), "two modes, or two saved runs (FOLDER or FOLDER:MODE): paired tests", nargs=2
    )
    answers: str | None = option(
        "FILE", "score answers by EM and F1: those in FILE (JSONL), or those of --llm", nargs="?", const=""
    )
    judge: str | None = option("SPEC", "with --compare: LLM that picks the better answer")
    bertscore: str | None = option("FOLDER", "model folder: score the answers by BERTScore", rare=True)
    substring: bool = switch("count an answer inside a longer word as covered", rare=True)
    explain: bool = switch("store why each passage was retrieved (needs --save or --json)", rare=True)
    retrieval = topic("retrieval", "query", shown=("top", "filter"), but=("mode", "budget", "deadline"))
    build = topic("what to build without -i", "build", shown=("system", "embedder", "llm", "chunk_tokens"))
    reading = READING
    model = embedding()

    def run(self) -> int:
        """Print the scores, or the comparison."""
        if self.dataset is None:
            _print_comparisons(self, _saved_runs(self))
            return 0
        if self.judge is not None and self.compare is None:
            raise ConfigError("--judge needs two sides to compare", hint="name them: --compare A B")
        if self.explain and (self.compare is not None or not self.json) and self.save is None:
            raise ConfigError("--explain needs a place for its reasons", hint="add --save FOLDER or --json")
        if self.bertscore is not None and self.answers is None:
            raise ConfigError("--bertscore needs answers", hint="name them: --answers FILE")
        modes = _modes(self)
        budgets = _budgets(self.budget or _BUDGETS)
        settings = options.build_settings_of(self)
        from ketrag_fast.eval import collect, describe, render, save
        from ketrag_fast.index.indexes import Indexes

        dataset = options.load_data_set(self.dataset)
        answers, warnings = _answers(self, dataset)
        asked: ModelAnswers | None = None
        scorer = _scorer(self)
        scored = {} if scorer is None else {"bertscore_model": scorer.about}
        if not self.quiet:
            for warning in (*dataset.warnings, *warnings):
                output.warn(warning)
        with _index(self, dataset) as index:
            if self.mode is None and self.compare is None:
                modes = list(_TOGETHER if isinstance(index, Indexes) else index.modes)
            if self.answers == "" and not isinstance(index, Indexes):
                from ketrag_fast.eval.answers import ModelAnswers

                asked = answers = ModelAnswers(index, options.flags(self).get("llm"), top=settings.top)
            found = collect(
                index,
                dataset,
                modes,
                budgets,
                top=settings.top,
                substring=self.substring,
                answer=answers,
                explain=self.explain,
            )
            if scorer is not None:
                found = scorer.judge(found, dataset)
            if self.save is not None and not isinstance(index, Indexes):
                more: dict[str, Any] = {"substring": self.substring, "top": settings.top, **scored}
                if asked is not None:
                    more["answers"] = asked.about()
                save(Path(self.save), describe(dataset, index.stats(), **more), dataset, found)
        if asked is not None and asked.failed and not self.quiet:
            output.warn(f"the model gave no answer to {asked.failed:,} questions: EM and F1 leave them out")
        if self.compare is not None:
            _print_comparisons(self, _evaluated_modes(self.compare, dataset, found))
            return 0
        rows = found.rows()
        absent = _absent(self, dataset)
        if self.json:
            data = {
                "schema": "ketrag/eval/1",
                "dataset": self.dataset,
                "questions": len(dataset.questions),
                "rows": [row.as_dict() for row in rows],
                "not_run": absent,
                **scored,
            }
            if self.explain:
                data["results"] = [result.to_json() for result in found.results]
            output.write_json(data)
        else:
            output.write(render(rows, absent))
        return 0


# ---------------------------------------------------------------- arguments


def _modes(command: Evaluate) -> list[str]:
    given = command.mode or (",".join(command.compare) if command.compare else "auto")
    modes = [Settings(mode=parse("mode", text)).mode for text in given.split(",")]
    lacking = [mode for mode in command.compare or () if mode not in modes]
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


def _answers(command: Evaluate, dataset: DataSet) -> tuple[Answerer | None, tuple[str, ...]]:
    if not command.answers:
        return None, ()  # with an empty value a model writes them later, from the open index
    from ketrag_fast.eval import read_answers

    answers = read_answers(Path(command.answers), dataset)
    return answers, answers.warnings


def _scorer(command: Evaluate) -> BertScore | None:
    """Return the model of --bertscore, before the work starts that a wrong folder would waste."""
    if command.bertscore is None:
        return None
    from ketrag_fast.eval.bertscore import BertScore

    return BertScore(command.bertscore)


def _absent(command: Evaluate, dataset: DataSet) -> dict[str, str]:
    """Return the scores that were not computed, with the reason."""
    absent: dict[str, str] = {}
    if not any(question.answers for question in dataset.questions):
        reason = "the data set has no gold answers"
        return dict.fromkeys(("em", "f1", "bertscore", "win_rate"), reason)
    if command.answers is None:
        absent |= dict.fromkeys(("em", "f1"), "no answers to score (--answers FILE, or --answers --llm SPEC)")
    if command.bertscore is None:
        absent["bertscore"] = "no model is named (--bertscore FOLDER)"
    absent["win_rate"] = "needs two sides and a judge (--compare A B --answers FILE --judge SPEC)"
    return absent


# ---------------------------------------------------------------- two side by side


def _evaluated_modes(
    modes: tuple[str, str], dataset: DataSet, found: Collected
) -> Iterator[tuple[int, ComparedRun, ComparedRun]]:
    from ketrag_fast.eval import ComparedRun

    for mode in modes:
        if mode in found.skipped:
            raise ConfigError(f"--compare {mode}: not run: {found.skipped[mode]}")
    for budget in found.budgets:
        one, other = (ComparedRun(mode, dataset.questions, found.of(mode, budget)) for mode in modes)
        yield budget, one, other


def _saved_runs(command: Evaluate) -> Iterator[tuple[int, ComparedRun, ComparedRun]]:
    if command.compare is None:
        raise ConfigError("eval needs a DATASET, or two saved runs: --compare A B")
    from ketrag_fast.eval import ComparedRun

    (a, only_a), (b, only_b) = (_load_saved_run(name) for name in command.compare)
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
    wanted = _budgets(command.budget) if command.budget else None
    pairs = [pair for pair in pairs if wanted is None or pair[0][1] in wanted]
    if not pairs:
        raise ConfigError(
            f"{command.compare[0]} and {command.compare[1]} have no mode and budget in common",
            hint="name a mode of each: FOLDER:MODE",
        )
    for one, other in pairs:
        first, second = (
            ComparedRun(
                f"{run.folder}:{mode}",
                run.questions,
                [result for result in run.results if (result.mode, result.budget) == (mode, budget)],
            )
            for run, (mode, budget) in ((a, one), (b, other))
        )
        yield one[1], first, second


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


def _print_comparisons(command: Evaluate, sides: Iterator[tuple[int, ComparedRun, ComparedRun]]) -> None:
    from ketrag_fast.eval import compare, render_comparison

    rows: list[dict[str, Any]] = []
    with _judge(command) as judge:
        for budget, a, b in sides:
            comparison = compare(a, b)
            wins = None if judge is None else judge.win_rate(a, b)
            if command.json:
                rate = None if wins is None else wins.to_json()
                rows.append({"budget": budget, **comparison.to_json(), "win_rate": rate})
                continue
            output.write(f"{chr(10) if rows else ''}budget {budget}\n{render_comparison(comparison)}")
            rows.append({})
            if judge is not None:
                from ketrag_fast.eval.judge import render_win_rate

                none = "win rate: not run: the sides have no answers to one question in common"
                output.write(none if wins is None else render_win_rate(wins, b.name))
    if command.json:
        output.write_json({"schema": "ketrag/eval-comparison/1", "comparisons": rows})


@contextmanager
def _judge(command: Evaluate) -> Iterator[Judge | None]:
    if command.judge is None:
        yield None
        return
    from ketrag_fast.eval.judge import Judge, judge_options

    with Judge(command.judge, judge_options(options.query_settings_of(command, strict=False))) as judge:
        yield judge


# ---------------------------------------------------------------- the index


@contextmanager
def _index(command: Evaluate, dataset: DataSet) -> Iterator[Index | Indexes]:
    from ketrag_fast.index import Index

    if command.index is not None:
        # The embedder may be in another folder than when the index was built; opening the index checks it.
        built = {name for name, spec in catalogue().items() if spec.concerns == "build"}
        lost = next((name for name in options.flags(command) if name in built - {"embedder", "llm"}), None)
        if lost is not None:
            raise ConfigError(f"{lost} is a build setting: the index of -i was built with its own value")
        settings = options.query_settings_of(command)
        if len(options.folders_of(command.index)) > 1:
            from ketrag_fast.index.indexes import Indexes

            for option, given in (("--save", command.save), ("--answers without FILE", command.answers)):
                if given is not None and (option == "--save" or not given):
                    raise ConfigError(f"{option} takes one index", hint="name one with -i")
            with options.searched_indexes(command, settings) as indexes:
                yield Indexes(indexes, settings=settings)
            return
        with Index.open(Path(command.index), settings=settings) as index:
            yield index
        return
    if not dataset.sources:
        raise DocumentError(
            f"{command.dataset} has no corpus.jsonl", hint="name an index that holds it with -i"
        )
    import tempfile

    settings = options.build_settings_of(command)
    if "modes" not in settings.given:  # build only what is scored
        settings = settings.having(modes=_modes(command))
    if settings.on_error == "stop":
        raise ConfigError("on_error = stop is not supported here: unreadable passages are skipped")
    with tempfile.TemporaryDirectory(prefix="ketrag-", ignore_cleanup_errors=True) as folder:
        progress = options.progress(command)
        with Index.build(
            dataset.sources, Path(folder) / "index", settings=settings, progress=progress
        ) as index:
            failures = report_of(index).failures
            if failures and not command.quiet:
                output.warn(f"{len(failures):,} passages could not be read:")
                output.list_failures(failures)
            yield index
