"""`ketrag bench` and `estimate`: compare builds, train a system, and predict what a build takes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import READING, Command, argument, embedding, option, switch, topic
from ketrag_fast.apps.cli.stats import Diff
from ketrag_fast.base.config import Settings, parse
from ketrag_fast.errors import ConfigError, DocumentError, ReadOnly
from ketrag_fast.systems.registry import registry

if TYPE_CHECKING:
    from ketrag_fast.eval.comparison.configurations import Configuration
    from ketrag_fast.eval.comparison.report import Report
    from ketrag_fast.eval.estimate import Estimate as Estimated

_BUDGETS = "12000,6000,3000"
_SYSTEMS = ",".join(("default", *(one.name for one in registry().systems if one.name in one.presets)))
_ALL_FAILED = 1


def _declare_prices() -> Any:
    return option("FILE", "price table (default ./prices.toml if it exists)")


class _Comparison(Command):
    """Options of all three kinds of comparison."""

    go_on = "with --keep FOLDER the same command continues from finished builds"
    kind: ClassVar[str]
    dataset: str = argument("DATASET", "folder or file of the data set")
    documents: tuple[str, ...] = option("SOURCE", "index these instead of the passages of the data set")
    mode: str | None = option("LIST", "modes (default: those of each configuration)")
    budget: str = option("LIST", f"budgets in tokens (default {_BUDGETS})", default=_BUDGETS)
    answer_with: str | None = option("SPEC", "LLM that answers every question, for EM and F1")
    keep: str | None = option("FOLDER", "keep the indexes in FOLDER, so that a later run continues from them")
    prices: str | None = _declare_prices()
    every = topic(
        "settings of all configurations, unless they set another value",
        *("build", "query", "writing"),
        shown=("embedder", "llm", "chunk_tokens", "top"),
        but=("mode", "budget"),
    )
    reading = READING
    model = embedding()

    def configurations(self) -> Sequence[Configuration]:
        """Return the configurations to compare."""
        raise NotImplementedError

    def shares_nothing(self) -> bool:
        """Return whether each build is measured in full, without parts of another."""
        return False

    def run(self) -> int:
        """Run all configurations and print the report."""
        common = options.build_settings_of(self)
        report = self._measure(common, self.configurations())
        lost = len(report.good) < len(report.outcomes) or any(one.failures for one in report.good)
        code = output.PARTIAL if lost else 0
        code = code if report.good else _ALL_FAILED
        if self.json:
            output.write_json(report.to_json(), code)
        else:
            from ketrag_fast.eval.comparison.report import render

            output.write(render(report), code)
        return code

    def _measure(self, common: Settings, configurations: Sequence[Configuration]) -> Report:
        from ketrag_fast.eval.comparison.running import Bench, answers_by, report_of
        from ketrag_fast.eval.prices import read_prices

        prices = read_prices(self.prices)
        budgets = _list("budget", self.budget)
        modes = _list("mode", self.mode) if self.mode else []
        if common.on_error == "stop":
            raise ConfigError(
                "on_error = stop is not supported here: a comparison skips unreadable documents"
            )
        dataset = options.load_data_set(self.dataset)
        sources = list(self.documents or dataset.sources)
        if not sources:
            raise DocumentError(
                f"{self.dataset} has no passages", hint="name the documents: --documents SOURCE"
            )
        if not self.quiet:
            for warning in dataset.warnings:
                output.warn(warning)
        with _folder(self.keep) as folder:
            bench = Bench(
                dataset,
                sources,
                folder,
                common,
                budgets,
                modes,
                apart=self.shares_nothing(),
                prices=prices,
                progress=options.progress(self),
                answers=None if self.answer_with is None else answers_by(self.answer_with),
                tell=(lambda _: None) if self.quiet else output.say,
            )
            return report_of(self.kind, bench, configurations)


class Builds(_Comparison):
    """Compare configurations from a file or from flags."""

    kind = "builds"
    examples = (
        'ketrag bench builds dataset/ --build "plain: seed=42" --build "rules: llm=heuristic"',
        "ketrag bench builds dataset/ --builds builds.toml",
        "ketrag bench builds dataset/ --builds builds.toml --shared --keep indexes",
    )
    builds: str | None = option("FILE", "TOML file with a table [[build]] per configuration")
    build: tuple[str, ...] = option("ROW", "NAME: setting=value, setting=value; repeatable")
    shared: bool = switch("compute vectors and LLM replies once for all builds")

    def shares_nothing(self) -> bool:
        """Return whether --shared is left out."""
        return not self.shared

    def configurations(self) -> Sequence[Configuration]:
        """Return the configurations that the file and the flags name."""
        from ketrag_fast.eval.comparison.configurations import check_configurations, from_file, from_flag

        listed = from_file(self.builds) if self.builds is not None else []
        return check_configurations([*listed, *(from_flag(text) for text in self.build)])


class Systems(_Comparison):
    """Compare the presets of published systems."""

    kind = "systems"
    examples = (
        "ketrag bench systems dataset/",
        "ketrag bench systems dataset/ --systems default --mode walk,fused --budget 2000,1000",
        "ketrag bench systems dataset/ --systems all --documents docs/ --answer-with openai:MODEL@URL",
    )
    systems: str = option("LIST", f"presets, or all (default {_SYSTEMS})", default=_SYSTEMS)
    apart: bool = switch("share nothing between builds, and measure each in full")

    def configurations(self) -> Sequence[Configuration]:
        """Return a configuration for each preset."""
        from ketrag_fast.eval.comparison.configurations import from_systems
        from ketrag_fast.eval.comparison.running import parse_systems

        return from_systems(parse_systems(self.systems))

    def shares_nothing(self) -> bool:
        """Return whether --apart is given."""
        return self.apart


class Sweep(_Comparison):
    """Compare values of settings; finished stages are reused."""

    kind = "sweep"
    examples = (
        "ketrag bench sweep dataset/ --vary core_ratio=0.2,0.8 --mode walk",
        "ketrag bench sweep dataset/ --vary knn_k=1,2,4 --vary budget=500,2000",
        "ketrag bench sweep dataset/ --vary core_ratio=0.2,0.8 --vary knn_k=1,4 --grid",
    )
    vary: tuple[str, ...] = option(
        "SETTING=VALUES", "values of a setting, such as core_ratio=0.1,0.2,0.4; repeatable"
    )
    grid: bool = switch("run every combination instead of varying one setting at a time")

    def configurations(self) -> Sequence[Configuration]:
        """Return a configuration for each value, or with --grid for each combination."""
        from ketrag_fast.eval.comparison.configurations import parse_vary, points

        return points([parse_vary(text) for text in self.vary], grid=self.grid)


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


class Estimate(Command):
    """Predict what a build takes: read documents for some seconds, build a sample of them in a temporary
    folder, and multiply. No LLM and no endpoint is called; an embedding model on this machine is timed. With
    -i DIR, the settings and documents of that index count."""

    go_on = "run the same command again; nothing was built"
    examples = (
        "ketrag estimate docs/",
        "ketrag estimate docs/ --llm openai:MODEL@URL --prices prices.toml",
        "ketrag estimate docs/ -i docs-index --system ket-rag",
    )
    sources: tuple[str, ...] = argument("SOURCE", "file, folder, glob or .jsonl data set", nargs="+")
    prices: str | None = _declare_prices()
    build = topic(
        "what to build",
        "build",
        shown=("system", "modes", "embedder", "llm", "chunk_tokens"),
    )
    reading = READING
    model = embedding()

    def run(self) -> int:
        """Print the estimate."""
        from ketrag_fast.eval.estimate import estimate
        from ketrag_fast.eval.prices import read_prices

        found = estimate(
            self.sources,
            options.build_settings_of(self),
            index=options.index_path(self)[0],
            prices=read_prices(self.prices),
            progress=options.progress(self),
        )
        if self.json:
            output.write_json(found.to_json())
        else:
            output.write(_render(found))
        if not self.quiet:
            if not found.documents and not found.failures:
                output.warn(f"no document found in {', '.join(self.sources)}: check the path")
            if found.failures:
                output.warn(f"{found.failures:,} documents cannot be read; `ketrag index` lists them")
        return 0


def _render(found: Estimated) -> str:
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


class Train(Command):
    """Train a system on the judged queries of a data set, over an index of its documents, and write the
    weights. The index does not change. Needs torch. A tenth of the queries is held out to find the best
    epoch. Run it again after an interruption to continue."""

    examples = (
        "ketrag bench train cg-rag dataset/ -i docs-index --out weights.safetensors",
        "ketrag bench train cg-rag dataset/ -i docs-index --epochs 5 --share 0.1",
        "ketrag retrieve QUERY --mode cg-rag-trained -o lesegr_weights=weights.safetensors",
    )
    system: str = argument("SYSTEM", lambda: f"system to train: {', '.join(registry().learning) or 'none'}")
    dataset: str = argument("DATASET", "folder in BEIR layout with qrels.tsv")
    out: str | None = option("FILE", "file for the weights (default: named by the system)")
    share: str = option("X", "share of the judged queries to use (default 1; paper: 0.1)", default="1")
    epochs: str = option("N", "maximum number of epochs (default 20)", default="20")
    rate: str = option("X", "learning rate (default 1e-4)", default="1e-4")
    hidden: str = option("N", "hidden dimension (default 256)", default="256")
    heads: str = option("N", "attention heads (default 4)", default="4")

    def run(self) -> int:
        """Train, and print how to use the weights."""
        path = options.one_path(self)
        from ketrag_fast.index.training import train

        training = registry().trainable(self.system).train
        assert training is not None  # noqa: S101 - `trainable` checked
        out = Path(self.out or training.file)
        dataset = options.load_data_set(self.dataset)
        began = time.perf_counter()

        def on_epoch(number: int, of: int, loss: float, hit: float) -> None:
            if not self.quiet:
                output.warn(
                    f"epoch {number} of {of}: loss {loss:.4f}; Hit@1 of held-out queries {100 * hit:.0f} %"
                )

        with options.open_index(self) as index:
            outcome = train(
                index,
                self.system,
                [(q.text, q.gold) for q in dataset.questions if q.gold],
                out,
                share=_number("share", self.share, 0.0, 1.0),
                epochs=int(_number("epochs", self.epochs, 1, 10_000)),
                rate=_number("rate", self.rate, 1e-9, 1.0),
                hidden=int(_number("hidden", self.hidden, 4, 4096)),
                heads=int(_number("heads", self.heads, 1, 64)),
                on_epoch=on_epoch,
            )
        data = {
            "schema": "ketrag/training/1",
            "weights": str(out),
            "epochs": outcome.epochs,
            "best_epoch": outcome.best,
            "questions": outcome.questions,
            "without_gold": outcome.without_gold,
            "stopped": outcome.stopped,
            "seconds": round(time.perf_counter() - began, 1),
        }
        if self.json:
            output.write_json(data)
            return 0
        missed = outcome.without_gold
        lost = f"; {missed} without a judged unit among their candidates" if missed else ""
        ended = f" ({outcome.stopped})" if outcome.stopped else ""
        output.write(
            f"{out}: {outcome.questions} questions{lost}; {outcome.epochs} epochs{ended}, the best is "
            f"{outcome.best}; {data['seconds']} s\n"
            f"use it: ketrag retrieve -i {path} --mode {training.mode} -o {training.setting}={out} QUESTION"
        )
        return 0


def _number(name: str, text: str, low: float, high: float) -> float:
    try:
        found = float(text)
    except ValueError:
        found = float("nan")
    if not low <= found <= high:
        raise ConfigError(f"--{name} {text} must be a number between {low:g} and {high:g}")
    return found


class Bench(Command):
    """Run the same documents and queries through several configurations and print one report: the cost of
    each build, the size of its graph, its scores, and where they differ. Or compare two indexes, or train a
    system on judged queries."""

    examples = (
        "ketrag bench systems dataset/",
        'ketrag bench builds dataset/ --build "plain: seed=42" --build "rules: llm=heuristic"',
    )
    action_metavar = "KIND"
    actions = {  # noqa: RUF012
        "builds": ("compare configurations from a file or from flags", Builds),
        "systems": ("compare the presets of published systems", Systems),
        "sweep": ("compare values of settings; finished stages are reused", Sweep),
        "diff": ("compare two indexes, or two generations of one", Diff),
        "train": ("train a system on judged queries", Train),
    }
