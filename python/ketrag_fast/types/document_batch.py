"""Many plain documents in columns, without metadata and locators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ketrag_fast.types.documents import Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Packed = tuple[NDArray[np.uint8], NDArray[np.uint64]]

_ENTRY = 16
"""Number of characters that `readers.within` adds for each document."""


@dataclass(frozen=True, slots=True)
class DocumentBatch:
    """Documents that a reader read together. Each has an id, and a text or title that is not blank.

    `contents` are the documents' content hashes (32 bytes each). `packed` has
    the keys `id`, `title` and `text`, each with a UTF-8 blob and its n + 1 offsets.

    >>> batch = DocumentBatch(["a"], ["Title"], ["Text."], [bytes(32)], {})
    >>> len(batch), batch.characters, [document.id for document in batch.documents()]
    (1, 27, ['a'])
    """

    ids: list[str]
    titles: list[str]
    texts: list[str]
    contents: list[bytes]
    packed: Mapping[str, Packed]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def characters(self) -> int:
        """Total number of characters as `readers.within` counts them."""
        own = sum(map(len, self.texts)) + sum(map(len, self.ids)) + sum(map(len, self.titles))
        return own + _ENTRY * len(self.ids)

    def part(self, start: int, stop: int) -> DocumentBatch:
        """Return a range of adjacent documents."""
        packed: dict[str, Packed] = {}
        for name, (blob, offsets) in self.packed.items():
            ends = offsets[start : stop + 1]
            packed[name] = blob[int(ends[0]) : int(ends[-1])], ends - ends[0]
        own = slice(start, stop)
        return DocumentBatch(self.ids[own], self.titles[own], self.texts[own], self.contents[own], packed)

    def documents(self) -> Iterator[Document]:
        """Yield the documents one by one."""
        for name, text, title in zip(self.ids, self.texts, self.titles, strict=True):
            yield Document(name, text, title, {})
