"""Compare the contents of files that have other times and the size that they had.

A tool that rewrites or copies files touches thousands of them without a change. A query compares them in
batches for a limited time and stores what it learned, so that the next one continues with the others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ketrag_fast.errors import KetragError
from ketrag_fast.records import dataclass, field
from ketrag_fast.storage.known_files import NO_DIGEST, KnownFile, digests_of, size_of

if TYPE_CHECKING:
    from ketrag_fast.storage.layout import Layout
    from ketrag_fast.storage.source_table import SourceTable

_BATCH: Final = 512
_BATCH_BYTES: Final = 32 << 20
"""Bounds of the files that are compared together: their number and their bytes."""
_LARGE: Final = 256 << 20
"""Bytes of a file that only a build compares, because hashing it takes as long as a query may wait."""


@dataclass(slots=True)
class Compared:
    """Files whose contents were compared.

    Attributes:
        same, changed: Files with the same and with another content, each with what is known of it now. Files
            that could not be read, or only in part, count as changed if they have other times: a build tries
            them again.
        count: Their number.
    """

    same: list[tuple[KnownFile, bytes]] = field(default_factory=list)
    changed: list[tuple[KnownFile, bytes]] = field(default_factory=list)
    count: int = 0


def compare_touched(
    tables: SourceTable,
    touched: Sequence[tuple[int, bytes]],
    roots: Mapping[int, Path | None],
    seconds: float,
) -> Compared | None:
    """Compare files by number for about some seconds, at least one batch.

    `roots` are the folders of the sources in which their files must be; see `digests_of`. Returns None if a
    row was altered.
    """
    done, until = Compared(), time.monotonic() + seconds
    for batch in _batches(touched):
        stats = dict(batch)
        rows = tables.files_at(list(stats), roots)
        if len(rows) < len(batch):
            return None
        by_source: dict[int, list[tuple[KnownFile, bytes]]] = {}
        for row, (_, stat) in zip(rows, batch, strict=True):
            has_notes = bool(row.notes) and not row.is_skipped
            if row.size > _LARGE or (has_notes and (row.is_settled or not row.is_as(stat))):
                done.changed.append((row, stat))
            else:
                by_source.setdefault(row.source, []).append((row, stat))
        for source, files in by_source.items():
            digests = digests_of([row.path for row, _ in files], roots[source])
            for (row, stat), digest in zip(files, digests, strict=True):
                is_same = digest == row.digest != NO_DIGEST
                (done.same if is_same else done.changed).append((row, stat))
        done.count += len(batch)
        if time.monotonic() >= until:
            break
    return done


def _batches(touched: Sequence[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    batch: list[tuple[int, bytes]] = []
    size = 0
    for number, stat in touched:
        if batch and (len(batch) >= _BATCH or size + size_of(stat) > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((number, stat))
        size += size_of(stat)
    if batch:
        yield batch


def store_compared(layout: Layout, same: Sequence[tuple[KnownFile, bytes]]) -> None:
    """Store that files have the content that they had; without effect if the index cannot be written now."""
    from ketrag_fast.storage.source_table import open_sources

    news = [(row, stat) for row, stat in same if row.stat != stat]
    if not news:
        return
    try:
        with open_sources(layout.tables, writable=True) as tables, tables.transaction():
            tables.set_stats(news)
    except (KetragError, OSError):
        return
