"""What each mode prints: its channels, how they are joined, and what the core is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ketrag_fast import _core
from ketrag_fast.config import Settings


@dataclass(frozen=True)
class Recipe:
    """The channels of a mode, in the order of their sections."""

    channels: tuple[str, ...]
    join: str = "shares"
    lists: tuple[str, ...] = ()
    """The lists of vectors that are searched from end to end: an approximate search may propose from them."""


RECIPES: Final = {
    "bm25": Recipe(("bm25",)),
    "fused": Recipe(("bm25", "text"), "fuse"),
    "hybrid": Recipe(("skeleton", "text"), lists=("units", "entities")),
    "ket": Recipe(("skeleton", "keyword"), lists=("keywords", "entities")),
    "keyword": Recipe(("keyword",), lists=("keywords",)),
    "knng": Recipe(("knng",)),
    "ms-graph": Recipe(("skeleton",), lists=("entities",)),
    "skeleton": Recipe(("skeleton",), lists=("entities",)),
    "text": Recipe(("text",), lists=("units",)),
    "walk": Recipe(("walk",)),
}
"""The modes of the core."""

_ROLLOVER: Final = {"none": "none", "texts": "last", "graph": "first"}


def missing_of(channels: Mapping[str, str | None]) -> dict[str, str | None]:
    """For each mode the first part that one of its channels lacks; None where the mode is served."""
    return {
        mode: next((channels[name] for name in recipe.channels if channels[name] is not None), None)
        for mode, recipe in RECIPES.items()
    }


def request_of(
    settings: Settings,
    mode: str,
    budgets: Sequence[int],
    *,
    top: int | None = None,
    deadline: float | None = None,
) -> _core.Request:
    """What the core is asked for; `top` and `deadline` are as they stand, the rest is from the settings."""
    recipe = RECIPES[mode]
    return _core.Request(
        mode,
        _shares(recipe, settings.kg_share),
        list(budgets),
        join=recipe.join,
        rollover=_ROLLOVER[settings.rollover],
        options={name: getattr(settings, name) for name in _OPTIONS},
        top=top,
        skip=settings.fill_policy == "skip_and_continue",
        truncate=settings.oversize_policy == "truncate",
        deadline=deadline,
    )


_OPTIONS: Final = ("seed_keywords", "row_count", "seed_entities", "tables")
"""Settings that channels of the core read."""


def _shares(recipe: Recipe, first: float) -> list[tuple[str, float]]:
    names = recipe.channels
    if recipe.join == "fuse":
        return [(name, 1 / len(names)) for name in names]
    if len(names) == 1:
        return [(names[0], 1.0)]
    return [(names[0], first), (names[1], 1.0 - first)]
