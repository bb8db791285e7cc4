"""The section of SOLUTIONS.md about G2ConS: its search, its choice of core chunks, and the whole of it.

    python benches/concepts_scored.py --embedder native:FOLDER --work FOLDER

`search`: `concepts` and other channels, without a skeleton, with and without a model. `selection`: core chunks
by concepts, PageRank and chance, equally many, as skeletons alone. `whole`: the presets and KET-RAG's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import header, require_data, table
from ketrag_fast import Settings
from ketrag_fast.lab.comparison.configurations import Configuration
from ketrag_fast.lab.comparison.outcome import Outcome
from ketrag_fast.lab.comparison.running import Bench
from ketrag_fast.lab.comparison.sweep import order
from ketrag_fast.lab.eval import DataSet, PairedDifference, concatenate, holm, load_dataset
from solutions import RECORDED, SEED, cell, difference_text, gap, moved, verdict

RATIOS = (0.2, 0.5, 0.8)
SELECTIONS = ("concept", "pagerank", "uniform")
CHANNELS = "text,keyword,walk,concepts"
PAPER = {"seed_concepts": 25, "concept_rerank": "local"}


@dataclass(frozen=True)
class Part:
    """One table: rows of settings, and which pairs are tested (the one, the other, whether the paper ranks them)."""

    name: str
    rows: Sequence[Configuration]
    pairs: Sequence[tuple[str, str, bool]]


def search() -> Part:
    """Each channel alone over the product's units; the paper's search, its ablation D and its variants."""

    def row(name: str, mode: str, **more: Any) -> Configuration:
        return Configuration(name, {"mode": mode, "modes": CHANNELS, **more})

    rows = [
        *(row(mode, mode) for mode in ("text", "keyword", "walk")),
        row("concepts", "concepts"),
        row("paper's search", "concepts", **PAPER),
        row("D: one list", "concepts", **{**PAPER, "concept_rerank": "naive"}),
    ]
    pairs = [("concepts", other, False) for other in ("text", "keyword", "walk", "paper's search")]
    return Part("search", rows, [*pairs, ("paper's search", "D: one list", True)])


def variants() -> Part:
    """The paper's search with its variants A to C of the graph."""
    own = {"A: sentences": ("concept_level", "sentence"), "B: no cosine": ("theta_sem", -1.0)}
    own["C: chunks' vectors"] = ("concept_vectors", "chunks")
    system = {"system": "g2cons-150", "mode": "concepts", "modes": "concepts"}
    rows = [Configuration("concepts of g2cons-150", system)]
    rows += [Configuration(name, {**system, setting: value}) for name, (setting, value) in own.items()]
    return Part("variants", rows, [("concepts of g2cons-150", name, True) for name in own])


def selection(llm: str, ratios: Sequence[float]) -> Part:
    """Skeletons of as many core chunks, chosen in three ways; nothing but their tables and sources is printed."""
    common = {"mode": "skeleton", "modes": "skeleton", "llm": llm}
    rows = [
        Configuration(f"{how} {ratio:g}", {**common, "core_selection": how, "core_ratio": ratio})
        for ratio in ratios
        for how in SELECTIONS
    ]
    pairs = [(f"concept {ratio:g}", f"{how} {ratio:g}", True) for ratio in ratios for how in SELECTIONS[1:]]
    return Part("selection", rows, pairs)


def read_by_rules() -> Part:
    """`selection` with the heuristic reader, and what the skeleton adds to the texts of two systems."""
    part, llm = selection("heuristic", RATIOS), "heuristic"
    names = ("g2cons", "ket", "concepts")
    chosen = {"core_selection": "concept", "core_ratio": 0.8, "llm": llm}
    rows = [Configuration(name, {**chosen, "mode": name, "modes": ",".join(names)}) for name in names]
    pairs = [("g2cons", "ket", True), ("g2cons", "concepts", True)]
    return Part("selection", [*part.rows, *rows], [*part.pairs, *pairs])


def whole(llm: str, suffixes: Iterable[str]) -> Part:
    """The presets of both papers, equally many chunks read (but for ms-graph-rag, which reads all)."""
    rows: list[Configuration] = []
    pairs: list[tuple[str, str, bool]] = []
    for suffix in suffixes:
        system = f"g2cons{suffix}"
        ours = {
            system: {},
            f"{system}, core graph alone": {"kg_share": 1.0},
            f"{system}, concepts alone": {"kg_share": 0.0},
            f"{system}, in turns": {"concept_rerank": "turns", "seed_concepts": 60},
            f"{system}, core ratio 0.2": {"core_ratio": 0.2},
        }
        others = ("text-rag", "ms-graph-rag", "ket-rag-p")
        rows += [Configuration(name, {"system": system, "llm": llm, **own}) for name, own in ours.items()]
        rows += [
            Configuration(f"{name}{suffix}", {"system": f"{name}{suffix}", **({"llm": llm} if at else {})})
            for at, name in enumerate(others)
        ]
        pairs += [(system, f"{name}{suffix}", True) for name in others]
        pairs += [(system, f"{system}, {part} alone", True) for part in ("core graph", "concepts")]
        pairs.append((f"{system}, in turns", system, False))
    return Part("whole", rows, pairs)


@dataclass(frozen=True)
class Scored:
    """A part on one question set with one embedder."""

    title: str
    part: Part
    outcomes: Sequence[Outcome]

    @property
    def found(self) -> dict[str, Outcome]:
        """Those that ran, by name."""
        return {outcome.name: outcome for outcome in self.outcomes if outcome.results}


def scored(
    title: str, part: Part, dataset: DataSet, embedder: str, folder: Path, budgets: list[int]
) -> Scored:
    """Builds and asks every row; the vectors of one folder are made once."""
    folder.mkdir(parents=True, exist_ok=True)
    common = Settings(embedder=embedder)

    def tell(line: str) -> None:
        print(f"{title}: {line}", file=sys.stderr, flush=True)

    bench = Bench(
        dataset, dataset.sources, folder, common, budgets, apart=False, anew=True, graphs=False, tell=tell
    )
    return Scored(title, part, bench.run(part.rows, order(part.rows, common)))


Family = dict[tuple[str, str, str, int], tuple[PairedDifference, float]]


def corrected(all_scored: Sequence[Scored], budgets: list[int]) -> Family:
    """Every pair of a part with its p, corrected over all of them."""
    found: dict[tuple[str, str, str, int], PairedDifference] = {}
    for one in all_scored:
        outcomes = one.found
        for ours, other, _ in one.part.pairs:
            for budget in budgets:
                if ours in outcomes and other in outcomes:
                    difference = gap(outcomes[other], outcomes[ours], budget)
                    if difference is not None:
                        found[one.title, ours, other, budget] = difference
    values = holm([difference.p for difference in found.values()])
    return dict(zip(found, zip(found.values(), values, strict=True), strict=True))


def report(told: Sequence[Scored], budgets: list[int]) -> None:
    """The tables of one part."""
    family = corrected(told, budgets)
    print(f"Comparisons in this part: {len(family)}.\n")
    for one in told:
        tables(one, family, budgets)


def tables(one: Scored, family: Family, budgets: list[int]) -> None:
    """Coverage of each row, and the pairs."""
    print(f"#### {one.title}\n")
    rows = []
    for outcome in one.outcomes:
        recall = [row.recall for row in outcome.rows if row.recall is not None]
        sizes = f"{outcome.counts.get('chunks', 0):,} / {outcome.counts.get('core_chunks', 0):,}"
        gold = " / ".join(f"{100 * value:.1f}" for value in recall) or "-"
        rows.append([outcome.name, *(cell(outcome, b, None) for b in budgets), gold, sizes])
    shown = "/".join(f"{budget:,}" for budget in budgets)
    columns = ["", *(f"coverage at {b:,}" for b in budgets), f"recall at {shown}", "chunks / core"]
    table(columns, rows, about=one.title)
    for outcome in one.outcomes:
        if outcome.error:
            print(f"- {outcome.name}: not run: {outcome.error}")
    tested = []
    for ours, other, ranked in one.part.pairs:
        gaps = {budget: family.get((one.title, ours, other, budget)) for budget in budgets}
        if any(gaps.values()):
            said = verdict(gaps)
            if not ranked:
                said = said.replace("as in the paper", "above").replace("the other way round", "below")
            tested.append([f"{ours} against {other}", *map(difference_text, gaps.values()), said])
    table(["pair", *(f"difference at {b:,}" for b in budgets), "so"], tested)


def main() -> None:
    """Prints the section."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--embedder", help="a model, beside the built-in vectors")
    parser.add_argument("--parts", default="search,selection,whole")
    parser.add_argument("--sets", default="musique-dev,2wiki-dev", help="for search and selection")
    parser.add_argument("--layouts", default="passages,concatenated", help="for whole")
    parser.add_argument("--budgets", default="12000,6000,3000")
    parser.add_argument("--work", help="folder of the indexes, kept; else a temporary one")
    args = parser.parse_args()
    budgets, parts = [int(text) for text in args.budgets.split(",")], args.parts.split(",")
    header(
        "G2ConS",
        [
            "Coverage: % of questions with an answer in the context (token rule), with its 95 % bootstrap interval.",
            "p: exact sign test on the questions that changed sides, corrected by Holm's method over all "
            "comparisons of the same part (search; core chunks; the whole).",
        ],
    )
    embedders = {"no model": "builtin", **({"MiniLM": args.embedder} if args.embedder else {})}
    sets = {name: load_dataset(require_data(name)) for name in args.sets.split(",")}
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(args.work or temporary)
        if "search" in parts:
            told = [
                scored(f"Search, {name}, {label}", search(), dataset, spec, work / f"{name}-{label}", budgets)
                for name, dataset in sets.items()
                for label, spec in embedders.items()
            ]
            report(told, budgets)
        if "selection" in parts:
            title, part = "Core chunks, {}, read by rules, no model", read_by_rules()
            told = [
                scored(title.format(name), part, dataset, "builtin", work / f"{name}-core", budgets)
                for name, dataset in sets.items()
            ]
            report(told, budgets)
        if "whole" in parts:
            told = recorded(work, args.layouts.split(","), list(embedders.values())[-1], budgets)
            report(told, budgets)


def recorded(work: Path, layouts: Sequence[str], embedder: str, budgets: list[int]) -> list[Scored]:
    """Return the scores with a recorded extraction: 100 questions, in the layouts of this page."""
    dataset = load_dataset(require_data("musique-train100"))
    found = []
    for layout in layouts:
        folder = work / f"musique-train100-{layout}"
        folder.mkdir(parents=True, exist_ok=True)
        path, asked = dataset.folder / RECORDED, dataset
        shown = "each passage a document"
        if layout == "concatenated":
            path, asked = moved(dataset, path, folder), concatenate(dataset, SEED)
            shown = "one document, shuffled"
        llm = f"replay:{path}"
        windows = ("", "-150") if layout == "concatenated" else ("-150",)
        for part in (whole(llm, windows), selection(llm, RATIOS), variants()):
            title = f"musique-train100, {shown}: {part.name}"
            found.append(scored(title, part, asked, embedder, folder, budgets))
    return found


if __name__ == "__main__":
    main()
