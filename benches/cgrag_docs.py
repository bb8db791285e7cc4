"""CG-RAG on links made by people: the pages of this project, and the articles of examples/polar.

    python benches/cgrag_docs.py [--embedder native:FOLDER]

The pages are README, ARCHITECTURE, CONTRIBUTING and docs/, with the links between them; what is to be found for
each of `docs_questions.tsv` is one section of one page, named by hand before anything was ranked. The articles of
examples/polar have no links: they cite the articles whose subject they mention. Nothing is chosen on either.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from cgrag import mentions_of
from common import header, table
from ketrag_fast import Index, Settings
from ketrag_fast.lab.eval import load_dataset
from ketrag_fast.lab.eval.metrics import ndcg_at
from ketrag_fast.lab.eval.paired import compare_paired, holm
from ketrag_fast.types import Passage

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/*.md")
MODES = "bm25,text,fused,walk,cg-rag"
DEPTH = 60
Name = Callable[[Passage], str]
Asked = Sequence[tuple[str, frozenset[str]]]


def pages(folder: Path) -> list[str]:
    """Copy the project's pages into a folder and return it."""
    for page in PAGES:
        for file in sorted(ROOT.glob(page)):
            to = folder / file.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, to)
    return [str(folder)]


def section_of(passage: Passage) -> str:
    """The page, and the heading right above the passage."""
    heading = passage.location.get("heading") or [""]
    return f"{passage.document}#{heading[-1]}"


def questions() -> list[tuple[str, frozenset[str]]]:
    """(question, the section that answers it)."""
    rows = csv.DictReader((ROOT / "benches" / "docs_questions.tsv").open(encoding="utf-8"), delimiter="\t")
    return [(row["question"], frozenset([row["section"]])) for row in rows]


def configurations() -> list[tuple[str, dict[str, object]]]:
    """The parts of CG-RAG, the walk, and CG-RAG by layers and direction."""
    rows: list[tuple[str, dict[str, object]]] = [(m, {"mode": m}) for m in ("bm25", "text", "fused", "walk")]
    rows.append(("cg-rag, no links", {"lesegr_layers": 1, "citation_direction": "none"}))
    for layers in (1, 2):
        for direction in ("cited_to_citing", "citing_to_cited", "both"):
            given: dict[str, object] = {"lesegr_layers": layers, "citation_direction": direction}
            rows.append((f"cg-rag, K = {layers}, {direction}", given))
    return [(name, {"mode": "cg-rag", **given}) for name, given in rows]


def scores(path: Path, asked: Asked, name: Name, given: dict[str, object]) -> np.ndarray:
    """By question: nDCG@10, Hit@1, Hit@5, the reciprocal rank."""
    found = []
    with Index.open(path, settings=Settings(**given)) as index:
        contexts = index.retrieve_many([text for text, _ in asked], budget=1_000_000, top=DEPTH)
    for (_, gold), context in zip(asked, contexts, strict=True):
        ranked = list(dict.fromkeys(name(passage) for passage in context.passages))
        rank = next((at for at, one in enumerate(ranked, 1) if one in gold), None)
        gain = ndcg_at(ranked, dict.fromkeys(gold, 1.0), 10)
        found.append(
            (gain or 0.0, float(rank == 1), float(rank is not None and rank <= 5), 1 / rank if rank else 0)
        )
    return np.array(found)


def scored(path: Path, title: str, asked: Asked, name: Name) -> None:
    """A table, and tests of every form of CG-RAG against `fused` and against itself without links."""
    with Index.open(path) as index:
        told = index.stats()["systems"]["cg-rag"]
    values = {label: scores(path, asked, name, given) for label, given in configurations()}
    tests = {
        (label, base): compare_paired(values[base][:, 0].tolist(), values[label][:, 0].tolist())
        for label in values
        if label.startswith("cg-rag")
        for base in ("fused", "cg-rag, no links")
        if label != base
    }
    ps = [1.0 if d is None else d.p for d in tests.values()]
    corrected = dict(zip(tests, holm(ps), strict=True))
    print(f"## CG-RAG: {title}\n")
    print(
        f"{len(asked)} questions; {told['citations']:,} links, {told['unresolved_citations']:,} that lead nowhere; "
        f"p of nDCG@10, in brackets corrected (Holm) for {len(tests)} comparisons.\n"
    )

    def p(label: str, base: str) -> str:
        d = tests.get((label, base))
        return "" if d is None else f"{100 * d.difference:+.1f}, p = {d.p:.3f} ({corrected[label, base]:.2f})"

    table(
        ["ranking", "nDCG@10", "Hit@1", "Hit@5", "MRR", "against fused", "against no links"],
        [
            [
                label,
                *(f"{100 * x:.1f}" for x in own.mean(axis=0)),
                p(label, "fused"),
                p(label, "cg-rag, no links"),
            ]
            for label, own in values.items()
        ],
    )


def main() -> None:
    """Print the sections."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--embedder", help="a model, beside the built-in vectors")
    args = parser.parse_args()
    header(
        "CG-RAG: documentation and articles", ["No language model; nothing was chosen on these questions."]
    )
    polar = load_dataset(ROOT / "examples" / "polar")
    of_polar = [(q.text, q.gold) for q in polar.questions if q.gold]
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        for label, embedder in (("no model", "builtin"), ("with a model", args.embedder)):
            if embedder is None:
                continue
            given = Settings(
                system="cg-rag", modes=MODES, embedder=embedder, cut="sentences", chunk_tokens=200
            )
            made = {
                "docs": (pages(work / "pages"), f"this project's pages, {label}", questions(), section_of),
                "polar": (
                    mentions_of(polar, work / f"mentions-{label}"),
                    f"examples/polar with mentions as links, {label}",
                    of_polar,
                    lambda passage: passage.document,
                ),
            }
            for name, (documents, title, asked, named) in made.items():
                path = work / f"{name}-{embedder == 'builtin'}"
                with Index.build(documents, path, settings=given):
                    pass
                scored(path, title, asked, named)


if __name__ == "__main__":
    sys.exit(main())
