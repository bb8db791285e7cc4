"""Many plain documents as columns: no metadata, no locators."""

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
"""Characters counted for a document in addition to its texts, as `text_limit` counts them."""


@dataclass(frozen=True, slots=True)
class DocumentBatch:
    """Documents that a reader read together; each has an id and a text that is not blank, or such a title.

    `contents` are the hashes by which changes of the documents are detected (32 bytes each). `packed` has
    ids, titles and texts as UTF-8, (blob, n + 1 offsets) each, by `id`, `title` and `text`.

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
        """Characters of all documents, as `text_limit` counts them."""
        own = sum(map(len, self.texts)) + sum(map(len, self.ids)) + sum(map(len, self.titles))
        return own + _ENTRY * len(self.ids)

    def part(self, start: int, stop: int) -> DocumentBatch:
        """Return some adjacent documents."""
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
