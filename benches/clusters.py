"""Shards: a build on Ray with two workers against one process with two threads, and a merge against a build.

    python benches/clusters.py                          # 30,000 passages
    python benches/clusters.py --passages 300000 --shards 10
    python benches/clusters.py --model --passages 6000 --shards 2   # real passages, embedded with all-MiniLM-L6-v2
    python benches/clusters.py --address ray://HOST:10001

Seconds on the clock need an otherwise idle machine; ratios of processor seconds do not. `start` is a build of one passage on the
same Ray, which is what starting Ray, its workers and the tasks costs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import retrieval
from changes import REAL
from common import arguments, publish, require_model, result_table
from generated import documents
from ketrag_fast import Document
from scale import Measured, measure

_BUILD = """
import json, sys
from ketrag_fast import Index, Settings
with Index.build(sys.argv[1], sys.argv[2], settings=Settings(**json.loads(sys.argv[3]))) as index:
    print(json.dumps({"digest": index.digest}))
"""
_MERGE = """
import json, sys
from ketrag_fast import Index
with Index.merge(json.loads(sys.argv[1]), sys.argv[2]) as index:
    print(json.dumps({"digest": index.digest}))
"""
_RAY = """
import json, sys
from ketrag_fast import Settings, ray
own = Settings(**json.loads(sys.argv[4]))
report = ray.build(sys.argv[1], sys.argv[2], on=sys.argv[3], shards=2, settings=own)
print(json.dumps({"digest": report.digest}))
"""
_RAY_SHARDS = """
import json, sys
from ketrag_fast import Settings, ray
own = Settings(**json.loads(sys.argv[4]))
built = ray.build_shards(sys.argv[1], sys.argv[2], on=sys.argv[3], shards=2, settings=own)
print(json.dumps({"shards": len(built)}))
"""


def write(path: Path, texts: Iterable[Document]) -> Path:
    with path.open("w", encoding="utf-8") as out:
        for one in texts:
            out.write(json.dumps({"id": one.id, "title": one.title, "text": one.text}) + "\n")
    return path


def row(name: str, found: Measured, base: Measured) -> list[object]:
    used, whole = found.user + found.system, base.user + base.system
    return [name, found.wall, used, found.wall / base.wall, used / whole, round(found.peak)]


def run(count: int, shards: int, address: str, model: str, folder: Path) -> list[dict[str, Any]]:
    texts = retrieval.documents(REAL)[:count] if model else documents(count)
    source, one = write(folder / "all.jsonl", texts), write(folder / "one.jsonl", documents(1))
    own = {"embedder": model} if model else {}

    def program(code: str, *words: object) -> Measured:
        return measure([sys.executable, "-c", code, *map(str, words)])

    single = program(_BUILD, source, folder / "single", json.dumps({"threads": 2, **own}))
    rows = [row("one process, 2 threads", single, single)]
    start = program(_RAY, one, folder / "start", address, json.dumps(own))
    on_ray = program(_RAY, source, folder / "ray", address, json.dumps(own))
    kept = program(_RAY_SHARDS, source, folder / "kept", address, json.dumps(own))
    rows += [row("Ray, start", start, single), row("Ray, 2 shards on 2 workers", on_ray, single)]
    rows += [row("the same with --keep-shards", kept, single)]
    places = []
    for number in range(1, shards + 1):
        places.append(str(folder / f"s{number}"))
        options = {"shard": f"{number}/{shards}", "threads": 2, **own}
        shard = program(_BUILD, source, places[-1], json.dumps(options))
    merged = program(_MERGE, json.dumps(places), folder / "merged")
    rows += [row(f"last of {shards} shards", shard, single), row(f"merge of {shards} shards", merged, single)]
    digests = {found.printed["digest"] for found in (single, on_ray, merged)}
    if len(digests) != 1:
        raise RuntimeError(f"the indexes differ: {digests}")
    columns = ["program", "s", "processor s", "s, ratio", "processor s, ratio", "peak MB"]
    return [result_table(f"{count:,} passages", columns, rows)]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--passages", type=int, default=30_000)
    parser.add_argument("--shards", type=int, default=10)
    parser.add_argument("--address", default="ray", help="`ray`, or ray://HOST:PORT")
    parser.add_argument(
        "--model", action="store_true", help="real passages, with vectors of all-MiniLM-L6-v2"
    )
    args = parser.parse_args()
    model = f"local:{require_model()}" if args.model else ""
    with tempfile.TemporaryDirectory() as folder:
        tables = run(300 if args.smoke else args.passages, args.shards, args.address, model, Path(folder))
    texts = "Generated passages of 90 words, bm25 and walk."
    if model:
        texts = "Passages of the question sets, in the modes of an index with vectors."
    publish(
        tables,
        f"{texts} Processor seconds of Ray are those of the command.",
    )


if __name__ == "__main__":
    main()
