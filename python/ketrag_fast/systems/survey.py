"""The survey: excerpts of many documents by theme, for questions about the whole (docs/how-to/themes.md)."""

from __future__ import annotations

from ketrag_fast.systems.spec.system import Recipe, Share, System

SYSTEM = System(
    name="survey",
    order=2,
    source="docs/how-to/themes.md",
    help="excerpts of many documents by theme, for questions about the whole",
    recipes={
        "survey": Recipe(
            (Share("bm25"), Share("walk")),
            "questions about the whole: excerpts of many documents, by theme",
            join="fuse",
            usual=True,
            surveys=True,
        )
    },
)
