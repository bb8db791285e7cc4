"""A whole build without a model, by number of documents and by what the index is to answer."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import header, table
from growth import texts_of

_CHILD = """
import json, resource, sys, time
from pathlib import Path
from ketrag_fast import Index, Settings
source, folder, modes, threads = sys.argv[1:5]
start = time.perf_counter()
settings = Settings(modes=modes, threads=int(threads), chunk_tokens=2000)  # the made-up words have many tokens
with Index.build(source, folder, settings=settings) as index:
    took = time.perf_counter() - start
    stages = {s.name: round(s.seconds, 2) for s in index.report.stages}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(json.dumps([took, peak, stages]))
"""


def write(path: Path, count: int) -> None:
    """Documents of 90 words, as JSON lines."""
    titles, texts = texts_of(count)
    with path.open("w", encoding="utf-8") as file:
        for number, (title, text) in enumerate(zip(titles, texts, strict=True)):
            file.write(json.dumps({"_id": str(number), "title": title, "text": text}) + "\n")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", default="100000")
    parser.add_argument("--modes", default="auto bm25,walk", help="lists of modes, with blanks between")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for count in map(int, args.documents.split(",")):
            source = Path(folder) / f"{count}.jsonl"
            write(source, count)
            for modes in args.modes.split():
                place = Path(folder) / f"{count}-{modes}"
                command = [sys.executable, "-c", _CHILD, str(source), str(place), modes, str(args.threads)]
                began = time.perf_counter()
                took, peak, stages = json.loads(
                    subprocess.run(command, capture_output=True, check=True).stdout
                )
                whole = time.perf_counter() - began
                said = ", ".join(f"{name} {seconds}" for name, seconds in stages.items() if seconds >= 0.05)
                rows.append([f"{count:,}", modes, f"{took:.1f}", f"{whole:.1f}", f"{peak:.1f}", said])
    header("Builds without a model", [f"Documents of 90 words, one unit each; {args.threads} threads."])
    table(["documents", "modes", "build s", "process s", "peak GB", "stages, s"], rows)


if __name__ == "__main__":
    main()
