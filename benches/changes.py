"""Small changes of large indexes: one, many one after another, and questions in between.

python benches/changes.py                                 # 8,000 and 300,000 documents, 100 changes
python benches/changes.py --large 100000 --many 1000
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import retrieval
from common import arguments, median, publish, require_model, target
from common import result_table as table
from generated import documents
from generated import question as made_question
from ketrag_fast import Document, Index, Settings

REPEAT = 5
MODES = ("bm25", "walk")
MOST = {500: 0.3, 8_000: 0.2, 300_000: 0.2}
"""Seconds until a reader sees a change, at most, by number of documents."""
WORST = 2.0
QUESTIONS = 40
REAL = ("musique-dev", "2wiki-dev", "hotpotqa-dev", "2wiki-101")
"""Question sets with real passages, 38,340 in all: their sentences have names in many forms."""


def clock(work: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def question(document: Document) -> str:
    """Return a question about words of a document."""
    return made_question(document) if len(document.text.split()) > 41 else f"What is {document.title}?"


def said(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclass
class Case:
    """An index of generated documents, or of real passages, and new texts for its changes."""

    count: int
    modes: str
    embedder: str | None
    place: Path
    many: int = 0
    is_real: bool = False
    now: list[Document] = field(default_factory=list)
    new: list[Document] = field(default_factory=list)
    build: float = 0.0

    def start(self) -> Index:
        """Build the index, and open it."""
        if self.is_real:
            made = retrieval.documents(REAL)
            self.count = min(self.count, len(made) - REPEAT)
            made = [made[at] for at in np.random.default_rng(1).permutation(len(made))]
        else:
            made = list(documents(self.count + REPEAT + self.many))
        self.now, self.new = made[: self.count], made[self.count : self.count + REPEAT + self.many]
        # The made-up words have many tokens; a model reads the first of them.
        settings = Settings(modes=self.modes, threads=2, chunk_tokens=2000)
        if self.embedder is not None:
            settings = settings.having(embedder=self.embedder)
        began = time.perf_counter()
        index = Index.build(self.now, self.place, settings=settings)
        self.build = time.perf_counter() - began
        said(f"{self.count:,} documents, {self.modes}: built in {self.build:.1f} s")
        return index

    def changed(self, row: int) -> Document:
        """Replace the text of a document by the next new one, and return it."""
        self.now[row] = replace(self.new.pop(), id=self.now[row].id)
        return self.now[row]

    def equal(self, index: Index) -> bool:
        """Fold the index, and return whether it has the bytes of a build of its documents."""
        index.update(fold=True)
        fresh = self.place.with_name("fresh")
        with Index.build(self.now, fresh, settings=index_settings(index)) as built:
            same = built.digest == index.digest
        shutil.rmtree(fresh)
        return same


def index_settings(index: Index) -> Settings:
    """Return the settings with which an index was built."""
    own = index.stats()["settings"]
    return Settings(modes=own["modes"], threads=2, chunk_tokens=own["chunk_tokens"], embedder=own["embedder"])


def single(case: Case, index: Index) -> list[Any]:
    """Return a row: one document is changed or removed, until the writer is done, and until a reader answers."""
    published, seen, removed = [], [], []
    with Index.open(case.place) as reader:
        mode = "walk" if "walk" in reader.modes else "bm25"
        reader.retrieve(question(case.now[0]), mode=mode)

        def look(text: str) -> None:
            reader.refresh()
            reader.retrieve(text, mode=mode)

        for step in range(REPEAT):
            row = (2 * step + 1) * len(case.now) // (2 * REPEAT)
            new = case.changed(row)
            took = clock(lambda d=new: index.update(add=[d]))
            published.append(took)
            seen.append(took + clock(lambda d=new: look(question(d))))
            gone = case.now.pop(row)
            took = clock(lambda d=gone: index.update(remove=d.id))
            removed.append(took + clock(lambda d=gone: look(question(d))))
    found = [median(published), median(seen), median(removed)]
    bound = target(max(found[1:]), most=0.2 if case.is_real else MOST.get(case.count, 1.0))
    vectors = "MiniLM" if case.embedder else "none"
    texts = "real" if case.is_real else "generated"
    return [case.count, texts, case.modes, vectors, case.build, *found, bound]


def several(case: Case, index: Index) -> list[Any]:
    """Return a row: many documents are changed one after another."""
    took = []
    for step in range(case.many):
        new = case.changed((step * 7919) % len(case.now))
        took.append(clock(lambda d=new: index.update(add=[d])))
    tenth = max(case.many // 10, 1)
    mean, worst = sum(took) / len(took), max(took)
    row = [case.count, case.many, mean, sum(took[:tenth]) / tenth, sum(took[-tenth:]) / tenth, worst]
    bounds = (target(mean, most=MOST.get(case.count, 1.0)), target(worst, most=WORST))
    return [*row, *bounds]


def asked(indexes: Sequence[Index], texts: Sequence[str]) -> list[dict[str, float]]:
    """Return the median milliseconds of a question in each mode, of indexes that are asked in turn.

    One round is not counted; of the other two the faster one counts.
    """
    found: list[dict[str, float]] = [{} for _ in indexes]
    for mode in MODES:
        took = np.array(
            [
                [
                    [1000 * clock(lambda i=i, t=t, m=mode: i.retrieve(t, mode=m)) for i in indexes]
                    for t in texts
                ]
                for _ in "123"
            ]
        )
        for own, values in zip(found, took[1:].min(axis=0).T, strict=True):
            own[mode] = float(np.median(values))
    return found


def ratios(what: str, found: Sequence[dict[str, float]], most: float) -> list[list[Any]]:
    """Return a row for each mode: the first index against the second."""
    rows = []
    for mode in MODES:
        one, other = (times[mode] for times in found)
        rows.append([what, mode, one, other, one / other, target(one / other, most=most)])
    return rows


def main() -> None:
    """Measure."""
    parser = arguments(__doc__)
    parser.add_argument("--large", type=int, default=300_000, help="documents of the largest index")
    parser.add_argument("--many", type=int, default=100, help="changes one after another")
    args = parser.parse_args()
    large, many = (900, 12) if args.smoke else (args.large, args.many)
    cases: list[tuple[int, str, str | None]] = []
    if not args.smoke:
        cases = [(8_000, "bm25,walk", None), (8_000, "auto", None)]
        cases.append((500, "auto", f"native:{require_model()}"))  # 256 tokens each
    one, same = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        singles = [Case(*case, folder / "index") for case in cases]
        if not args.smoke:
            singles.append(Case(10**6, "bm25,walk", None, folder / "index", is_real=True))
        for case in singles:
            with case.start() as index:
                one.append(single(case, index))
                same.append(case.equal(index))
            shutil.rmtree(case.place)
        case = Case(large, "bm25,walk", None, folder / "index", many)
        with case.start() as index:
            one.append(single(case, index))
            row = several(case, index)
            said(f"{many} changes: mean {row[2]:.2f} s, worst {row[5]:.2f} s")
            texts = [question(d) for d in case.now[:: max(len(case.now) // QUESTIONS, 1)]]
            shutil.copytree(case.place, folder / "delta")
            same.append(case.equal(index))
            with Index.open(folder / "delta", settings=Settings(threads=2)) as pending:
                about = f"a delta of {many:,} changes, {large:,} documents"
                compared = ratios(about, asked([pending, index], texts), 1.1)
        shutil.rmtree(case.place)
    if not all(same):
        raise RuntimeError("a changed index differs from a build of its documents")
    columns = [
        "documents",
        "texts",
        "modes",
        "vectors",
        "build, s",
        "change, s",
        "change seen, s",
        "removal seen, s",
        "target, s",
    ]
    each = [
        "documents",
        "changes",
        "mean, s",
        "first tenth, s",
        "last tenth, s",
        "worst, s",
        "mean, target",
        "worst, target",
    ]
    publish(
        [
            table("One change", columns, one),
            table("Changes one after another", each, [row]),
            table("Questions", ["index", "mode", "ms", "one index, ms", "ratio", "target"], compared),
        ],
        f"Generated documents of some 88 words, or real passages of the question sets; medians of {REPEAT} changes, "
        "two threads; `seen`: another reader has switched to the new generation and answered a question about the "
        "changed text. Indexes that are compared are asked in turn.",
        [
            "After all changes each index was folded, and had the bytes of a build of its documents.",
            "`auto` without a model fits a vector space on all documents, which is repeated after every change.",
        ],
    )


if __name__ == "__main__":
    main()
