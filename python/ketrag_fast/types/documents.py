"""Documents and pieces of them, and documents that could not be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ketrag_fast.types.locations import Locator

ENCODING: Final = "encoding"
"""The encoding of a file was guessed and may be another one; also a metadata field and a kind of locator."""
GENERATED: Final = "generated"
"""A file was left out because a program wrote it."""
HIDDEN: Final = "hidden"
"""Hidden sheets, rows, columns or slides of a file were left out."""
FORMAT: Final = "format"
"""A file was left out because there is no reader for it."""
NOTES: Final = frozenset((ENCODING, GENERATED, HIDDEN))
"""Codes with which readers yield a `Failure` that is none."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text to be indexed. All offsets are code points into `text`; the title is separate.

    `locators` give the positions of parts of the text in its source (pages, headings, ...).

    Examples:
        >>> document = Document("fram", "Nansen built the Fram.", "Fram", {"year": 1892})
        >>> document.text[0:6], document.metadata["year"]
        ('Nansen', 1892)
    """

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    locators: tuple[Locator, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """A document (or a line of one, `file.jsonl:12`) that could not be read, and why.

    `code` is "document"; "part" if the rest of the document is indexed; "chunk" for extraction by an LLM;
    "source" for a folder that is missing, whose documents stay; "unknown" for an id that `remove` does not
    find; or, in `BuildReport.skipped`, why a file was left out.

    Examples:
        >>> Failure("notes.jsonl:12", "document", "line 12 is not JSON").to_json()["document"]
        'notes.jsonl:12'
    """

    document: str
    code: str
    message: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        return {"document": self.document, "code": self.code, "message": self.message}


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a document: `document.text[start:end] == text`, offsets in code points.

    Examples:
        >>> unit, span = index.inspect.around(0)[0]
        >>> library[0].text[span.start : span.end] == span.text
        True
    """

    document: str
    title: str
    start: int
    end: int
    text: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Listed:
    """A document in a list: its id and title, its first unit and its number of units.

    Examples:
        >>> [(listed.document, listed.units) for listed in index.inspect.documents()]
        [('fram', 1), ('maud', 1), ('nansen', 1)]
    """

    document: str
    title: str
    unit: int
    units: int
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the service sends."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a context as given to a model, with the sum of its rows' tokens.

    `passages` is True if its rows are passages of the context, False for an additional table.

    Examples:
        >>> section = index.retrieve("Who sailed the Fram?", mode="bm25").sections[0]
        >>> section.passages
        True
    """

    name: str
    tokens: int
    text: str
    passages: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        return {"name": self.name, "tokens": self.tokens, "text": self.text}
