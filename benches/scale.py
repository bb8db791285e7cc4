"""Builds of `auto` over growing corpora, next to tantivy and bm25s: time, memory, bytes, questions.

    python benches/scale.py                                  # 30,000 and 100,000 passages
    python benches/scale.py --passages 300000,1000000 --memory 2000
    python benches/scale.py --scaling                        # one core against all
    python benches/scale.py --odd all                        # sources of unusual shape at full size
    python benches/scale.py --corpus corpus.jsonl --questions queries.jsonl --model   # real passages, all-MiniLM-L6-v2
    python benches/scale.py --peers PYTHON                   # an interpreter with tantivy and bm25s; default: $KETRAG_PEERS

Every build is a process that reads the same JSON lines. With `--scaling` one more is bound to one core, because
threads that wait for the disk or compress would otherwise use the others. Memory is sampled every 10 ms over the process and all its
children: `peak` counts everything resident, `own` leaves out pages of mapped files, which the system can drop.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from common import PEERS, arguments, publish, require_model
from common import result_table as table
from generated import documents, question

QUESTIONS = 50
_PERIOD = 0.01
_KETRAG = """
import json, sys
from ketrag_fast import Index, Settings
source, place, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
with Index.build(source, place, settings=Settings(**options)) as index:
    print(json.dumps({stage.name: stage.seconds for stage in index.report.stages}))
"""
_KETRAG_ASKS = """
import json, statistics, sys, time
from pathlib import Path
from ketrag_fast import Document, Index
asked, out = json.loads(sys.argv[2]), {}
def own():
    rows = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(rows["RssAnon"].split()[0]) / 1000
before, start = own(), time.perf_counter()
with Index.open(sys.argv[1]) as index:
    opened = time.perf_counter()
    index.retrieve(asked[0], mode="walk", budget=4000)
    out["open"], out["first"] = 1000 * (opened - start), 1000 * (time.perf_counter() - opened)
    for mode in [name for name in ("bm25", "text", "walk") if name in index.modes]:
        took = []
        for text in asked * 2:
            start = time.perf_counter()
            index.retrieve(text, mode=mode, budget=4000)
            took.append(1000 * (time.perf_counter() - start))
        out[mode] = statistics.median(took[len(asked):])
    out["own"] = own() - before
    if len(sys.argv) > 3:
        took = []
        for at, text in enumerate(asked[:5]):
            start = time.perf_counter()
            index.update(add=[Document(sys.argv[3 + at], "The passage is changed. " + text, "Title")])
            took.append(time.perf_counter() - start)
        out["change"] = statistics.median(took[1:])
print(json.dumps(out))
"""
_TANTIVY = """
import json, sys, pathlib, tantivy
schema = tantivy.SchemaBuilder()
schema.add_text_field("id", stored=True, tokenizer_name="raw")
schema.add_text_field("title", stored=True)
schema.add_text_field("text", stored=True)
pathlib.Path(sys.argv[2]).mkdir()
index = tantivy.Index(schema.build(), path=sys.argv[2])
writer = index.writer(heap_size=256_000_000, num_threads=json.loads(sys.argv[3])["threads"])
with open(sys.argv[1], encoding="utf-8") as lines:
    for line in lines:
        record = json.loads(line)
        writer.add_document(tantivy.Document(id=record["id"], title=record["title"], text=record["text"]))
writer.commit()
writer.wait_merging_threads()
print(json.dumps({}))
"""
_TANTIVY_ASKS = """
import json, statistics, sys, time, tantivy
index = tantivy.Index.open(sys.argv[1])
searcher, took = index.searcher(), []
for text in json.loads(sys.argv[2]) * 2:
    start = time.perf_counter()
    query, _ = index.parse_query_lenient(text, ["title", "text"])
    [searcher.doc(place)["text"] for _, place in searcher.search(query, 20).hits]
    took.append(1000 * (time.perf_counter() - start))
print(json.dumps({"bm25": statistics.median(took[len(took) // 2:])}))
"""
_BM25S = """
import json, sys, bm25s
with open(sys.argv[1], encoding="utf-8") as lines:
    records = [json.loads(line) for line in lines]
texts = [record["title"] + " " + record["text"] for record in records]
retriever = bm25s.BM25()
retriever.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
retriever.save(sys.argv[2], corpus=records)
print(json.dumps({}))
"""
_BM25S_ASKS = """
import json, statistics, sys, time, bm25s
retriever = bm25s.BM25.load(sys.argv[1], load_corpus=True, mmap=True)
took = []
for text in json.loads(sys.argv[2]) * 2:
    start = time.perf_counter()
    tokens = bm25s.tokenize([text], show_progress=False)
    retriever.retrieve(tokens, k=20, show_progress=False)
    took.append(1000 * (time.perf_counter() - start))
print(json.dumps({"bm25": statistics.median(took[len(took) // 2:])}))
"""
_ON_ONE_CORE = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.execv(sys.argv[1], sys.argv[1:])
"""
PROGRAMS = {
    "ketrag-fast": (_KETRAG, _KETRAG_ASKS),
    "tantivy": (_TANTIVY, _TANTIVY_ASKS),
    "bm25s": (_BM25S, _BM25S_ASKS),
}


@dataclass(frozen=True)
class Measured:
    """One process: seconds on the clock and of processors, MB, and what it printed."""

    wall: float
    user: float
    system: float
    peak: float
    own: float
    printed: dict[str, float]


def measure(command: Sequence[str], *, one_core: bool = False) -> Measured:
    """Run a command that prints JSON. Raises RuntimeError with the last line of its errors."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    if one_core:
        command = [sys.executable, "-c", _ON_ONE_CORE, *command]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    peaks, ended = [0.0, 0.0], threading.Event()

    def sample() -> None:
        while not ended.wait(_PERIOD):
            for at, value in enumerate(_resident(child.pid)):
                peaks[at] = max(peaks[at], value)

    sampler = threading.Thread(target=sample)
    sampler.start()
    out, err = child.communicate()
    ended.set()
    sampler.join()
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if child.returncode:
        raise RuntimeError((err.strip().splitlines() or [f"exit {child.returncode}"])[-1])
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return Measured(wall, user, system, *peaks, json.loads(out.strip().splitlines()[-1]))


def _resident(process: int) -> tuple[float, float]:
    """Return MB of a process and its descendants: all resident pages, and those without mapped files."""
    whole = own = 0.0
    for each in _tree(process):
        try:
            rows = dict(line.split(":", 1) for line in Path(f"/proc/{each}/status").read_text().splitlines())
            whole += int(rows["VmRSS"].split()[0]) / 1000
            own += (int(rows["RssAnon"].split()[0]) + int(rows["RssShmem"].split()[0])) / 1000
        except (OSError, KeyError):
            continue  # it has ended
    return whole, own


def _tree(process: int) -> Iterator[int]:
    """Yield a process and its descendants."""
    yield process
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        children = [int(one) for task in tasks for one in (task / "children").read_text().split()]
    except OSError:
        return
    for child in children:
        yield from _tree(child)


def write_corpus(path: Path, count: int) -> int:
    """Write generated passages as JSON lines, and return the bytes of their texts and titles."""
    size = 0
    with path.open("w", encoding="utf-8") as out:
        for one in documents(count):
            out.write(json.dumps({"id": one.id, "title": one.title, "text": one.text}) + "\n")
            size += len(one.text.encode()) + len(one.title.encode())
    return size


def copy_corpus(source: Path, path: Path, count: int) -> tuple[int, list[str]]:
    """Write the first passages of a question set as JSON lines; return the bytes of texts and titles, and the ids."""
    size, ids = 0, []
    with source.open(encoding="utf-8") as lines, path.open("w", encoding="utf-8") as out:
        for record in map(json.loads, islice(lines, count)):
            one = {"id": record["_id"], "title": record.get("title", ""), "text": record["text"]}
            out.write(json.dumps(one) + "\n")
            size += len(one["text"].encode()) + len(one["title"].encode())
            ids.append(one["id"])
    return size, ids


def has_module(python: str, name: str) -> bool:
    """Return whether an interpreter can import a module."""
    return subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0


def run(
    name: str,
    python: str,
    corpus: Path,
    asked: Sequence[str],
    options: dict[str, Any],
    *,
    one_core: bool = False,
    changed: Sequence[str] = (),
) -> list[Any]:
    """Build with one program, ask it, change documents with these ids if there are any, and return the built process, the bytes on disk and the milliseconds."""
    build, ask = PROGRAMS[name]
    with tempfile.TemporaryDirectory(dir=corpus.parent) as folder:
        place = Path(folder) / "index"
        built = measure(
            [python, "-c", build, str(corpus), str(place), json.dumps(options)], one_core=one_core
        )
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        times = measure([python, "-c", ask, str(place), json.dumps(asked), *changed]).printed if asked else {}
    return [built, size, times]


def row(name: str, count: int, size: int, done: list[Any]) -> list[Any]:
    """Return a row of the table."""
    built, taken, times = done
    processor = built.user + built.system
    cells = [built.wall, processor, processor / built.wall, built.peak, built.own, taken / 1e6, taken / size]
    return [f"{count:,}", name, *cells, *(times.get(mode) for mode in ("bm25", "text", "walk"))]


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of a build."""
    options: dict[str, Any] = {"modes": "auto", "threads": args.threads}
    if args.memory:
        options["memory"] = args.memory
    if args.model:
        options["embedder"] = f"native:{require_model()}"
    return options


def measure_size(args: argparse.Namespace, count: int) -> list[list[Any]]:
    """Return the rows of one corpus: programs, stages, one core against all, and the first question."""
    rows: list[Any] = []
    stages: list[Any] = []
    scaling: list[Any] = []
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        corpus = Path(folder) / "passages.jsonl"
        if args.corpus:
            size, ids = copy_corpus(args.corpus, corpus, count)
            with args.questions.open(encoding="utf-8") as lines:
                asked = [json.loads(line)["text"] for line in islice(lines, QUESTIONS)]
        else:
            size, ids = write_corpus(corpus, count), [f"{at:07}" for at in range(5)]
            asked = [question(one) for one in islice(documents(min(count, 1000)), QUESTIONS)]
        options = options_of(args)
        changed = ids[:5] if args.model else ()
        done = run("ketrag-fast", sys.executable, corpus, asked, options, changed=changed)
        rows.append(row("ketrag-fast", count, size, done))
        stages += [[f"{count:,}", name, value] for name, value in done[0].printed.items()]
        first = [[f"{count:,}", *(done[2].get(name) for name in ("open", "first", "own", "change"))]]
        rest = done[0].wall - sum(done[0].printed.values())
        stages.append([f"{count:,}", "start, reading, publishing", rest])
        if args.scaling:
            one = run("ketrag-fast", sys.executable, corpus, (), {**options, "threads": 1}, one_core=True)[0]
            scaling.append([f"{count:,}", one.wall, done[0].wall, one.wall / done[0].wall])
        for name in ("tantivy", "bm25s"):
            if not args.no_peers and has_module(args.peers, name):
                done = run(name, args.peers, corpus, asked, {"threads": args.threads or 2})
                rows.append(row(name, count, size, done))
    return [rows, stages, scaling, first]


_ODD_BUILD = """
import json, sys
from ketrag_fast import Index, KetragError, Settings
try:
    with Index.build(sys.argv[1], sys.argv[2], settings=Settings(modes="auto")) as index:
        print(json.dumps({"documents": index.stats()["counts"]["documents"]}))
except KetragError as error:
    print(json.dumps({"error": f"{type(error).__name__}: {error}"[:200]}))
"""
Record = dict[str, str]


def one_word(size: float) -> Iterator[Record]:
    """Documents of one word, the same in all."""
    return ({"id": f"{at:07}", "text": "word"} for at in range(int(1_000_000 * size)))


def equal(size: float) -> Iterator[Record]:
    """Equal documents of some twenty words with different ids."""
    text = "The expedition reached the pole in December. Its ship was the Fram, and its leader was Roald Amundsen."
    return ({"id": f"{at:07}", "text": text} for at in range(int(1_000_000 * size)))


def one_document(size: float) -> Iterator[Record]:
    """One document of 1 GB among ten short ones."""
    sentence = "Sentence {} of the long document is about w{:x} and N{:x}. "
    text = "".join(sentence.format(at, at % 50_000, at % 9_000) for at in range(int(19_500_000 * size)))
    yield {"id": "long", "text": text}
    for at in range(10):
        yield {"id": f"short{at}", "text": f"A short document about w{at:x}."}


def rare_words(size: float) -> Iterator[Record]:
    """Documents of a hundred words that occur once: ten million distinct ones."""
    for at in range(int(100_000 * size)):
        yield {"id": f"{at:06}", "text": " ".join(f"w{word:x}" for word in range(100 * at, 100 * at + 100))}


def long_ids(size: float) -> Iterator[Record]:
    """Documents whose ids have a million characters."""
    return (
        {"id": f"{at:06}" + "x" * 1_000_000, "text": f"Document {at}."} for at in range(int(1_000 * size))
    )


SHAPES: dict[str, tuple[str, Callable[[float], Iterator[Record]]]] = {
    "one-word": ("1,000,000 documents of one word", one_word),
    "equal": ("1,000,000 equal documents", equal),
    "rare-words": ("100,000 documents with 10,000,000 distinct words", rare_words),
    "one-document": ("one document of 1 GB and ten short ones", one_document),
    "long-ids": ("1,000 ids of 1 MB", long_ids),
}


def measure_odd(args: argparse.Namespace) -> None:
    """Build each shape. A row ends with what the build reported: the number of documents in the index, or its error."""
    rows: list[list[Any]] = []
    for name, (shown, records) in SHAPES.items():
        if args.odd not in ("all", name):
            continue
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            source, place = Path(folder) / "documents.jsonl", Path(folder) / "index"
            with source.open("w", encoding="utf-8") as out:
                out.writelines(f"{json.dumps(record)}\n" for record in records(0.001 if args.smoke else 1.0))
            built = measure([sys.executable, "-c", _ODD_BUILD, str(source), str(place)])
            size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
            cells = [source.stat().st_size / 1e6, built.wall, built.peak, built.own, size / 1e6]
            rows.append([shown, *cells, next(iter(built.printed.values()))])
    columns = ["source", "MB", "s", "peak MB", "own MB", "MB on disk", "documents, or the error"]
    publish([table("", columns, rows)], "Sources of unusual shape, two threads, one build each.")


def main() -> None:
    """Measure each size."""
    parser = arguments(__doc__)
    parser.add_argument("--passages", default="30000,100000", help="sizes, separated by commas")
    parser.add_argument("--corpus", type=Path, help="passages of a question set, instead of generated ones")
    parser.add_argument("--questions", type=Path, help="queries.jsonl of the set, with --corpus")
    parser.add_argument("--model", action="store_true", help="with all-MiniLM-L6-v2; without other programs")
    parser.add_argument("--memory", type=int, help="bound of ketrag's memory in MB")
    parser.add_argument("--threads", type=int, default=0, help="threads of a build; 0 for all cores")
    parser.add_argument("--scaling", action="store_true", help="build on one core, too")
    parser.add_argument(
        "--peers",
        default=PEERS,
        help="the interpreter that has tantivy and bm25s",
    )
    parser.add_argument("--no-peers", action="store_true", help="ketrag-fast alone")
    parser.add_argument("--folder", help="where corpora and indexes are written; default: the system's")
    parser.add_argument("--odd", choices=("all", *SHAPES), help="build sources of unusual shape instead")
    args = parser.parse_args()
    if bool(args.corpus) != bool(args.questions):
        parser.error("--corpus and --questions belong together")
    args.no_peers = args.no_peers or args.model
    if args.odd:
        measure_odd(args)
        return
    sizes = [300] if args.smoke else [int(size) for size in args.passages.split(",")]
    rows, stages, scaling, first = [], [], [], []
    for count in sizes:
        for all_of, more in zip((rows, stages, scaling, first), measure_size(args, count), strict=True):
            all_of += more
    missing = [name for name in ("tantivy", "bm25s") if args.no_peers or not has_module(args.peers, name)]
    notes = [f"Not measured, because it is not installed or not wanted: {name}." for name in missing]
    columns = ["passages", "program", "s", "processor s", "cores used", "peak MB", "own MB", "MB on disk"]
    tables = [
        table("Builds", [*columns, "times the text", "bm25, ms", "text, ms", "walk, ms"], rows),
        table("Stages of ketrag-fast", ["passages", "stage", "s"], stages),
    ]
    tables.append(
        table(
            "Opening",
            [
                "passages",
                "open, ms",
                "first question by walk, ms",
                "own MB after 100 questions each",
                "a changed document, s",
            ],
            first,
        )
    )
    if scaling:
        tables.append(table("Cores", ["passages", "one core, s", "all cores, s", "times as fast"], scaling))
    kind = f"The first passages of {args.corpus.name}" if args.corpus else "Generated passages of 90 words"
    publish(tables, f"{kind}; one build each, medians of 50 warm questions.", notes)


if __name__ == "__main__":
    main()
