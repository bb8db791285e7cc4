"""`--record FILE.jsonl`: all that a reader said of the core chunks, for `replay:FILE.jsonl` elsewhere.

What is kept in the journal is written, in the order of the chunks: also after a build that was stopped,
whose recording then grows when it goes on. A file of another origin is never written over.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ketrag_fast.errors import ConfigError
from ketrag_fast.extraction.reader import Chunk, Reader
from ketrag_fast.extraction.recording import RecordingWriter
from ketrag_fast.extraction.run import Reading

_FIRST = 4096


def check_place(path: Path, reader: Reader) -> None:
    """ConfigError where the recording could not be written; asked before anything is read."""
    if not path.parent.is_dir():
        raise ConfigError(f"there is no folder {path.parent} to write a recording to")
    if path.is_dir():
        raise ConfigError(f"{path} is a folder", hint="--record takes the name of a file")
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            about = json.loads(file.readline(_FIRST))
        own = isinstance(about, dict) and about.get("reader") == reader.key
    except (OSError, ValueError, RecursionError):
        own = False
    if not own:
        raise ConfigError(
            f"{path} is there already, and no recording of this model under this prompt",
            hint="give --record another name, or remove the file",
        )


def write(path: Path, reading: Reading, chunks: Sequence[Chunk]) -> int:
    """Writes what is usable; says how many chunks that were."""
    reader = reading.reader
    about = {
        "reader": reader.key,
        "spec": reader.spec,
        "fingerprint": reader.identity.get("fingerprint"),
    }
    ordered = sorted(chunks)
    names = [reader.name(chunk) for chunk in ordered]
    with RecordingWriter(path, about, replace=True) as writer:
        for place, rows in reading.journal.rows(reading.number, names):
            chunk = ordered[place]
            found = reader.extraction(rows, chunk)
            if found is not None:
                writer.write(chunk.document, chunk.start, chunk.end, found)
        return writer.count
