"""Documents and pieces of them: what was indexed, and what could not be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ketrag_fast.types.locations import Locator


@dataclass(frozen=True, slots=True)
class Document:
    """One text to be indexed. Offsets everywhere are code points into `text`; the title is apart.

    `locators` say where stretches of the text stand in its source (pages, headings, ...).
    """

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    locators: tuple[Locator, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """A document (or a line of one, `file.jsonl:12`) that could not be read, and why."""

    document: str
    code: str
    message: str

    def to_json(self) -> dict[str, Any]:
        """As the command prints it (85-interface)."""
        return {"document": self.document, "code": self.code, "message": self.message}


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a document: `document.text[start:end] == text`, offsets in code points."""

    document: str
    title: str
    start: int
    end: int
    text: str

    def to_json(self) -> dict[str, Any]:
        """As the command prints it (85-interface)."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Listed:
    """A document in a list: its id and title, its first unit and how many it has."""

    document: str
    title: str
    unit: int
    units: int
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As the service sends it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a context as a model is given it, with the sum of its rows' tokens. `passages` says whether
    its rows are passages of the context; else it is a table beside them.
    """

    name: str
    tokens: int
    text: str
    passages: bool = True

    def to_json(self) -> dict[str, Any]:
        """As the command prints it (85-interface)."""
        return {"name": self.name, "tokens": self.tokens, "text": self.text}
