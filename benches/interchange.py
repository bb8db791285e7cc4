"""Times and peak memory of exports and imports, and graphrag's own loaders on an export.

    python benches/interchange.py                      # exports of 520,000 entities, an import of 10,000 chunks
    python benches/interchange.py --smoke              # tiny sizes
    python benches/interchange.py --check FOLDER       # in an environment with graphrag 3: read an export

Each row runs in its own process, whose peak memory is measured. The graph is made up: names, descriptions and
passages are random words, so that the sizes are those of the target and nothing else is measured.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

ENTITIES, RELATIONS, CHUNKS = 520_000, 670_000, 10_000
FORMATS = ("graphrag", "graphml", "gexf", "neo4j", "jsonl", "html")
MOST = {"graphrag": 20, "graphml": 60, "import lightrag": 30}
"""Seconds that are the goal."""
MEMORY = 1_000
"""Megabytes that are the goal."""


def main() -> None:
    if "--check" in sys.argv:  # graphrag's environment lacks this package
        check(Path(sys.argv[-1]))
        return
    from common import arguments

    parser = arguments(__doc__)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--check", metavar="FOLDER", help="have graphrag's loaders read this export")
    args = parser.parse_args()
    if args.check:
        check(Path(args.check))
    elif args.one:
        print(json.dumps(one(args.one, Path(args.folder))))
    else:
        measure(smoke=args.smoke)


def measure(*, smoke: bool) -> None:
    """Measure each format in a process of its own."""
    from common import publish, result_table, target

    entities, chunks = (2_000, 50) if smoke else (ENTITIES, CHUNKS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_index(folder / "index", entities, entities * RELATIONS // ENTITIES)
        make_lightrag(folder / "lightrag", chunks)
        rows: list[list[Any]] = []
        for what in (*FORMATS, "import lightrag"):
            command = [sys.executable, __file__, "--one", what, "--folder", name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
            cells = [found["seconds"], found["cpu"], found["peak"] / 1e6, found["bytes"] / 1e6]
            bounds = ["", ""]
            if what in MOST:
                bounds[0] = target(cells[0], most=MOST[what])
            if what in FORMATS:
                bounds[1] = target(cells[2], most=MEMORY)
            rows.append([what, found["rows"], *cells, *bounds, found["calls"]])
    columns = [
        "format",
        "rows",
        "s",
        "processor s",
        "peak MB",
        "size MB",
        "target s",
        "target MB",
        "model calls",
    ]
    notes = [
        f"{entities:,} entities and {entities * RELATIONS // ENTITIES:,} relations are exported, {chunks:,} chunks of"
        " LightRAG imported, without a call to a model.",
        "The time is that of the call in Python, the memory the peak of its process.",
    ]
    publish([result_table("", columns, rows)], "Random words, not documents.", notes)


def one(what: str, folder: Path) -> dict[str, Any]:
    from ketrag_fast import Index
    from ketrag_fast.interchange.exporting import export_graph
    from ketrag_fast.interchange.importing import import_index

    before, started = cpu(), time.perf_counter()
    if what == "import lightrag":
        report = import_index("lightrag", folder / "lightrag", folder / "imported")
        size = sum(path.stat().st_size for path in (folder / "imported").rglob("*") if path.is_file())
        rows = report.passages
        assert report.entities_taken == report.entities
        with Index.open(folder / "imported") as index:
            calls: int | str = sum(build.calls for build in index.inspect.builds())
    else:
        with Index.open(folder / "index") as index:
            found = export_graph(index, what, folder / what)
        size, rows, calls = found.bytes, found.nodes + found.edges, ""
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "cpu": cpu() - before,
        "peak": peak(),
        "bytes": size,
        "rows": rows,
        "calls": calls,
    }


def cpu() -> float:
    """Seconds that this process has computed on all cores."""
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


def peak() -> int:
    """The most bytes that this process has held; Linux reports it for this program alone in VmHWM."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


WORDS = np.array(
    [f"{a}{b}{c}" for a in "bdfgklmnprstvz" for b in "aeiou" for c in ("n", "r", "l", "st", "k")]
)


def texts(rng: np.random.Generator, count: int, words: int) -> list[str]:
    """Texts of random words."""
    drawn = rng.choice(WORDS, (count, words))
    return [" ".join(row) for row in drawn.tolist()]


def make_index(path: Path, entities: int, relations: int) -> None:
    """An index whose chunks have, as a recording says, the entities and relations that are wanted."""
    from ketrag_fast import Document, Index, Settings
    from ketrag_fast.models.extraction.recording import RecordingWriter
    from ketrag_fast.models.extraction.records import EntityRecord, Extraction, RelationRecord

    rng = np.random.default_rng(7)
    per_chunk = 12
    chunks = -(-entities // per_chunk)
    names = [f"{word.upper()} {number}" for number, word in enumerate(rng.choice(WORDS, entities).tolist())]
    told = texts(rng, entities, 12)
    ends = rng.integers(0, entities, (relations, 2))
    with RecordingWriter(path.with_name("recording.jsonl")) as writer:
        documents = []
        for chunk, text in enumerate(texts(rng, chunks, 60)):
            first, last = chunk * per_chunk, min((chunk + 1) * per_chunk, entities)
            own = range(chunk * relations // chunks, (chunk + 1) * relations // chunks)
            body = f"{text} {' '.join(names[first:last])}."
            documents.append(Document(f"d{chunk}", body))
            writer.write(
                f"d{chunk}",
                0,
                len(body),
                Extraction(
                    tuple(EntityRecord(names[n], "thing", told[n]) for n in range(first, last)),
                    tuple(
                        RelationRecord(names[a], names[b], told[a], 1.0 + n % 7)
                        for n, (a, b) in zip(own, ends[own.start : own.stop].tolist(), strict=True)
                        if a != b
                    ),
                ),
            )
    recording = path.with_name("recording.jsonl")
    settings = Settings(
        llm=f"replay:{recording}",
        core_ratio=1.0,
        core_selection="uniform",
        chunk_tokens=400,
        modes="skeleton",
    )
    Index.build(documents, path, settings=settings).close()


def make_lightrag(folder: Path, chunks: int) -> None:
    """A working directory of LightRAG with five chunks in each document and ten entities in each chunk."""
    from ketrag_fast.interchange.lightrag_reader import CHUNKS as CHUNK_FILE
    from ketrag_fast.interchange.lightrag_reader import DOCUMENTS, GRAPH

    rng = np.random.default_rng(8)
    folder.mkdir()
    held: dict[str, Mapping[str, Any]] = {}
    documents: dict[str, Mapping[str, Any]] = {}
    nodes, edges = [], []
    passages = texts(rng, chunks, 250)
    for document in range(0, chunks, 5):
        own = []
        for chunk in range(document, min(document + 5, chunks)):
            names = [f"{WORDS[n % len(WORDS)].capitalize()} {n}" for n in range(chunk * 10, chunk * 10 + 10)]
            text = f"{passages[chunk]} {', '.join(names)}."
            own.append(text)
            about = {"content": text, "full_doc_id": f"doc-{document}", "chunk_order_index": chunk - document}
            held[f"chunk-{chunk}"] = {"tokens": 300, **about, "file_path": f"{document}.txt"}
            nodes += [node(name, f"chunk-{chunk}") for name in names]
            edges += [edge(first, second, f"chunk-{chunk}") for first, second in pairwise(names)]
        documents[f"doc-{document}"] = {"content": "\n".join(own), "file_path": f"{document}.txt"}
    (folder / DOCUMENTS).write_text(json.dumps(documents))
    (folder / CHUNK_FILE).write_text(json.dumps(held))
    keys = "".join(
        f'<key id="d{n}" for="{owner}" attr.name="{name}" attr.type="string"/>'
        for n, (owner, name) in enumerate(
            [
                *(("node", name) for name in ("entity_id", "entity_type", "description", "source_id")),
                *(("edge", name) for name in ("weight", "description", "keywords", "source_id")),
            ]
        )
    )
    body = "\n".join([*nodes, *edges])
    (folder / GRAPH).write_text(f'<graphml>{keys}<graph edgedefault="undirected">{body}</graph></graphml>')


def node(name: str, chunk: str) -> str:
    values = (name, "thing", f"{name} is one of the things.", chunk)
    return f'<node id="{name}">{data(0, values)}</node>'


def edge(first: str, second: str, chunk: str) -> str:
    values = ("2.0", f"{first} is next to {second}.", "next", chunk)
    return f'<edge source="{first}" target="{second}">{data(4, values)}</edge>'


def data(first: int, values: tuple[str, ...]) -> str:
    return "".join(f'<data key="d{first + at}">{value}</data>' for at, value in enumerate(values))


def check(folder: Path) -> None:
    """Have graphrag 3 read an export with communities; its tables must have graphrag's final columns."""
    import pandas as pd  # type: ignore[import-untyped]
    from graphrag.data_model import schemas  # type: ignore[import-not-found]
    from graphrag.query import indexer_adapters as read  # type: ignore[import-not-found]

    names = ("entities", "relationships", "text_units", "documents", "communities", "community_reports")
    tables = {name: pd.read_parquet(folder / f"{name}.parquet") for name in names}
    for name, held in tables.items():
        wanted = getattr(schemas, f"{name.upper()}_FINAL_COLUMNS")
        assert list(held.columns) == wanted, f"{name}: {list(held.columns)}, not {wanted}"
    groups = tables["communities"]
    counts = {
        "entities": len(read.read_indexer_entities(tables["entities"], groups, None)),
        "relationships": len(read.read_indexer_relationships(tables["relationships"])),
        "text units": len(read.read_indexer_text_units(tables["text_units"])),
        "communities": len(read.read_indexer_communities(groups, tables["community_reports"])),
        "reports": len(read.read_indexer_reports(tables["community_reports"], groups, 2)),
    }
    print("graphrag reads", ", ".join(f"{count:,} {name}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
