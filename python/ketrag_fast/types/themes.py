"""Themes: what the documents of an index are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ketrag_fast.records import asdict, dataclass, field
from ketrag_fast.types.documents import Record
from ketrag_fast.types.locations import Location


@dataclass(frozen=True, slots=True)
class ThemeQuote(Record):
    """A central sentence of a theme: `document.text[start:end] == text`, offsets in code points.

    Examples:
        >>> quote = index.themes().themes[0].quotes[0]
        >>> texts = {document.id: document.text for document in library}
        >>> texts[quote.document][quote.start : quote.end] == quote.text
        True
    """

    text: str
    document: str
    title: str
    start: int
    end: int
    unit: int
    location: Location = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ThemeDocument(Record):
    """A document of a theme, its number of passages in the theme, and its most central passage (unit number).

    Examples:
        >>> ThemeDocument("fram.md", "Fram", 3, 17).passages
        3
    """

    document: str
    title: str
    passages: int
    unit: int


@dataclass(frozen=True, slots=True)
class ThemePeriod(Record):
    """A year, month or day: the number of the theme's passages, and their share of all passages in it.

    Examples:
        >>> ThemePeriod("2026-03", 12, 0.25).to_json()
        {'period': '2026-03', 'passages': 12, 'share': 0.25}
    """

    period: str
    passages: int
    share: float


@dataclass(frozen=True, slots=True)
class ThemeSummary(Record):
    """A title and summary of a theme, written by an LLM.

    Examples:
        >>> ThemeSummary("Ships in the ice", "The Fram drifted with the ice, as planned.").title
        'Ships in the ice'
    """

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Theme:
    """A theme of an index.

    Attributes:
        id: the path of numbers from the widest theme, such as "2.1"; the largest theme is 1.
        terms: the terms that distinguish the theme from the passages around it, best first.
        passages: the number of passages; equal and nearly equal passages count once.
        copies: the number of additional passages that are copies of counted passages.
        document_count: the number of documents with passages in the theme.
        documents: at most ten documents, those with the most passages in the theme.
        quotes: its central sentences.
        over_time: the theme's share of passages in each period, if documents have dates.
        themes: the narrower themes in it, the largest first.
        summary: a summary by an LLM, if `Index.summarise_themes` was called.

    Examples:
        >>> theme = index.themes().themes[0]
        >>> theme.id, theme.passages, theme.document_count
        ('1', 3, 3)
    """

    id: str
    terms: tuple[str, ...]
    passages: int
    copies: int
    document_count: int
    documents: tuple[ThemeDocument, ...] = ()
    quotes: tuple[ThemeQuote, ...] = ()
    over_time: tuple[ThemePeriod, ...] = ()
    themes: tuple[Theme, ...] = ()
    summary: ThemeSummary | None = None

    @property
    def label(self) -> str:
        """The terms on one line."""
        return ", ".join(self.terms)

    def walk(self) -> Iterator[Theme]:
        """Yield the theme and all narrower themes in pre-order."""
        yield self
        for theme in self.themes:
            yield from theme.walk()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        return {
            "id": self.id,
            "label": self.label,
            "terms": list(self.terms),
            "passages": self.passages,
            "copies": self.copies,
            "document_count": self.document_count,
            "summary": None if self.summary is None else self.summary.to_json(),
            "documents": [one.to_json() for one in self.documents],
            "quotes": [one.to_json() for one in self.quotes],
            "over_time": [one.to_json() for one in self.over_time],
            "themes": [one.to_json() for one in self.themes],
        }


@dataclass(frozen=True, slots=True)
class Themes:
    """The themes of an index, the largest first.

    Attributes:
        passages: the number of distinct passages; `copies` is the number of other passages.
        documents: the number of documents.
        unassigned: the number of passages without words, which belong to no theme.
        generation: the number of the generation that was read.

    Examples:
        >>> themes = index.themes()
        >>> themes.passages, themes.documents, len(themes.themes)
        (3, 3, 1)
    """

    themes: tuple[Theme, ...]
    passages: int
    copies: int
    documents: int
    unassigned: int = 0
    generation: int = 0
    timings_ms: Mapping[str, float] = field(default_factory=dict)

    def walk(self) -> Iterator[Theme]:
        """Yield all themes in pre-order."""
        for theme in self.themes:
            yield from theme.walk()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        return {
            "schema": "ketrag/themes/1",
            "passages": self.passages,
            "copies": self.copies,
            "documents": self.documents,
            "unassigned": self.unassigned,
            "generation": self.generation,
            "themes": [one.to_json() for one in self.themes],
        }


@dataclass(frozen=True, slots=True)
class ThemeSummaries:
    """The result of `Index.summarise_themes`, or its plan in a dry run.

    Attributes:
        themes: the number of themes.
        kept: themes whose earlier summary is still valid.
        written: summaries written now.
        failed: themes without a usable reply, which are described by their quotes alone.
        pending: themes not summarised because a limit was reached; in a dry run, all without a summary.
        calls, tokens_in, tokens_out, seconds: usage of this run; in a dry run, an estimate for the pending
            themes. `seconds` is None if the speed of the model is unknown.
        usd: the cost in USD, if the price of the model is known.
        stopped: the limit that was reached, `limit_seconds` or `limit_usd`.

    Examples:
        >>> ThemeSummaries(themes=9, kept=7, written=2, calls=2).to_json()["written"]
        2
    """

    themes: int
    kept: int = 0
    written: int = 0
    failed: int = 0
    pending: int = 0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float | None = 0.0
    usd: float | None = None
    stopped: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        return {"schema": "ketrag/theme-summaries/1", **asdict(self)}
