"""Estimates held against builds, first and second of a kind; the paper's formula; what a sweep costs."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import ROOT, header, require_data, table
from ketrag_fast import Document, Index, Settings
from ketrag_fast.build.file_reading import read_sources
from ketrag_fast.kernels.text import count_tokens
from ketrag_fast.lab.cost.formula import Actual, Shape, difference, ket_index
from ketrag_fast.lab.cost.history import against
from ketrag_fast.lab.cost.predicting import Wish, predict

RATIOS = tuple(round(0.1 * step, 1) for step in range(1, 11))


def corpora(names: str) -> Iterator[tuple[str, list[Document]]]:
    """Documents of `polar` (in the checkout) or of a question set."""
    for name in names.split(","):
        source = ROOT / "examples" / "polar" / "articles" if name == "polar" else require_data(name)
        yield name, [item for item in read_sources(str(source), Settings()) if isinstance(item, Document)]


def build(documents: list[Document], path: Path, settings: Settings) -> Any:
    """The report of one whole build."""
    with Index.build(documents, path, settings=settings, rebuild=path.exists(), replace=True) as index:
        return index.report


def off(documents: list[Document], path: Path, settings: Settings, wish: Wish) -> dict[str, float]:
    """Percent by which the estimate was off, for each number that both have."""
    estimate = predict(documents, settings, wish)
    report = build(documents, path, settings)
    held = sum(stage.bytes for stage in report.stages)
    rows = against(estimate.to_json(), report.usage, report.seconds, held)
    return {row["name"]: row["off_percent"] for row in rows if row["off_percent"] is not None}


def estimates(args: argparse.Namespace) -> None:
    """The first estimate knows the sample alone; the second has seen a build of other documents of the kind."""
    rows = []
    names = ("chunks", "core_chunks", "tokens_in", "tokens_out", "embedding_tokens", "seconds", "memory")
    for name, documents in corpora(args.sets):
        settings = Settings(embedder=args.embedder, llm=args.llm)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "index"
            half = documents[::2]
            first = off(
                half, path, settings, Wish(sample=args.sample, calls=args.calls, index=path, spend=True)
            )
            second = off(documents, path, settings, Wish(sample=args.sample, index=path, spend=True))
        for label, found in (("half of it, nothing known", first), ("all of it, after the half", second)):
            rows.append([name, label, *(f"{found[n]:+.0f}" if n in found else "-" for n in names)])
    print("## Estimate minus truth, in percent of the truth\n")
    table(["documents", "", *names], rows)


def formula(args: argparse.Namespace) -> None:
    """Input tokens by the formula, as sent, and the reasons for the difference."""
    from ketrag_fast.models.extraction.prompt import build_prompt
    from ketrag_fast.models.extraction.reader_choice import prompt_options

    rows = []
    for name, documents in corpora(args.sets):
        for size in (150, 1200):
            settings = Settings(cut="windows", chunk_tokens=size, llm=args.llm, on_barren="continue")
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "index"
                with Index.build(documents, path, settings=settings) as index:
                    report, arrays = index.report, index.inspect.arrays()
                    core = int(arrays["units"]["chunk_tokens"][arrays["core"]["core"]].sum())
            assert report is not None
            usage = report.usage
            bare = build_prompt(0, "", "", prompt_options(settings))
            prompt = int(count_tokens([bare.instructions, bare.text]).sum())
            shape = Shape(usage.chunks, size, settings.core_ratio, prompt)
            actual = Actual(usage.core_chunks, core, usage.calls, usage.tokens_in)
            parts = difference(shape, actual)
            said = ket_index(shape).tokens_in
            rows.append([name, size, usage.chunks, usage.calls, f"{said:,.0f}", f"{usage.tokens_in:,}"])
            rows[-1] += [f"{parts[part]:+,.0f}" for part in parts]
    print("## Input tokens: the formula of the paper beside what was sent\n")
    reasons = [
        "second prompt",
        "chunks not full",
        "whole chunks",
        "calls beyond one",
        "tokenizer, titles, frame",
    ]
    table(["documents", "chunk size", "chunks", "calls", "formula", "sent", *reasons], rows)


def sweep(args: argparse.Namespace) -> None:
    """Ten core ratios in one sweep against one build."""
    from ketrag_fast.lab.comparison import sweep as sweeps
    from ketrag_fast.lab.comparison.running import Bench
    from ketrag_fast.lab.eval import load_dataset

    rows = []
    for name in (n for n in args.sets.split(",") if n != "polar"):
        folder_of = require_data(name)
        dataset = load_dataset(folder_of)
        common = Settings(embedder=args.embedder, llm=args.llm)
        documents = [item for item in read_sources(str(folder_of), common) if isinstance(item, Document)]
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            build(documents, Path(folder) / "one", common.having(core_ratio=1.0))
            one = time.perf_counter() - started
            points = sweeps.points([("core_ratio", RATIOS)])
            bench = Bench(dataset, [folder_of], Path(folder), common, [3000], ["walk"], apart=False)
            found = bench.run(points, sweeps.order(points, common))
        ten = sum(outcome.cost.spent_seconds for outcome in found if outcome.cost is not None)
        rows.append([name, one, ten, f"{ten / one:.2f}"])
    print("## Ten core ratios against one build\n")
    table(["documents", "one build, s", "ten points, s", "times"], rows)


def main() -> None:
    """Print the requested parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default="polar,musique-train100,hotpotqa-train100")
    parser.add_argument("--parts", default="estimates,formula,sweep")
    parser.add_argument("--embedder", default="builtin")
    parser.add_argument(
        "--llm", default="none", help="none; tiny: a model of random weights made on the spot"
    )
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--calls", type=int, default=8)
    args = parser.parse_args()
    header(
        "Estimates, the cost formula, sweeps",
        [
            f"Embedder {args.embedder.rpartition('/')[2]}, language model {args.llm.rpartition('/')[2]}.",
            "A model of random weights says nothing of sense; its calls, tokens and seconds are real.",
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        if args.llm == "tiny":
            sys.path.insert(0, str(ROOT))
            from tests.support.gguf_model import TINY, model_file

            args.llm = f"llama-cpp:{model_file(TINY, Path(folder))}"
        for part in args.parts.split(","):
            {"estimates": estimates, "formula": formula, "sweep": sweep}[part](args)


if __name__ == "__main__":
    main()
