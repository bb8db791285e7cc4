"""Times of questions without a model.

python benches/retrieval.py modes      # each mode on 8,009 real passages, and questions a second; bm25s next to them
python benches/retrieval.py filters    # with a filter next to the same without; and rights: an index of what a caller may see
python benches/retrieval.py opening    # opening an index under each `verify`, the questions after it, and whole commands
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import random
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import generated
from common import WORK, arguments, median, publish, require_data, seconds, target
from common import result_table as table
from ketrag_fast import Document, Index, Settings

MODES = ("bm25", "text", "fused", "knn", "keyword", "walk")
SETS = ("musique-train100", "2wiki-101")
BUDGET = 4000
SHARES = (0.9, 0.1, 0.001)
"""Shares of the documents that filters leave."""
FILTERED = ("bm25", "text", "walk", "keyword")
VERIFY = ("blocks", "sizes", "full")
_CHILD = """
import json, pathlib, sys, time
from ketrag_fast import Index, Settings
place, tiny, verify, *questions = sys.argv[1:]

def memory():
    rows = dict(line.split(":") for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    return int(rows["VmRSS"].split()[0]) / 1024

Index.open(tiny).retrieve("Where?", mode="walk")
before, found = memory(), []
started = time.perf_counter()
index = Index.open(place, settings=Settings(verify=verify))
found.append(1000 * (time.perf_counter() - started))
for question in questions:
    started = time.perf_counter()
    context = index.retrieve(question, mode="walk", budget=4000)
    found.append(1000 * (time.perf_counter() - started))
    assert context.passages, question
print(json.dumps([*found, memory() - before]))
"""


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


def measure_modes(smoke: bool) -> None:
    """Measure all modes."""
    made, asked = documents(), questions()
    if smoke:
        made, asked = made[:200], asked[:3]
    rows: list[list[Any]] = []
    place = WORK / f"retrieval-{len(made)}"
    with Index.build(made, place, settings=Settings(modes=",".join(MODES))) as index:
        for mode in MODES:
            call, late, search = latency(index, mode, asked, 1 if smoke else 3)
            one, two = (rate(index, mode, asked * (1 if smoke else 5), threads) for threads in (1, 2))
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


def measure_filters(smoke: bool) -> None:
    """Measure filters and rights."""
    chance = random.Random(7)
    made = [dataclasses.replace(d, metadata={"draw": chance.random()}) for d in documents()]
    asked = questions()[::3]
    if smoke:
        made, asked = made[:300], asked[:3]
    settings = Settings(modes=",".join(FILTERED))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Index.build(made, folder / "ix", settings=settings) as index:
            rows = [row for mode in FILTERED for row in compared(index, mode, asked, 1 if smoke else 5)]
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


def built(count: int) -> Path:
    """Return an index of that many generated documents, built unless it exists."""
    place = WORK / f"opening-{count}"
    Index.build(list(generated.documents(count)), place, settings=Settings(modes="bm25,walk,text")).close()
    return place


def megabytes(place: Path) -> float:
    """Return the bytes of the arrays of an index, in MB."""
    return sum(file.stat().st_size for file in place.glob("gen-*/*/*")) / 1e6


def measure_opening(smoke: bool) -> None:
    """Measure fresh processes."""
    count, runs = (300, 1) if smoke else (100_000, 5)
    place, tiny = built(count), built(100)
    asked = [generated.question(document) for document in islice(generated.documents(count), 4, 6)]
    rows: list[list[Any]] = []
    for verify in VERIFY:
        command = [sys.executable, "-c", _CHILD, str(place), str(tiny), verify, *asked]
        found = [
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            for _ in range(runs)
        ]
        opened, first, second, memory = (median(values) for values in zip(*found, strict=True))
        bound = target(opened, most=50) if verify == "blocks" else ""
        rows.append([verify, opened, first, second, memory, bound])
    commands: list[list[Any]] = []
    small = built(300 if smoke else 8_000)
    for name, argv, most in (
        ("ketrag --help", ["--help"], 120),
        ("ketrag retrieve, 8,000 documents", ["retrieve", asked[0], "-i", str(small), "--mode", "walk"], 300),
        (
            f"ketrag retrieve, {count:,} documents",
            ["retrieve", asked[0], "-i", str(place), "--mode", "walk"],
            300,
        ),
    ):
        command = [sys.executable, "-m", "ketrag_fast.apps.cli.main", *argv]
        took = [
            1000 * x
            for x in seconds(lambda c=command: subprocess.run(c, check=True, capture_output=True), runs)
        ]
        commands.append([name, median(took), min(took), target(median(took), most=most)])
    columns = ["verify", "open, ms", "first question, ms", "second question, ms", "MB gained", "target, open"]
    publish(
        [
            table(f"An index of {megabytes(place):,.0f} MB, {count:,} documents, mode walk", columns, rows),
            table("Whole commands", ["command", "ms, median", "ms, least", "target, ms"], commands),
        ],
        f"Medians of {runs} processes.",
    )


def main() -> None:
    """Measure one subject."""
    subjects = {"modes": measure_modes, "filters": measure_filters, "opening": measure_opening}
    parser = arguments(__doc__)
    parser.add_argument("subject", choices=subjects)
    args = parser.parse_args()
    subjects[args.subject](args.smoke)


if __name__ == "__main__":
    main()
