"""A question with a filter beside the same without: `python benches/filters.py`.

Real passages with made-up metadata: a number drawn for each document, so that a filter leaves any share of them. The
units are checked against the unfiltered ranking without what the filter leaves out (bm25, text).
"""

from __future__ import annotations

import dataclasses
import random
import tempfile
import time
from pathlib import Path

from common import header, median, table
from ketrag_fast import Index
from retrieval import documents, questions

SETS = ["musique-train100", "2wiki-101"]
SHARES = (1.0, 0.9, 0.1, 0.001)
BUDGET = 4000
ROUNDS = 3


def main() -> None:
    """Prints the table."""
    chance = random.Random(7)
    made = [dataclasses.replace(d, metadata={"draw": chance.random()}) for d in documents(SETS)]
    asked = questions(SETS)
    with tempfile.TemporaryDirectory() as folder, Index.build(made, Path(folder) / "ix") as index:
        count = len(made)
        header(
            f"Questions with a filter over {count:,} documents",
            [
                f"{len(asked)} questions, one thread, budget {BUDGET} tokens; no model.",
                "Milliseconds of the core a question: the median of all, each the least of three rounds.",
                "Same: every list is the unfiltered one without what the filter leaves out. In walk what is left out",
                "still leads to others, and as many candidates as ever are taken from what is left.",
            ],
        )
        rows = []
        for mode in ("bm25", "text", "fused", "walk"):
            base = 0.0
            for share in (None, *SHARES):
                filter_ = None if share is None else f"draw<{share}"
                index.retrieve(asked[0], mode=mode, budget=BUDGET, filter=filter_)
                times, same = [], True
                for question in asked:
                    least = min(
                        index.retrieve(question, mode=mode, budget=BUDGET, filter=filter_).timings_ms[
                            "search"
                        ]
                        for _ in range(ROUNDS)
                    )
                    times.append(least)
                if share is not None and mode in ("bm25", "text"):
                    same = all(_same(index, q, mode, share, made) for q in asked[:20])
                took = median(times)
                base = base or took
                label = "none" if share is None else f"leaves {100 * share:g} %"
                rows.append(
                    [
                        mode,
                        label,
                        took,
                        took / base,
                        ("yes" if same else "**no**") if mode in ("bm25", "text") and share else "",
                    ]
                )
        table(["mode", "filter", "ms", "times the unfiltered", "same"], rows)
        started = time.perf_counter()
        with Index.open(Path(folder) / "ix") as fresh:
            fresh.retrieve(asked[0], mode="bm25", filter="draw<0.5")
            print(
                f"The first filter of an opened index reads the metadata: {time.perf_counter() - started:.2f} s\n"
            )


def _same(index: Index, question: str, mode: str, share: float, made: list) -> bool:  # type: ignore[type-arg]
    left = {d.id for d in made if d.metadata["draw"] < share}
    whole = index.retrieve(question, mode=mode, budget=10_000_000)
    some = index.retrieve(question, mode=mode, budget=10_000_000, filter=f"draw<{share}")
    return [p.document for p in some.passages] == [p.document for p in whole.passages if p.document in left]


if __name__ == "__main__":
    main()
