"""`replay:FILE.jsonl`: reuse recorded extractions without a model.

A record applies to each chunk whose span overlaps the recorded passage: a chunk with the same span gets all
of it, another one the items with a name in its title or text (`grounding`). A record without a span applies
to chunks that share a run of at least eleven words with its text.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Self, TypeVar
from zlib import crc32

from ketrag_fast.errors import BackendError
from ketrag_fast.models.extraction.grounding import Source, fold
from ketrag_fast.models.extraction.recording import Recorded, RecordingWriter, read_line
from ketrag_fast.models.extraction.records import EntityRecord, Extraction, RelationRecord

__all__ = ["Recording", "RecordingWriter"]

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
    """An open recording. Counts `malformed` lines and `missing` chunks, which have no record."""

    def __init__(self, path: Path, fingerprint: str, records: Iterable[Recorded], malformed: int) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self.malformed = malformed
        self.missing = 0
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
        """Read a recording. Raises BackendError if it is missing or no line is valid."""
        place = Path(path).expanduser()
        digest = hashlib.sha256()
        records: list[Recorded] = []
        wrong: list[str] = []
        malformed = 0
        try:
            with place.open("rb") as file:
                number = 0
                while line := file.readline(MAX_LINE + 1):
                    number += 1
                    digest.update(line)
                    try:
                        if len(line) > MAX_LINE:
                            raise ValueError("line too long")
                        record = read_line(line) if line.strip() else None
                    except ValueError as error:
                        malformed += 1
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
        if not records and malformed:
            raise BackendError(
                f"{place} is not a recording: {'; '.join(wrong)}",
                hint="a line is a passage with its entities and relations, or with corpus-id and triples",
            )
        return cls(place, digest.hexdigest(), records, malformed)

    def __len__(self) -> int:
        return len(self._texts) + sum(map(len, self._placed.values()))

    def extraction_for(
        self, document_id: str, start: int, end: int, title: str, text: str
    ) -> Extraction | None:
        """Return the recorded extraction for a chunk; None (and count it as `missing`) if there is none.

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
            self.missing += 1
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
