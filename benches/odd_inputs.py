"""Builds of `auto` without a model from sources of unusual shape at full size: time, memory and bytes of each.

    python benches/odd_inputs.py
    python benches/odd_inputs.py --only one-document

A row ends with what the build reported: the number of documents in the index, or its error.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from common import arguments, publish
from common import result_table as table
from scale import measure

BUILD = """
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


def main() -> None:
    """Build each shape."""
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=SHAPES, help="this shape")
    parser.add_argument("--folder", help="where sources and indexes are written; default: the system's")
    args = parser.parse_args()
    rows: list[list[Any]] = []
    for name, (shown, records) in SHAPES.items():
        if args.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            source, place = Path(folder) / "documents.jsonl", Path(folder) / "index"
            with source.open("w", encoding="utf-8") as out:
                out.writelines(f"{json.dumps(record)}\n" for record in records(0.001 if args.smoke else 1.0))
            built = measure([sys.executable, "-c", BUILD, str(source), str(place)])
            size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
            cells = [source.stat().st_size / 1e6, built.wall, built.peak, built.own, size / 1e6]
            rows.append([shown, *cells, next(iter(built.printed.values()))])
    columns = ["source", "MB", "s", "peak MB", "own MB", "MB on disk", "documents, or the error"]
    publish([table("", columns, rows)], "Sources of unusual shape, two threads, one build each.")


if __name__ == "__main__":
    main()
