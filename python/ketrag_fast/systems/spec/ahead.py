"""Interface for a stage that begins its work while the sources are still being read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.types import Document
    from ketrag_fast.types.locations import Locator

    Packed = tuple[NDArray[np.uint8], NDArray[np.uint64]]


def columns_of(documents: Sequence[Document], metadata: Sequence[str] | None) -> dict[str, Packed]:
    """Return documents as columns; `metadata` is JSON for each document, or None if no document has any."""
    from ketrag_fast.kernels.text import pack

    columns = {
        "id": pack([document.id for document in documents]),
        "title": pack([document.title for document in documents]),
        "text": pack([document.text for document in documents]),
    }
    return columns if metadata is None else {**columns, "metadata": pack(metadata)}


class Ahead(Protocol):
    """Processes documents while they are read. The stage calls `take`; the build calls the other methods."""

    def add(
        self,
        columns: Mapping[str, Packed],
        contents: Sequence[bytes],
        located: Mapping[int, tuple[Locator, ...]],
    ) -> None:
        """Add documents in order.

        Args:
            columns: `id`, `title`, `text` and `metadata`, if any has some.
            contents: Their hashes.
            located: The locators of those that have any, by number.
        """

    def give_up(self) -> None:
        """Discard everything: documents are changed or moved."""

    def take(self, contents: NDArray[np.uint8]) -> Mapping[str, NDArray[Any]] | None:
        """Return the result if it was computed from exactly these documents, identified by hash, in order."""

    def close(self) -> None:
        """End the work, and remove its files."""
