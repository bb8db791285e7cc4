"""Immutable data classes of the public API, independent of how they are stored or computed."""

from __future__ import annotations

from importlib import import_module

# Modules are imported on first use of one of their names. Type checkers treat this name as true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from ketrag_fast.types.answers import Answer, AnswerSentence, Citation, Quote
    from ketrag_fast.types.contexts import Cited, Context, Copy, Lazy, Passage
    from ketrag_fast.types.documents import Document, Failure, Listed, Section, Span
    from ketrag_fast.types.graphs import Entity, GraphEdge, GraphNode, GraphView, Relation
    from ketrag_fast.types.hits import Excerpt, Files, Hit, Hits, Match, Place, ShownLine
    from ketrag_fast.types.locations import Location, Locator
    from ketrag_fast.types.reports import BuildReport, StageReport, Usage
    from ketrag_fast.types.themes import (
        Theme,
        ThemeDocument,
        ThemePeriod,
        ThemeQuote,
        Themes,
        ThemeSummaries,
        ThemeSummary,
    )
    from ketrag_fast.types.turns import Turn

# fmt: off
__all__ = [
    "Answer", "AnswerSentence", "BuildReport", "Citation", "Cited", "Context", "Copy", "Document", "Entity",
    "Excerpt", "Failure", "Files", "GraphEdge", "GraphNode", "GraphView", "Hit", "Hits", "Lazy", "Listed",
    "Location", "Locator", "Match", "Passage", "Place", "Quote", "Relation", "Section", "ShownLine", "Span",
    "StageReport", "Theme", "ThemeDocument", "ThemePeriod", "ThemeQuote", "ThemeSummaries", "ThemeSummary",
    "Themes", "Turn", "Usage",
]
# fmt: on
_HOMES = {
    **dict.fromkeys(("Answer", "AnswerSentence", "Citation", "Quote"), "answers"),
    **dict.fromkeys(("Cited", "Context", "Copy", "Lazy", "Passage"), "contexts"),
    **dict.fromkeys(("Document", "Failure", "Listed", "Section", "Span"), "documents"),
    **dict.fromkeys(("Entity", "GraphEdge", "GraphNode", "GraphView", "Relation"), "graphs"),
    **dict.fromkeys(("Excerpt", "Files", "Hit", "Hits", "Match", "Place", "ShownLine"), "hits"),
    **dict.fromkeys(("Location", "Locator"), "locations"),
    **dict.fromkeys(("BuildReport", "StageReport", "Usage"), "reports"),
    **dict.fromkeys(("Theme", "ThemeDocument", "ThemePeriod", "ThemeQuote"), "themes"),
    **dict.fromkeys(("ThemeSummaries", "ThemeSummary", "Themes"), "themes"),
    "Turn": "turns",
}
"""The module of each name."""


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
