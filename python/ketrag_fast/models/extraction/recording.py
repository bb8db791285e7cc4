"""Read and write recordings: JSON lines with the extraction of one passage each.

A line is `{"document", "start", "end", "entities": [[name, type, description]], "relations": [[source,
target, description, strength]], "dropped"}` with code point offsets, or has `"text"` instead of document and
offsets. The first line may describe the recording: `{"schema": "ketrag/recording/1", ...}`. A line in
HippoRAG's format, `{"corpus-id", "entities": [name], "triples": [[s, p, o]]}`, covers a whole document.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from ketrag_fast.errors import BackendError, ConfigError
from ketrag_fast.models.extraction import cleaning as clean
from ketrag_fast.models.extraction.records import EntityRecord, Extraction, RelationRecord
from ketrag_fast.storage.durable import replace_path
from ketrag_fast.storage.io_errors import writing

if TYPE_CHECKING:
    from ketrag_fast.models.extraction.chunk_reader import Chunk, ChunkReader
    from ketrag_fast.models.extraction.run import Reading

SCHEMA: Final = "ketrag/recording/1"
_FIRST_LINE: Final = 4096


@dataclass(frozen=True, slots=True)
class Recorded:
    """The extraction of a passage, identified by document and span (`end` None: to the end of the document),
    or by its `text` if `document` is None.
    """

    extraction: Extraction
    document: str | None = None
    start: int = 0
    end: int | None = None
    text: str = ""


def read_line(line: bytes) -> Recorded | None:
    """Return the record of a line, or None for a header line. Raises ValueError if it is neither."""
    try:
        data = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    if "schema" in data:
        if data["schema"] != SCHEMA:
            raise BackendError(
                f"unsupported recording schema {str(data['schema'])[:80]!r}",
                hint=f"this version reads {SCHEMA}",
            )
        return None
    if "corpus-id" in data:
        return _openie(data)
    document, text = data.get("document"), data.get("text")
    start, end = data.get("start", 0), data.get("end")
    if not isinstance(data.get("entities"), list) or not isinstance(data.get("relations"), list):
        raise ValueError("no lists of entities and relations")
    extraction = _extraction(data["entities"], data["relations"], data.get("dropped", 0))
    if isinstance(document, str) and _natural(start) and (end is None or (_natural(end) and end >= start)):
        return Recorded(extraction, document, start, end)
    if document is None and isinstance(text, str) and text.strip():
        return Recorded(extraction, text=text)
    raise ValueError("neither a document with a span nor a text")


def _natural(value: Any) -> bool:
    return type(value) is int and value >= 0


def _openie(data: Mapping[str, Any]) -> Recorded:
    name, entities, triples = data["corpus-id"], data.get("entities", []), data.get("triples", [])
    if not isinstance(name, (str, int)) or not isinstance(entities, list) or not isinstance(triples, list):
        raise ValueError("the line lacks a corpus-id, or lists of entities and triples")
    rows: list[Any] = []
    for triple in triples:
        if isinstance(triple, list) and len(triple) == 3 and all(isinstance(part, str) for part in triple):
            rows.append([triple[0], triple[2], " ".join(clean.clean(part) for part in triple), 1.0])
        else:
            rows.append(None)
    named = [[entity, "", ""] for entity in entities]
    return Recorded(_extraction(named, rows, 0, escaped=True), str(name))


def _extraction(
    entities: list[Any], relations: list[Any], dropped: Any, *, escaped: bool = False
) -> Extraction:
    kept: list[EntityRecord] = []
    joined: list[RelationRecord] = []
    lost = dropped if _natural(dropped) else 0
    for row in entities:
        entity = clean.entity(*row, escaped=escaped) if isinstance(row, list) and len(row) == 3 else None
        if entity is None:
            lost += 1
        else:
            kept.append(entity)
    for row in relations:
        relation = clean.relation(*row, escaped=escaped) if isinstance(row, list) and len(row) == 4 else None
        if relation is None:
            lost += 1
        else:
            joined.append(relation)
    return Extraction(tuple(kept), tuple(joined), lost)


class RecordingWriter:
    """Writes a recording to FILE.part and renames it when it is closed. After an exception inside the `with`,
    FILE.part is kept.

    Raises ConfigError if the file exists (it may have cost money), StorageFull, ReadOnly.
    """

    def __init__(self, path: Path, about: Mapping[str, Any] | None = None, *, replace: bool = False) -> None:
        if path.exists() and not replace:
            raise ConfigError(
                f"{path} already exists", hint="use another name for the recording, or remove the file"
            )
        if not path.parent.is_dir():
            raise ConfigError(f"cannot write the recording {path.name}: no such folder: {path.parent}")
        self._path = path
        self._aside = path.with_name(path.name + ".part")
        self.count = 0
        with writing(path.parent):
            # Readable by its owner only, like the index; never writes to an existing file.
            self._aside.unlink(missing_ok=True)
            handle = os.open(self._aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._file = os.fdopen(handle, "w", encoding="utf-8", newline="\n")
        self._line({"schema": SCHEMA, **(about or {})})

    def write(self, document: str, start: int, end: int, extraction: Extraction) -> None:
        """Write the extraction of a passage of a document, with code point offsets."""
        self._record({"document": document, "start": start, "end": end}, extraction)

    def write_text(self, text: str, extraction: Extraction) -> None:
        """Write the extraction of a passage identified by its text."""
        self._record({"text": text}, extraction)

    def close(self) -> None:
        """Close the file and rename it to its final name."""
        with writing(self._path.parent):
            self._file.close()
            replace_path(self._aside, self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()

    def _record(self, where: Mapping[str, Any], extraction: Extraction) -> None:
        rows = {"entities": extraction.entities, "relations": extraction.relations}
        self._line({**where, **rows, "dropped": extraction.dropped})
        self.count += 1

    def _line(self, data: Mapping[str, Any]) -> None:
        with writing(self._path.parent):
            self._file.write(json.dumps(data, ensure_ascii=False) + "\n")


# `--record FILE.jsonl`: everything that the journal has about the core chunks, in order. It is also written
# when a build is stopped, and completed when the build is resumed.


def check_place(path: Path, reader: ChunkReader) -> None:
    """Raise ConfigError if the recording cannot be written; called before chunks are read."""
    if not path.parent.is_dir():
        raise ConfigError(f"cannot write the recording {path.name}: no such folder: {path.parent}")
    if path.is_dir():
        raise ConfigError(f"--record must name a file, but {path} is a folder")
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            about = json.loads(file.readline(_FIRST_LINE))
        own = isinstance(about, dict) and about.get("reader") == reader.key
    except (OSError, ValueError, RecursionError):
        own = False
    if not own:
        raise ConfigError(
            f"{path} already exists and is not a recording of this model with this prompt",
            hint="use another name for --record, or remove the file",
        )


def write_recording(path: Path, reading: Reading, chunks: Sequence[Chunk]) -> int:
    """Write the usable extractions and return their number."""
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
