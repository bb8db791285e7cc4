"""Latency of each mode and throughput of many questions, on 8,009 real passages and no model."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from common import header, median, require_data, table
from ketrag_fast import Document, Index, Settings

MODES = ("bm25", "text", "fused", "knng", "keyword", "walk")


def questions(names: list[str]) -> list[str]:
    """The questions of some sets, in order."""
    out = []
    for name in names:
        with (require_data(name) / "queries.jsonl").open(encoding="utf-8") as lines:
            out += [json.loads(line)["text"] for line in lines]
    return out


def documents(names: list[str]) -> list[Document]:
    """The passages of some sets together; their ids, which begin at 0 in each, with the set's name."""
    out = []
    for name in names:
        with (require_data(name) / "corpus.jsonl").open(encoding="utf-8") as lines:
            out += [
                Document(f"{name}/{record['_id']}", record["text"], record.get("title", ""))
                for record in map(json.loads, lines)
            ]
    return out


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5, help="times that the questions are asked")
    args = parser.parse_args()
    sets = ["musique-train100", "2wiki-101"]
    asked = questions(sets)
    header(
        "Retrieval without a model",
        [
            f"{len(asked)} questions of {' and '.join(sets)}, indexed together; budget {args.budget} tokens.",
            "`search` is the core's own clock: question to ranked, budgeted, printed context, one thread.",
            "`call` is Index.retrieve seen from Python; files are in the page cache.",
        ],
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        Index.build(documents(sets), Path(folder) / "index", settings=Settings(modes=MODES)) as index,
    ):
        rows = []
        for mode in MODES:
            for question in asked:
                index.retrieve(question, mode=mode, budget=args.budget)
            search, call = [], []
            for _ in range(args.rounds):
                for question in asked:
                    started = time.perf_counter()
                    context = index.retrieve(question, mode=mode, budget=args.budget)
                    call.append(1000 * (time.perf_counter() - started))
                    search.append(context.timings_ms["search"])
            ordered = sorted(search)
            rows.append(
                [
                    mode,
                    f"{median(search):.2f}",
                    f"{ordered[int(0.95 * len(ordered))]:.2f}",
                    f"{median([min(search[i :: len(asked)]) for i in range(len(asked))]):.2f}",
                    f"{median(call):.2f}",
                ]
            )
        columns = [
            "mode",
            "search, median ms",
            "search, 95th percentile",
            "least of rounds, median",
            "call, median ms",
        ]
        table(columns, rows)

        rows = []
        many = asked * 10
        for mode in MODES:
            rates = {}
            for threads in (1, 2):
                times = []
                for _ in range(args.rounds):
                    started = time.perf_counter()
                    index.retrieve_many(many, mode=mode, budget=args.budget, threads=threads)
                    times.append(time.perf_counter() - started)
                rates[threads] = len(many) / median(times)
            rows.append([mode, f"{rates[1]:,.0f}", f"{rates[2]:,.0f}"])
        table(["mode", "questions/s, 1 thread", "questions/s, 2 threads"], rows)


if __name__ == "__main__":
    main()
