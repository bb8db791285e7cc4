"""One document of many is changed, or removed: seconds to the publication of the new generation."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import arguments, median, publish, require_model, target
from common import result_table as table
from generated import documents, question
from ketrag_fast import Index, Settings

REPEAT = 3
MOST = {2_000: 0.3, 8_000: 0.5, 100_000: 0.2, 300_000: 0.2}
"""Seconds that a change may take, by number of documents."""


def clock(work: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(count: int, modes: str, embedder: str | None, folder: Path) -> list[Any]:
    """Return a row."""
    made = list(documents(count + REPEAT))
    # The made-up words have many tokens; a model reads the first of them.
    settings = Settings(modes=modes, threads=2, chunk_tokens=2000)
    if embedder is not None:
        settings = settings.having(embedder=embedder)
    place = folder / "index"
    began = time.perf_counter()
    with Index.build(made[:count], place, settings=settings) as index:
        build = time.perf_counter() - began
        changes, removals, asked = [], [], []
        for step in range(REPEAT):
            name = made[(2 * step + 1) * count // (2 * REPEAT)].id
            new = replace(made[count + step], id=name)
            changes.append(clock(lambda d=new: index.update(add=[d])))
            asked.append(clock(lambda d=new: index.retrieve(question(d), mode="bm25")))
            removals.append(clock(lambda n=name: index.update(remove=n)))
        shutil.copytree(place, folder / "again")
        with (
            Index.build([], folder / "again", rebuild=True) as again,
            Index.build([], place) as folded,  # a delta is folded
        ):
            equal = again.digest == folded.digest
    shutil.rmtree(folder / "again")
    shutil.rmtree(place)
    change, bound = median(changes), target(median(changes), most=MOST.get(count, 1.0))
    vectors = "MiniLM" if embedder else "none"
    return [count, modes, vectors, build, change, median(asked), median(removals), equal, bound]


def main() -> None:
    """Measure three sizes."""
    args = arguments(__doc__).parse_args()
    cases: list[tuple[int, str, str | None]] = [(300, "bm25,walk", None)]
    if not args.smoke:
        cases = [(8_000, "bm25,walk", None), (8_000, "auto", None)]
        cases += [(100_000, "bm25,walk", None), (300_000, "bm25,walk", None)]
        cases.append((2_000, "auto", f"native:{require_model()}"))
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(*case, Path(folder)) for case in cases]
    columns = ["documents", "modes", "vectors", "build, s", "change, s"]
    columns += ["first question, s", "removal, s", "equal when folded", "target, s"]
    publish(
        [table("", columns, rows)],
        f"Generated documents of some 88 words; medians of {REPEAT} changes, two threads.",
        [
            "`auto` without a model fits a vector space on all documents, which is repeated after every change."
        ],
    )


if __name__ == "__main__":
    main()
