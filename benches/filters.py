"""Questions with a filter, compared with the same without; and rights: an index of the documents that a caller may see."""

from __future__ import annotations

import dataclasses
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from common import arguments, median, publish, target
from common import result_table as table
from ketrag_fast import Document, Index, Settings
from retrieval import documents, questions

SHARES = (0.9, 0.1, 0.001)
MODES = ("bm25", "text", "walk", "keyword")
BUDGET = 4000


def compared(index: Index, mode: str, asked: list[str], rounds: int) -> list[list[Any]]:
    """Return a row for each share: the least time of each question, in rounds in which all filters take turns."""
    filters = [None, *(f"draw<{share}" for share in SHARES)]
    order = random.Random(5)
    times: list[list[float]] = [[] for _ in filters]
    for question in asked:
        least = [float("inf")] * len(filters)
        for _ in range(rounds):
            turn = list(range(len(filters)))
            order.shuffle(turn)  # a question finds other things in the caches after another
            for at in turn:
                begin = time.perf_counter()
                index.retrieve(question, mode=mode, budget=BUDGET, filter=filters[at])
                least[at] = min(least[at], time.perf_counter() - begin)
        for at, best in enumerate(least):
            times[at].append(1000 * best)
    rows: list[list[Any]] = []
    for share, own in zip((None, *SHARES), times, strict=True):
        ratio = median([mine / plain for mine, plain in zip(own, times[0], strict=True)])
        label = "none" if share is None else f"{100 * share:g} % left"
        rows.append([mode, label, median(own), ratio, "" if share is None else target(ratio, most=1)])
    return rows


def rights(folder: Path, made: list[Document], settings: Settings) -> list[list[Any]]:
    """Return a row for each share: a build of these documents alone, and the part of the whole index."""
    rows: list[list[Any]] = []
    for share in SHARES:
        own = [d for d in made if float(str(d.metadata["draw"])) < share]
        if not own:
            continue
        begin = time.perf_counter()
        alone = Index.build(own, folder / f"alone-{share}", settings=settings)
        build = time.perf_counter() - begin
        with Index.open(folder / "ix") as index, alone:
            begin = time.perf_counter()
            part = index.allowed(f"draw<{share}")
            first = time.perf_counter() - begin
            equal = part.digest == alone.digest
        with Index.open(folder / "ix") as index:
            begin = time.perf_counter()
            index.allowed(f"draw<{share}")
            again = 1000 * (time.perf_counter() - begin)
        rows.append([len(own), build, first, again, equal])
    return rows


def main() -> None:
    """Measure filters and rights."""
    args = arguments(__doc__).parse_args()
    chance = random.Random(7)
    made = [dataclasses.replace(d, metadata={"draw": chance.random()}) for d in documents()]
    asked = questions()[::3]
    if args.smoke:
        made, asked = made[:300], asked[:3]
    settings = Settings(modes=",".join(MODES))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Index.build(made, folder / "ix", settings=settings) as index:
            rows = [row for mode in MODES for row in compared(index, mode, asked, 1 if args.smoke else 5)]
        allowed = rights(folder, made, settings)
    columns = ["documents allowed", "build of these alone, s", "first use, s", "later opening, ms", "equal"]
    publish(
        [
            table("", ["mode", "filter", "ms", "times the unfiltered", "target"], rows),
            table(
                "Rights: an index of the documents that a caller may see, built on first use",
                columns,
                allowed,
            ),
        ],
        f"{len(made):,} passages with a number drawn for each, {len(asked)} questions, one thread, {BUDGET:,} tokens.",
    )


if __name__ == "__main__":
    main()
