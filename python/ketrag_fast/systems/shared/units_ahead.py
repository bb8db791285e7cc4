"""Cut documents while the sources are still being read, so that a second core is busy from the beginning.

The result counts only if the stored documents are those that were cut, in their order: the stage "units"
compares the hashes of their contents. Otherwise, or after any error, the documents are cut from the tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.base.config import Settings
from ketrag_fast.kernels.text import pack
from ketrag_fast.storage.array_spool import ArraySpool, scratch_folder
from ketrag_fast.systems.shared.units import JoinedUnits, cut_documents
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.stage import Outputs
from ketrag_fast.types.locations import Locator

if TYPE_CHECKING:
    from concurrent.futures import Future

Packed = tuple[NDArray[np.uint8], NDArray[np.uint64]]
Piece = tuple[Mapping[str, Packed], Mapping[int, tuple[Locator, ...]]]
"""A block of documents: columns, and the locators of documents that have any."""
_BLOCK: Final = 4 << 20
"""Bytes of texts cut at once."""
_MANY: Final = 2_000
"""Documents that are cut as they came although their texts fill no block.

Reading a document back from the tables takes 15 microseconds: 2 of the 5 s of a build of 130,000 short ones.
"""


class UnitsAhead:
    """Cuts documents in a thread as they come. Arrays that were taken stay readable after `close`."""

    def __init__(self, settings: Settings, scratch: Path) -> None:
        self._settings = settings
        self._exits = ExitStack()
        folder = self._exits.enter_context(scratch_folder(scratch))
        self._joined = JoinedUnits(self._exits.enter_context(ArraySpool(folder)))
        from concurrent.futures import ThreadPoolExecutor  # imported here because few changes need it

        pool = ThreadPoolExecutor(1, thread_name_prefix="ketrag-cuts")
        self._pool = self._exits.enter_context(
            pool
        )  # entered last, so the thread ends before its files close
        self._pieces: list[Piece] = []
        self._held = 0
        self._count = 0
        self._work: Future[None] | None = None
        self._contents = hashlib.blake2b(digest_size=32)
        self._is_void = False

    def add(
        self,
        columns: Mapping[str, Packed],
        contents: Sequence[bytes],
        located: Mapping[int, tuple[Locator, ...]],
    ) -> None:
        """Add new documents as columns; `metadata` may be missing."""
        if self._is_void:
            return
        self._contents.update(b"".join(contents))
        self._pieces.append((columns, located))
        self._held += len(columns["text"][0])
        self._count += len(contents)
        if self._held >= _BLOCK:
            self._cut()

    def give_up(self) -> None:
        """Stop cutting, because documents change or come in another order."""
        self._is_void = True
        self._pieces.clear()

    def take(self, contents: NDArray[np.uint8]) -> Outputs | None:
        """Return the arrays if these are the contents of the documents that came; else None.

        Also None for few documents whose texts are shorter than a block.
        """
        if self._is_void or (self._work is None and self._count < _MANY):
            return None
        if hashlib.blake2b(contents.tobytes(), digest_size=32).digest() != self._contents.digest():
            return None
        if self._pieces:
            self._cut()
        self._wait()
        return None if self._is_void else self._joined.finish()

    def close(self) -> None:
        """Wait for the thread, then delete its files."""
        self.give_up()
        self._exits.close()

    def _wait(self) -> None:
        error = self._work.exception() if self._work is not None else None
        if error is not None:  # the stage repeats the work and raises the same error
            self.give_up()

    def _cut(self) -> None:
        """Start cutting the pending documents once the previous block is done."""
        self._wait()
        if self._is_void:
            return
        pieces, self._pieces, self._held = self._pieces, [], 0
        self._work = self._pool.submit(self._cut_pieces, pieces)
        if self._settings.threads == 1:
            self._wait()

    def _cut_pieces(self, pieces: Sequence[Piece]) -> None:
        every = [piece for piece, _ in pieces]
        columns = {name: _concatenate([piece[name] for piece in every]) for name in ("id", "title", "text")}
        columns["metadata"] = _concatenate([_metadata(piece) for piece in every])
        located: dict[int, tuple[Locator, ...]] = {}
        first = 0
        for piece, own in pieces:
            located |= {first + number: locators for number, locators in own.items()}
            first += len(piece["id"][1]) - 1
        documents = Documents.of_columns(columns, located, cut=self._settings.cut == "sentences")
        self._joined.add(*cut_documents(documents, self._settings, self._settings.threads, self._go_on))

    def _go_on(self, *_: int) -> bool | None:
        return False if self._is_void else None


def _metadata(piece: Mapping[str, Packed]) -> Packed:
    found = piece.get("metadata")
    return pack(["{}"] * (len(piece["id"][1]) - 1)) if found is None else found


def _concatenate(parts: Sequence[Packed]) -> Packed:
    if len(parts) == 1:
        return parts[0]
    offsets = [np.zeros(1, np.uint64)]
    before = 0
    for blob, ends in parts:
        offsets.append(ends[1:] + np.uint64(before))
        before += len(blob)
    return np.concatenate([blob for blob, _ in parts]), np.concatenate(offsets)
