"""Time of a question in each mode, and questions a second, on 8,009 real passages without a model; bm25s next to them."""

from __future__ import annotations

import importlib.util
import json
import time
from typing import Any

from common import WORK, arguments, median, publish, require_data, target
from common import result_table as table
from ketrag_fast import Document, Index, Settings

MODES = ("bm25", "text", "fused", "knn", "keyword", "walk")
SETS = ("musique-train100", "2wiki-101")
BUDGET = 4000


def questions(names: tuple[str, ...] | list[str] = SETS) -> list[str]:
    """Return the questions of some sets, in order."""
    out = []
    for name in names:
        with (require_data(name) / "queries.jsonl").open(encoding="utf-8") as lines:
            out += [json.loads(line)["text"] for line in lines]
    return out


def documents(names: tuple[str, ...] | list[str] = SETS) -> list[Document]:
    """Return the passages of some sets together, their ids preceded by the name of the set."""
    out = []
    for name in names:
        with (require_data(name) / "corpus.jsonl").open(encoding="utf-8") as lines:
            out += [
                Document(f"{name}/{record['_id']}", record["text"], record.get("title", ""))
                for record in map(json.loads, lines)
            ]
    return out


def latency(index: Index, mode: str, asked: list[str], rounds: int) -> list[float]:
    """Return milliseconds of a call: median, 95th percentile, and the median of the core's clock."""
    call, search = [], []
    for number in range(rounds + 1):
        for question in asked:
            started = time.perf_counter()
            context = index.retrieve(question, mode=mode, budget=BUDGET)
            if number:
                call.append(1000 * (time.perf_counter() - started))
                search.append(context.timings_ms["search"])
    return [median(call), sorted(call)[int(0.95 * len(call))], median(search)]


def rate(index: Index, mode: str, asked: list[str], threads: int) -> float:
    """Return questions a second."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        index.retrieve_many(asked, mode=mode, budget=BUDGET, threads=threads)
        times.append(time.perf_counter() - started)
    return len(asked) / median(times)


def peer(texts: list[str], asked: list[str]) -> list[float] | None:
    """Return bm25s's milliseconds of a question and questions a second on one thread, if it is installed."""
    if importlib.util.find_spec("bm25s") is None:
        return None
    import bm25s

    retriever = bm25s.BM25()
    retriever.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    times = []
    for question in asked:
        started = time.perf_counter()
        tokens = bm25s.tokenize(question, show_progress=False)
        retriever.retrieve(tokens, k=10, show_progress=False, n_threads=1)
        times.append(time.perf_counter() - started)
    started = time.perf_counter()
    retriever.retrieve(bm25s.tokenize(asked, show_progress=False), k=10, show_progress=False, n_threads=1)
    return [1000 * median(times), len(asked) / (time.perf_counter() - started)]


def main() -> None:
    """Measure all modes."""
    args = arguments(__doc__).parse_args()
    made, asked = documents(), questions()
    if args.smoke:
        made, asked = made[:200], asked[:3]
    rows: list[list[Any]] = []
    place = WORK / f"retrieval-{len(made)}"
    with Index.build(made, place, settings=Settings(modes=",".join(MODES))) as index:
        for mode in MODES:
            call, late, search = latency(index, mode, asked, 1 if args.smoke else 3)
            one, two = (rate(index, mode, asked * (1 if args.smoke else 5), threads) for threads in (1, 2))
            bound = target(two, least=1500) if mode == "walk" else ""
            rows.append([mode, call, late, search, one, two, bound])
    other = peer([f"{d.title}\n{d.text}" for d in made], asked)
    notes = ["`search` is the core's clock, from the question to the printed context."]
    if other is None:
        notes.append("bm25s is not installed.")
    else:
        rows.append(["bm25s", other[0], None, None, other[1], None, ""])
    columns = ["mode", "ms, median", "ms, 95th percentile", "search ms", "questions/s, 1 thread"]
    publish(
        [table("", [*columns, "questions/s, 2 threads", "target"], rows)],
        f"{len(made):,} passages and {len(asked)} questions of {' and '.join(SETS)}.",
        notes,
    )


if __name__ == "__main__":
    main()
