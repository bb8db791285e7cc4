"""Cost of verification: processor time of openings, questions and builds, with and without.

python benches/hardening.py [CORPUS]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from common import DATA, ROOT, header, table
from ketrag_fast import Index, Settings
from ketrag_fast.storage.journal import Journal, KeptReply, reply_key, seal_of
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.tables import Tables
from ketrag_fast.storage.vector_cache import VectorTable

QUESTION = "Who directed the film that the composer of Polarization wrote the music for?"
RUNS = 7


def cost(work: Callable[[], Any], runs: int = RUNS) -> float:
    """Milliseconds of processor time of all threads, the median of some runs after one that does not count."""
    found = []
    for _ in range(runs + 1):
        started = time.process_time()
        work()
        found.append(1000 * (time.process_time() - started))
    return statistics.median(found[1:])


def main() -> None:
    wanted = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA / "2wiki-101" / "corpus.jsonl"
    source = wanted if wanted.exists() else ROOT / "examples" / "polar" / "articles"
    header(
        "What verification costs",
        [
            f"{source.parent.name}/{source.name}; processor time of all threads, medians of {RUNS} runs, files cached.",
            "A share is that of the work beside it, which has to be done anyway.",
        ],
    )
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "index"
        rows = [*reading(source, path), *building(source, path), *keeping(Path(name))]
    table(["what", "ms", "beside", "ms ", "share"], rows)


def reading(source: Path, path: Path) -> list[list[str]]:
    Index.build(source, path, settings=Settings(threads=1)).close()

    def first(verify: str) -> None:
        with Index.open(path, settings=Settings(verify=verify, threads=1)) as index:
            index.retrieve(QUESTION)

    rows = []
    bare = cost(lambda: first("sizes"))
    for verify in ("blocks", "full"):
        own = cost(lambda verify=verify: first(verify))
        rows.append(row(f"opening and a first question, {verify}", own - bare, "the same, sizes", bare))
    with (
        Index.open(path, settings=Settings(verify="sizes", threads=1)) as plain,
        Index.open(path, settings=Settings(verify="blocks", threads=1)) as checked,
    ):
        bare, own = (
            cost(lambda index=index: [index.retrieve(QUESTION) for _ in range(100)])
            for index in (plain, checked)
        )
    rows.append(row("100 further questions, blocks", own - bare, "the same, sizes", bare))
    return rows


def building(source: Path, path: Path) -> list[list[str]]:
    def build(verify: str = "blocks", rebuild: bool = False) -> None:
        Index.build(source, path, settings=Settings(threads=1, verify=verify), rebuild=rebuild).close()

    whole = cost(lambda: build(rebuild=True), 3)

    def verify() -> None:
        with Tables(Layout(path).tables, read_only=True) as tables:
            tables.verify()

    again = cost(lambda: build("sizes"))
    return [
        row("texts and tables against their hashes", cost(verify), "a build", whole),
        row("unchanged build, every array hashed", cost(build) - again, "the same, sizes", again),
    ]


def keeping(folder: Path) -> list[list[str]]:
    count, text = 10_000, "x" * 1500
    keys = [reply_key(str(n)) for n in range(count)]
    reply = KeptReply(0, 1, text, "stop", None, "clean", 9, 1, "")
    with Journal(folder / "replies.sqlite") as journal:
        number = journal.reader("k", "s", {}).number

        def put() -> None:
            with journal.transaction():
                for key in keys:
                    journal.put(number, key, reply)

        kept = cost(put, 3)
    values = (keys[0], 0, 1, text.encode(), "stop", None, "clean", 9, 1, b"")
    seals = cost(lambda: [seal_of(1, values) for _ in keys], 3)
    vectors = np.random.default_rng(1).random((count, 384), np.float32)
    with VectorTable(folder / "vectors.sqlite") as stored:
        stored.add("f", 384, None, "s", {})
        found = cost(lambda: stored.put(1, "document", keys, vectors), 3)
        from ketrag_fast.storage.vector_cache import _sum

        blob = vectors[0].tobytes()
        sums = cost(lambda: [_sum("document", key, blob) for key in keys], 3)
    return [
        row(f"seals of {count:,} replies", seals, "keeping them", kept),
        row(f"checksums of {count:,} vectors", sums, "keeping them", found),
    ]


def row(what: str, own: float, beside: str, whole: float) -> list[str]:
    return [what, f"{own:.1f}", beside, f"{whole:.1f}", f"{100 * own / whole:.1f} %"]


if __name__ == "__main__":
    main()
