"""Opening an index: time and memory under each `verify`, the questions after it, and the whole command."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from common import header, median, seconds, table
from ketrag_fast import Document, Index, Settings
from zipf import zipf_texts

VERIFY = ("blocks", "sizes", "full")
SENTENCE = 12
QUESTION = "w{0} w{1} w{2} and w{3}?"
LARGE, SMALL = 30_000, 7_000
_CHILD = """
import json, pathlib, resource, sys, time
import numpy
from ketrag_fast import Index, Settings
place, verify, mode, *questions = sys.argv[1:]

def memory():
    kept = dict(line.split(":") for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    return [int(kept[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon")]

Index.open(pathlib.Path(sys.argv[1]).parent / "tiny", settings=Settings()).retrieve("w1", mode="bm25")
before, found = memory(), {}
started = time.perf_counter()
index = Index.open(place, settings=Settings(verify=verify))
found["open"] = 1000 * (time.perf_counter() - started)
found["memory"] = [b - a for a, b in zip(before, memory())]
for name, question in zip(("first", "second"), questions):
    started = time.perf_counter()
    context = index.retrieve(question, mode=mode, budget=4000)
    found[name] = 1000 * (time.perf_counter() - started)
    assert context.passages, question
found["memory after"] = [b - a for a, b in zip(before, memory())]
print(json.dumps(found))
"""


def texts(count: int) -> Iterator[Document]:
    """Documents of some 88 words, whose words are distributed as in real text."""
    indptr, words, _ = zipf_texts(count)
    for i in range(count):
        row = words[int(indptr[i]) : int(indptr[i + 1])].tolist()
        row = row[i % 7 :] + row[: i % 7]
        parts = [row[k : k + SENTENCE] for k in range(0, len(row), SENTENCE)]
        yield Document(f"{i:07}", " ".join("W" + " w".join(map(str, part)) + "." for part in parts))


def made(place: Path, count: int, options: Settings) -> int:
    """Build an index of that many documents unless it exists; return its bytes."""
    if not place.exists():
        Index.build(texts(count), place, settings=options).close()
    return bytes_of(place)


def bytes_of(place: Path) -> int:
    """Of the arrays of its one generation."""
    return sum(file.stat().st_size for file in place.glob("gen-*/*/*"))


def asked(place: Path, verify: str, mode: str, questions: list[str]) -> dict[str, list[float]]:
    """One fresh process: opens the index and asks two questions."""
    command = [sys.executable, "-c", _CHILD, str(place), verify, mode, *questions]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    found = json.loads(done.stdout)
    return {name: value if isinstance(value, list) else [value] for name, value in found.items()}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--large", type=int, default=LARGE, help="documents of the large index (2 GB)")
    parser.add_argument("--small", type=int, default=SMALL, help="documents of the small index (130 MB)")
    parser.add_argument("--folder", type=Path, help="keep the indexes here, and use those that are there")
    args = parser.parse_args()
    header(
        "Opening an index",
        [
            "Generated documents of some 88 words (benches/zipf.py), no model. In the large index vectors have 1,024"
            " values, those of words too, which makes it large with fewer documents.",
            "Each run is a fresh process that has the package loaded, by a question to a small index; files are"
            " in the page cache. Median of the runs.",
            "MB are what the process gained: resident (file pages that it shares with others count) / of its own.",
        ],
    )
    questions = [QUESTION.format(60, 401, 1201, 87), QUESTION.format(75, 333, 2001, 59)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        made(folder / "tiny", 200, Settings(knn_k=0))
        place = folder / f"large-{args.large}"
        size = made(place, args.large, Settings(builtin_dim=1024, knn_k=0))
        print(f"## {size / 1e9:.2f} GB, {args.large:,} documents\n")
        rows = []
        for verify in VERIFY:
            for mode in ("bm25", "walk", "text"):
                runs = [asked(place, verify, mode, questions) for _ in range(args.runs)]
                middle = {
                    name: [median(x) for x in zip(*(run[name] for run in runs), strict=True)]
                    for name in runs[0]
                }
                target = "50" if verify == "blocks" else ""
                cells = [f"{middle[name][0]:.1f}" for name in ("open", "first", "second")]
                memory = [" / ".join(f"{x:.0f}" for x in middle[name]) for name in ("memory", "memory after")]
                rows.append([verify, mode, cells[0], target, memory[0], *cells[1:], memory[1]])
        columns = ["verify", "mode", "open ms", "target", "MB", "first question ms", "second ms", "MB then"]
        table(columns, rows)
        place = folder / f"small-{args.small}"
        size = made(place, args.small, Settings(knn_k=0))
        print(f"## `ketrag retrieve` on {size / 1e6:.0f} MB, {args.small:,} documents: the whole process\n")
        rows = []
        for verify in VERIFY:
            for mode in ("bm25", "walk", "text"):
                argv = ["-i", str(place), "--mode", mode, "--verify", verify]
                command = [sys.executable, "-m", "ketrag_fast.apps.cli.main", "retrieve", questions[0], *argv]

                def run(command: list[str] = command) -> None:
                    subprocess.run(command, check=True, capture_output=True)

                times = [1000 * x for x in seconds(run, runs=10, warmup=2)]
                target = "300" if verify == "blocks" else ""
                rows.append([verify, mode, f"{median(times):.0f}", f"{min(times):.0f}", target])
        table(["verify", "mode", "median ms", "least ms", "target"], rows)


if __name__ == "__main__":
    main()
