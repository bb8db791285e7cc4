"""Graph indexes for retrieval-augmented generation, built and queried on your machine.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

# Type checkers read this name as true. Without the module `typing` the import takes half the time.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from ketrag_fast._core import __version__
    from ketrag_fast.base.config import Settings
    from ketrag_fast.base.progress import Event
    from ketrag_fast.errors import KetragError
    from ketrag_fast.index import Index
    from ketrag_fast.index.indexes import Indexes
    from ketrag_fast.interchange.exporting import export_graph
    from ketrag_fast.interchange.importing import import_index
    from ketrag_fast.query.query import Query
    from ketrag_fast.types import (
        Answer,
        AnswerSentence,
        BuildReport,
        Citation,
        Context,
        Document,
        Entity,
        Excerpt,
        Failure,
        Files,
        Hit,
        Hits,
        Locator,
        Match,
        Passage,
        Quote,
        Relation,
        Section,
        Span,
        Theme,
        Themes,
        ThemeSummaries,
        ThemeSummary,
        Turn,
    )

_HOMES = {
    "Answer": "types",
    "AnswerSentence": "types",
    "BuildReport": "types",
    "Citation": "types",
    "Context": "types",
    "Document": "types",
    "Entity": "types",
    "Event": "base.progress",
    "Excerpt": "types",
    "Failure": "types",
    "Files": "types",
    "Hit": "types",
    "Hits": "types",
    "Index": "index",
    "Indexes": "index.indexes",
    "KetragError": "errors",
    "Locator": "types",
    "Match": "types",
    "Passage": "types",
    "Quote": "types",
    "Query": "query.query",
    "Turn": "types",
    "Relation": "types",
    "Section": "types",
    "Settings": "base.config",
    "Span": "types",
    "Theme": "types",
    "Themes": "types",
    "ThemeSummaries": "types",
    "ThemeSummary": "types",
    "__version__": "_core",
    "export_graph": "interchange.exporting",
    "import_index": "interchange.importing",
}

__all__ = [
    "Answer",
    "AnswerSentence",
    "BuildReport",
    "Citation",
    "Context",
    "Document",
    "Entity",
    "Event",
    "Excerpt",
    "Failure",
    "Files",
    "Hit",
    "Hits",
    "Index",
    "Indexes",
    "KetragError",
    "Locator",
    "Match",
    "Passage",
    "Query",
    "Quote",
    "Relation",
    "Section",
    "Settings",
    "Span",
    "Theme",
    "ThemeSummaries",
    "ThemeSummary",
    "Themes",
    "Turn",
    "__version__",
    "export_graph",
    "import_index",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
