"""Read and write recordings: JSON lines with the extraction of one passage each.

A line is `{"document", "start", "end", "entities": [[name, type, description]], "relations": [[source,
target, description, strength]], "dropped"}` with code point offsets, or has `"text"` instead of document and
offsets. The first line may describe the recording: `{"schema": "ketrag/recording/1", ...}`. A line in
HippoRAG's format, `{"corpus-id", "entities": [name], "triples": [[s, p, o]]}`, covers a whole document.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeVar
from zlib import crc32

from ketrag_fast.errors import BackendError, ConfigError
from ketrag_fast.models.extraction import records as clean
from ketrag_fast.models.extraction.grounding import Source, fold
from ketrag_fast.models.extraction.records import EntityRecord, Extraction, RelationRecord
from ketrag_fast.records import dataclass
from ketrag_fast.storage.durable import replace_path
from ketrag_fast.storage.io_errors import writing

SCHEMA: Final = "ketrag/recording/1"


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


MAX_LINE: Final = 16_000_000
"""Maximum length of a line in bytes; longer lines are malformed."""
_SHOWN: Final = 5
_FAR: Final = 1 << 62
_RUN: Final = 8
_STEP: Final = 4
# Scripts without blanks count by characters, the others by words.
_WORD: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")
T = TypeVar("T", EntityRecord, RelationRecord)


class Recording:
    """An open recording."""

    def __init__(self, fingerprint: str, records: Iterable[Recorded]) -> None:
        self.fingerprint = fingerprint
        placed: dict[str, dict[tuple[int, int | None], Recorded]] = {}
        self._texts: list[Recorded] = []
        for record in records:
            if record.document is None:
                self._texts.append(record)
            else:  # of two records with one span the later wins
                placed.setdefault(record.document, {})[record.start, record.end] = record
        self._placed = {
            name: sorted(found.values(), key=lambda r: (r.start, r.end is None, r.end or 0))
            for name, found in placed.items()
        }
        # A record that begins earlier than the longest one before a unit cannot reach it.
        self._longest = {
            name: max(_FAR if r.end is None else r.end - r.start for r in found)
            for name, found in self._placed.items()
        }
        self._runs: dict[int, list[int]] = {}
        for place, record in enumerate(self._texts):
            for run in set(_runs(record.text, _STEP)):
                self._runs.setdefault(run, []).append(place)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Read a recording; malformed lines are skipped. Raises BackendError if no line is valid."""
        place = Path(path).expanduser()
        digest = hashlib.sha256()
        records: list[Recorded] = []
        wrong: list[str] = []
        try:
            with place.open("rb") as file:
                for number, line in enumerate(iter(partial(file.readline, MAX_LINE + 1), b""), 1):
                    digest.update(line)
                    try:
                        if len(line) > MAX_LINE:
                            raise ValueError("line too long")
                        record = read_line(line) if line.strip() else None
                    except ValueError as error:
                        if len(wrong) < _SHOWN:
                            wrong.append(f"line {number}: {error}")
                        continue
                    if record is not None:
                        records.append(record)
        except OSError as error:
            raise BackendError(
                f"the recording {place} cannot be read: {error.strerror}",
                hint="give replay:FILE.jsonl, written by an earlier build",
            ) from error
        if not records and wrong:
            raise BackendError(
                f"{place} is not a recording: {'; '.join(wrong)}",
                hint="a line is a passage with its entities and relations, or with corpus-id and triples",
            )
        return cls(digest.hexdigest(), records)

    def __len__(self) -> int:
        return len(self._texts) + sum(map(len, self._placed.values()))

    def extraction_for(
        self, document_id: str, start: int, end: int, title: str, text: str
    ) -> Extraction | None:
        """Return the recorded extraction for a chunk, or None if there is none.

        `start` and `end` are code point offsets in the document; `text` is the text of the chunk.
        """
        found = self._overlapping(document_id, start, end)
        for record in found:
            if (record.start, record.end) == (start, end):
                return record.extraction
        found += self._sharing(text)
        for record in found:
            if record.document is None and record.text == text:
                return record.extraction
        if not found:
            return None
        source = Source(f"{title}\n{text}" if title else text)
        return Extraction(
            _distinct(
                entity
                for record in found
                for entity in record.extraction.entities
                if source.holds(entity.name)
            ),
            _distinct(
                relation
                for record in found
                for relation in record.extraction.relations
                if source.holds(relation.source) or source.holds(relation.target)
            ),
            sum(record.extraction.dropped for record in found),
        )

    def _overlapping(self, document: str, start: int, end: int) -> list[Recorded]:
        """Return the records of a document that overlap a span; an empty span counts as one character."""
        last = max(end, start + 1)
        records = self._placed.get(document, [])
        first = bisect_left(records, start - self._longest.get(document, 0), key=lambda r: r.start)
        before = bisect_left(records, last, key=lambda r: r.start)
        return [r for r in records[first:before] if r.end is None or r.end > start]

    def _sharing(self, text: str) -> list[Recorded]:
        """Return the records whose text shares a run of words with this one, in file order."""
        if not self._texts:
            return []
        places = {place for run in _runs(text, 1) for place in self._runs.get(run, ())}
        return [self._texts[place] for place in sorted(places)]


def _runs(text: str, step: int) -> Iterator[int]:
    """Yield a hash of the run of words at every `step`-th word; a shorter text is one run."""
    words = _WORD.findall(fold(text))
    for begin in range(0, max(len(words) - _RUN, 0) + 1, step):
        run = " ".join(words[begin : begin + _RUN]).encode("utf-8", "replace")
        if run:
            yield crc32(run) << 32 | len(run)


def _distinct(records: Iterable[T]) -> tuple[T, ...]:
    """Return records without the duplicates of overlapping passages, in order."""
    return tuple(dict.fromkeys(records))
