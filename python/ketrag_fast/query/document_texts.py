"""Names and texts of the documents of an opened generation, by number."""

from __future__ import annotations

from functools import cached_property

from ketrag_fast import _core


class DocumentTexts:
    """The documents of a generation. A document with sections is one text.

    `core` reads and searches texts; the names are read once.
    """

    def __init__(self, searcher: _core.Searcher) -> None:
        self.core = _core.Documents(searcher)

    def __len__(self) -> int:
        return len(self.core)

    @cached_property
    def names(self) -> list[str]:
        """The ids of the documents."""
        return self.core.names()

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each document by its id."""
        return {name: number for number, name in enumerate(self.names)}

    def rows(self, number: int) -> range:
        """Return the rows of a document in the documents' arrays."""
        return range(*self.core.rows(number))

    def text(self, number: int) -> str:
        """Return the text of a document."""
        return self.core.text(number)
