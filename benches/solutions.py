"""All solutions of the KET-RAG paper and this project's walk, on two question sets in two layouts.

    python benches/solutions.py --embedder sentence-transformers:FOLDER > benches/SOLUTIONS.md

Each passage is a document; and again with all passages as one document, in shuffled order, as the published
code has it. On musique-train100 the skeleton comes from the recorded extraction, on hotpotqa-train100 from
the heuristic extractor. `--parity` adds the preset `parity` next to the numbers of the published functions.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from common import header, require_data, table
from ketrag_fast import Index, Settings
from ketrag_fast.lab.comparison.configurations import Configuration
from ketrag_fast.lab.comparison.outcome import Outcome
from ketrag_fast.lab.comparison.running import Bench
from ketrag_fast.lab.comparison.sweep import order
from ketrag_fast.lab.eval import (
    DataSet,
    PairedDifference,
    compare_paired,
    concatenate,
    holm,
    load_dataset,
    metrics,
)
from ketrag_fast.lab.eval.concatenate import NAME, places
from ketrag_fast.lab.eval.results import METRICS
from ketrag_fast.models.extraction.recording import RecordingWriter, read_line

SETS = ("musique-train100", "hotpotqa-train100")
SOLUTIONS = (
    "text-rag",
    "knng-rag",
    "keyword-rag",
    "hyde",
    "ms-graph-rag",
    "hybrid-rag",
    "skeleton-rag",
    "ket-rag-u",
    "ket-rag-p",
)
RECORDED = "openie.gpt-3.5-turbo-1106.jsonl"
SEED = 0
SHARES = (0.0, 0.2, 0.6, 0.8)
"""Beside the paper's 0.4."""
WINDOWS = {"chunk_tokens": 150, "split_level": 0, "overlap": 0}
PUBLISHED = (
    ("windows of 150", WINDOWS, "text", (78, 59, 49)),
    ("windows of 150", WINDOWS, "keyword", (85, 70, 63)),
    ("windows of 1,200, 100 shared, cut to 150", {}, "text", (77, 66, 55)),
    ("windows of 1,200, 100 shared, cut to 150", {}, "keyword", (81, 72, 63)),
)
"""Questions covered at 12,000, 6,000 and 3,000 by the published functions: musique-train100, the passages'
texts concatenated without titles (1,312 windows of 150 tokens), shuffled with Random(0)."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--layouts", default="passages,concatenated")
    parser.add_argument("--solutions", default=",".join(SOLUTIONS))
    parser.add_argument("--budgets", default="12000,6000,3000")
    parser.add_argument("--embedder", default="builtin")
    parser.add_argument("--nltk-data", help="folder of NLTK's data: adds the preset parity")
    parser.add_argument("--only-parity", action="store_true", help="nothing but the preset parity")
    parser.add_argument("--work", help="folder of the indexes, kept; else a temporary one")
    args = parser.parse_args()
    budgets = [int(text) for text in args.budgets.split(",")]
    names = [name for name in args.solutions.split(",") if name]
    header(
        "The solutions side by side",
        [
            "Coverage: % of questions with an answer in the context (token rule; yes/no questions left out), "
            "with its 95 % bootstrap interval (1,000 resamples of the questions, seed 42).",
            "p: exact sign test on the questions that changed sides, against text-rag of the same setting and "
            "budget, corrected by Holm's method over all comparisons of this page: where p is below .05, all "
            "are differences but for a chance of 5 % that one is not. Intervals are not corrected. 100 questions: "
            "one question is one point, and intervals are some 15 points wide.",
            f"Embedder: {_shown(args.embedder)}. Skeletons: recorded GPT-3.5 triples on musique-train100, the "
            "heuristic extractor on hotpotqa-train100.",
            "The walk's constants were chosen on these sets, passages as documents.",
            "The paper measured with text-embedding-3-small and gpt-4o-mini on larger sets: its order is what "
            "can be compared, not its numbers. An order is called decided at the budgets where the corrected p is below .05.",
        ],
    )
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(args.work or temporary)
        sections = [
            run(name, layout, names, budgets, args.embedder, work)
            for name in (args.sets.split(",") if not args.only_parity else ())
            for layout in args.layouts.split(",")
        ]
        family = corrected(sections)
        if family:
            print(f"Comparisons on this page: {len(family):,}.\n")
        for section in sections:
            report(section, family)
        if args.nltk_data is not None:
            parity(args.embedder, work, args.nltk_data)
    print(f"Made in {(time.monotonic() - started) / 60:.0f} minutes by `python benches/solutions.py`.")


@dataclass(frozen=True)
class Section:
    """One question set in one layout: all solutions, scored."""

    title: str
    solutions: Sequence[str]
    budgets: list[int]
    outcomes: Sequence[Outcome]
    parts: list[list[str]] = field(default_factory=list)
    """Rows of what the parts of ket-rag-p-150's contexts hold."""

    @property
    def found(self) -> dict[str, Outcome]:
        """The outcomes by name."""
        return {outcome.name: outcome for outcome in self.outcomes}

    def comparisons(self) -> Iterator[tuple[str, str]]:
        """(the one, the other) of every p in the tables: against text-rag, and KET-RAG-P against the rest."""
        for outcome in self.outcomes:
            yield rival(outcome), outcome.name
        for suffix in ("-150", ""):
            yield from ((f"{name}{suffix}", f"ket-rag-p{suffix}") for name in self.solutions)


Family = dict[tuple[str, str, str, int], tuple[PairedDifference, float]]
"""Of (section, the one, the other, budget) the difference, and its p corrected over all of them."""


def rival(outcome: Outcome) -> str:
    """Return the solution that another is compared with in the table."""
    return "text-rag-150" if outcome.name.partition(",")[0].endswith("-150") else "text-rag"


def corrected(sections: Sequence[Section]) -> Family:
    """All comparisons of the page, each counted once."""
    found: dict[tuple[str, str, str, int], PairedDifference] = {}
    for section in sections:
        outcomes = section.found
        for one, other in section.comparisons():
            a, b = outcomes.get(one), outcomes.get(other)
            if a is None or b is None or a is b or not (a.results and b.results):
                continue
            for budget in section.budgets:
                difference = gap(a, b, budget)
                if difference is not None:
                    found[section.title, one, other, budget] = difference
    return dict(
        zip(found, zip(found.values(), holm([d.p for d in found.values()]), strict=True), strict=True)
    )


def run(
    name: str,
    layout: str,
    names: Sequence[str],
    budgets: list[int],
    embedder: str,
    work: Path,
) -> Section:
    """Builds and scores every solution in both settings."""
    # Both layouts share the vectors of equal texts; whatever was built there before is built anew.
    folder = work / name
    folder.mkdir(parents=True, exist_ok=True)
    dataset = load_dataset(require_data(name))
    llm = "heuristic"
    recorded = dataset.folder / RECORDED
    if recorded.is_file():
        llm = f"replay:{recorded}"
    if layout == "concatenated":
        if recorded.is_file():
            llm = f"replay:{moved(dataset, recorded, folder)}"
        dataset = concatenate(dataset, SEED)
    rows = [
        Configuration(f"{solution}{suffix}", {"system": f"{solution}{suffix}", **_read(solution, llm)})
        for suffix in ("-150", "")
        for solution in names
    ]
    if "ket-rag-p" in names:
        # Whether the tables of the skeleton earn their share of the budget (specs 10: theta).
        rows += [
            Configuration(
                f"ket-rag-p-150, kg_share {share:g}",
                {"system": "ket-rag-p-150", "kg_share": share, "llm": llm},
            )
            for share in SHARES
        ]
        # At 1,200 tokens a chunk is split for the texts: whether the gain is the skeleton's or the split's.
        rows.append(
            Configuration("ket-rag-p, kg_share 0", {"system": "ket-rag-p", "kg_share": 0.0, "llm": llm})
        )
    # The product's own rule: the texts get what the skeleton leaves, and print no source again.
    rows += [
        Configuration(
            f"{name}{suffix}, rollover texts",
            {"system": f"{name}{suffix}", "rollover": "texts", "llm": llm},
        )
        for suffix in ("-150", "")
        for name in ("hybrid-rag", "ket-rag-p")
        if name in names
    ]
    # The product's own units: about 200 tokens, cut at sentence ends.
    rows.append(Configuration("walk", {"system": "walk"}))
    if "ket-rag-p" in names:
        rows += [
            Configuration(f"{mode}, default units", {"system": "default", "mode": mode, "llm": llm})
            for mode in ("keyword", "ket", "ket-walk")
        ]
    common = Settings(embedder=embedder)
    bench = Bench(
        dataset,
        dataset.sources,
        folder,
        common,
        budgets,
        apart=False,
        anew=True,
        tell=lambda line: print(line, file=sys.stderr),
    )
    outcomes = bench.run(rows, order(rows, common))
    title = f"{name}, {'each passage a document' if layout == 'passages' else 'one document, shuffled'}"
    parts: list[list[str]] = []
    if "ket-rag-p" in names:
        parts = parts_of_ket(dataset, folder, common.having(llm=llm, system="ket-rag-p-150"), budgets)
    return Section(title, names, budgets, outcomes, parts)


def report(section: Section, family: Family) -> None:
    """Prints the tables of one question set in one layout."""
    print(f"## {section.title}\n")
    outcomes, budgets = section.outcomes, section.budgets
    cells = []
    for outcome in outcomes:
        tested = [family.get((section.title, rival(outcome), outcome.name, budget)) for budget in budgets]
        shown = (cell(outcome, budget, found) for budget, found in zip(budgets, tested, strict=True))
        cells.append([outcome.name, *shown, units(outcome)])
    table(["solution", *(f"coverage at {budget:,}" for budget in budgets), "chunks / units / core"], cells)
    for outcome in outcomes:
        why = outcome.error or next((row.reason for row in outcome.rows if row.reason), None)
        if why:
            print(f"- {outcome.name}: not run: {why}")
    print()
    for budget in budgets:
        print(f"Order at {budget:,}: {rank(outcomes, budget)}.\n")
    claims(section, family)
    if section.parts:
        print("What the parts of ket-rag-p-150's contexts hold, each taken alone:\n")
        table(
            ["budget", "part", "tokens", "% of questions whose answer it holds", "points per 1,000 tokens"],
            section.parts,
        )


def parts_of_ket(dataset: DataSet, folder: Path, settings: Settings, budgets: list[int]) -> list[list[str]]:
    """Print which part of KET-RAG's contexts contains the answers, each table taken alone."""
    counted = [q for q in dataset.questions if q.answers and not metrics.is_yes_no(q.answers)]
    rows: list[list[str]] = []
    with Index.build(
        dataset.sources, folder / "shared", settings=settings, replace=True, rebuild=True
    ) as index:
        if "ket" not in index.modes:
            return rows
        found = index.retrieve_budgets([q.text for q in counted], mode="ket", budgets=budgets)
    for place, budget in enumerate(budgets):
        parts: dict[str, list[tuple[int, bool]]] = {}
        for question, contexts in zip(counted, found, strict=True):
            for section in contexts[place].sections:
                held = bool(metrics.coverage(section.text, question.answers))
                parts.setdefault(section.name, []).append((section.tokens, held))
        for name, values in parts.items():
            tokens, share = sum(t for t, _ in values) / len(counted), sum(h for _, h in values) / len(counted)
            per = 1000 * share / tokens if tokens else 0.0
            rows.append([f"{budget:,}", name, f"{tokens:,.0f}", f"{100 * share:.0f}", f"{100 * per:.1f}"])
    return rows


def claims(section: Section, family: Family) -> None:
    """The paper: KET-RAG-P above every other solution. Here: by how much, and whether it may be chance."""
    rows = []
    for suffix in ("-150", ""):
        best = f"ket-rag-p{suffix}"
        for name in section.solutions:
            other = f"{name}{suffix}"
            gaps = {budget: family.get((section.title, other, best, budget)) for budget in section.budgets}
            if any(gaps.values()):
                shown = (difference_text(found) for found in gaps.values())
                rows.append([f"{best} against {other}", *shown, verdict(gaps)])
    if rows:
        print("The paper has KET-RAG-P above every other solution:\n")
        table(["pair", *(f"difference at {budget:,}" for budget in section.budgets), "so"], rows)


def difference_text(found: tuple[PairedDifference, float] | None) -> str:
    """`+4 (p 0.29)`."""
    return "-" if found is None else f"{100 * found[0].difference:+.0f} ({p_text(found[1])})"


def p_text(p: float) -> str:
    """`p 0.29`; what would round to 0 is below .005."""
    return f"p {p:.2f}" if p >= 0.005 else "p < 0.005"


def verdict(gaps: dict[int, tuple[PairedDifference, float] | None]) -> str:
    """At which budgets the order is decided, and how."""
    said = []
    for sign, words in ((1, "as in the paper"), (-1, "the other way round")):
        sure = [
            budget
            for budget, found in gaps.items()
            if found is not None and found[1] < 0.05 and found[0].difference * sign > 0
        ]
        if sure:
            all_of_them = len(sure) == len(gaps)
            said.append(words if all_of_them else f"{words} at {' and '.join(f'{b:,}' for b in sure)}")
    return ", ".join(said) or "undecided"


def parity(embedder: str, work: Path, nltk: str) -> None:
    """Compare the preset `parity` with the published functions, in questions of 100 (yes/no questions count)."""
    dataset = concatenate(load_dataset(require_data(SETS[0])), SEED, titles=False)
    common = Settings(embedder=embedder, nltk_data=nltk, precision="fp32")
    rows = [
        Configuration(f"{units}, {mode}", {"system": "parity", **own, "mode": mode})
        for units, own, mode, _ in PUBLISHED
    ]
    folder = work / SETS[0]
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(dataset, dataset.sources, folder, common, (12000, 6000, 3000), apart=False, anew=True)
    outcomes = bench.run(rows, order(rows, common))
    print("## Preset parity beside the published functions\n")
    print(
        f"Questions covered of 100 at 12,000 / 6,000 / 3,000 tokens: {SETS[0]}, texts without titles, one document.\n"
    )
    cells = []
    for outcome, (units, _, mode, published) in zip(outcomes, PUBLISHED, strict=True):
        ours = [
            sum(bool(r.covered) for r in outcome.results if r.budget == budget)
            for budget in (12000, 6000, 3000)
        ]
        gaps = " / ".join(f"{a - b:+d}" for a, b in zip(ours, published, strict=True))
        cells.append([units, mode, " / ".join(map(str, ours)), " / ".join(map(str, published)), gaps])
    table(["units", "channel", "parity", "published", "difference"], cells)


def cell(outcome: Outcome, budget: int, found: tuple[PairedDifference, float] | None) -> str:
    """`78 (70 to 86), p 0.03`."""
    row = next((row for row in outcome.rows if row.budget == budget), None)
    if row is None or row.coverage is None:
        return "not run"
    low, high = row.ci95["coverage"]
    text = f"{100 * row.coverage:.0f} ({100 * low:.0f} to {100 * high:.0f})"
    return text if found is None else f"{text}, {p_text(found[1])}"


def gap(a: Outcome, b: Outcome, budget: int) -> PairedDifference | None:
    """Coverage of B minus A on the questions that have one on both."""
    coverage = METRICS["coverage"]
    first, second = ({r.question: coverage(r) for r in o.results if r.budget == budget} for o in (a, b))
    pairs = [(x, y) for q, x in first.items() if x is not None and (y := second.get(q)) is not None]
    return compare_paired([x for x, _ in pairs], [y for _, y in pairs])


def units(outcome: Outcome) -> str:
    """Sizes of what was searched."""
    counts = outcome.counts
    if not counts:
        return "-"
    return " / ".join(f"{counts.get(name, 0):,}" for name in ("chunks", "subchunks", "core_chunks"))


def rank(outcomes: Sequence[Outcome], budget: int) -> str:
    """Names by coverage, those of equal coverage together."""
    found: dict[float, list[str]] = {}
    for outcome in outcomes:
        for row in outcome.rows:
            if row.budget == budget and row.coverage is not None:
                found.setdefault(row.coverage, []).append(outcome.name)
    return " > ".join(" = ".join(names) for _, names in sorted(found.items(), reverse=True))


def moved(dataset: DataSet, recorded: Path, folder: Path) -> Path:
    """The recording of the passages as one of the concatenated document, by their places in it."""
    spans = places(dataset, SEED)
    path = folder / "recording.jsonl"
    with RecordingWriter(path, {"from": recorded.name, "seed": SEED}, replace=True) as writer:
        for line in recorded.read_bytes().splitlines():
            record = read_line(line)
            if record is not None and record.document in spans:
                writer.write(NAME, *spans[record.document], record.extraction)
    return path


def _read(solution: str, llm: str) -> dict[str, str]:
    needs = ("ms-graph-rag", "hybrid-rag", "skeleton-rag", "ket-rag-u", "ket-rag-p")
    return {"llm": llm} if solution in needs else {}


def _shown(embedder: str) -> str:
    kind, colon, rest = embedder.partition(":")
    if not colon:
        return embedder
    # Not the name in config.json: that of a fine-tuned model is often the name of the model it was made from.
    card = Path(rest) / "README.md"
    lines = card.read_text("utf-8").splitlines() if card.is_file() else []
    name = next((line[2:].strip() for line in lines if line.startswith("# ")), Path(rest).name)
    return f"{kind} {name}"


if __name__ == "__main__":
    main()
