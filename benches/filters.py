"""Questions with a filter, compared with the same without: `python benches/filters.py`.

Real passages with made-up metadata: a number drawn for each document, so that a filter leaves any share of them.
Each question is run without and with every filter in turn, and their times are compared question by question.
The units are checked against the unfiltered ranking without what the filter leaves out (bm25, text, knng), and what
is allowed against an index of these documents alone.
"""

from __future__ import annotations

import dataclasses
import random
import tempfile
import time
from pathlib import Path

from common import header, median, table
from ketrag_fast import Index, Settings
from retrieval import documents, questions

SETS = ["musique-train100", "2wiki-101"]
SHARES = (1.0, 0.9, 0.1, 0.001)
MODES = ("bm25", "text", "fused", "walk", "keyword", "knng", "concepts")
CHECKED = ("bm25", "text", "knng")
BUDGET = 4000
ROUNDS = 7


def main() -> None:
    """Print the tables."""
    chance = random.Random(7)
    made = [dataclasses.replace(d, metadata={"draw": chance.random()}) for d in documents(SETS)]
    asked = questions(SETS)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        settings = Settings(modes=",".join(MODES))
        with Index.build(made, place / "ix", settings=settings) as index:
            header(
                f"Questions with a filter over {len(made):,} documents",
                [
                    f"{len(asked)} questions, one thread, budget {BUDGET} tokens; no model.",
                    f"Milliseconds of the whole call, the least of {ROUNDS} rounds in which all filters take turns: the",
                    "median of the questions, and the median of their ratios to the same question unfiltered.",
                    "Same: every list is the unfiltered one without what the filter leaves out. In the other modes what",
                    "is left out still leads to others, or the pool is filled from what is left.",
                ],
            )
            rows = []
            for mode in MODES:
                rows += compared(index, mode, asked, made)
            table(["mode", "filter", "ms", "times the unfiltered", "same"], rows)
        allowed(place, made, asked, settings)


def compared(index: Index, mode: str, asked: list[str], made: list) -> list[list[object]]:  # type: ignore[type-arg]
    """A row for each share."""
    filters = [None, *(f"draw<{share}" for share in SHARES)]
    order = random.Random(5)
    times: list[list[float]] = [[] for _ in filters]
    for question in asked:
        least = [float("inf")] * len(filters)
        for _ in range(ROUNDS):
            turn = list(range(len(filters)))
            order.shuffle(turn)  # who comes after whom finds other things in the caches
            for at in turn:
                begin = time.perf_counter()
                index.retrieve(question, mode=mode, budget=BUDGET, filter=filters[at])
                least[at] = min(least[at], time.perf_counter() - begin)
        for at, best in enumerate(least):
            times[at].append(1000 * best)
    rows: list[list[object]] = []
    for share, own in zip((None, *SHARES), times, strict=True):
        ratio = median([mine / plain for mine, plain in zip(own, times[0], strict=True)])
        told = ""
        if share is not None and mode in CHECKED:
            told = "yes" if all(same(index, q, mode, share, made) for q in asked[:20]) else "**no**"
        label = "none" if share is None else f"leaves {100 * share:g} %"
        rows.append([mode, label, median(own), ratio, told])
    return rows


def same(index: Index, question: str, mode: str, share: float, made: list) -> bool:  # type: ignore[type-arg]
    """Whether the filtered list is the whole one without the others."""
    left = {d.id for d in made if d.metadata["draw"] < share}
    whole = index.retrieve(question, mode=mode, budget=10_000_000)
    some = index.retrieve(question, mode=mode, budget=10_000_000, filter=f"draw<{share}")
    return [p.document for p in some.passages] == [p.document for p in whole.passages if p.document in left]


def allowed(place: Path, made: list, asked: list[str], settings: Settings) -> None:  # type: ignore[type-arg]
    """What rights cost: once, and then."""
    begin = time.perf_counter()
    with Index.open(place / "ix") as fresh:
        fresh.retrieve(asked[0], mode="bm25", filter="draw<0.5")
        first = time.perf_counter() - begin
    rows = []
    for share in (0.9, 0.1, 0.001):
        own = [d for d in made if d.metadata["draw"] < share]
        begin = time.perf_counter()
        alone = Index.build(own, place / f"alone-{share}", settings=settings)
        build = time.perf_counter() - begin
        with Index.open(place / "ix") as index, alone:
            begin = time.perf_counter()
            part = index.allowed(f"draw<{share}")
            took = time.perf_counter() - begin
            equal = part.digest == alone.digest
            times: tuple[list[float], list[float]] = ([], [])
            for question in asked:
                texts = []
                for way, into in enumerate(times):
                    least = float("inf")
                    for _ in range(ROUNDS):
                        begin = time.perf_counter()
                        if way:
                            text = alone.retrieve(question, mode="walk", budget=BUDGET).text
                        else:
                            text = index.retrieve(
                                question, mode="walk", budget=BUDGET, allow=f"draw<{share}"
                            ).text
                        least = min(least, time.perf_counter() - begin)
                    into.append(1000 * least)
                    texts.append(text)
                equal = equal and texts[0] == texts[1]
        with Index.open(place / "ix") as index:
            begin = time.perf_counter()
            index.allowed(f"draw<{share}")
            again = 1000 * (time.perf_counter() - begin)
        ratio = median([mine / other for mine, other in zip(*times, strict=True)])
        rows.append([f"{len(own):,}", build, took, took / build, again, ratio, "yes" if equal else "**no**"])
    table(
        ["documents allowed", "built alone s", "made s", "times", "opened ms", "walk, times alone", "equal"],
        rows,
        "Rights: an index of what is allowed, made when it is first asked for",
    )
    print(f"The first filter of an opened index reads the metadata: {first:.2f} s\n")


if __name__ == "__main__":
    main()
