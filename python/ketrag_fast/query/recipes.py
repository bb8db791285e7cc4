"""Modes as recipes of channels, and the conversion of a recipe to a request to the core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ConfigError
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.system import REST, Channel, Recipe

_ROLLOVER: Final = {"texts": "last", "graph": "first"}
"""Rollover rules by name, as the numbers that the core uses."""


@dataclass(frozen=True, slots=True)
class ModeRecipe:
    """A mode: its name, its recipe, and the channels of the recipe in order."""

    name: str
    recipe: Recipe
    channels: tuple[Channel, ...]

    def channel(self, name: str) -> Channel:
        """Return the channel with a name."""
        return next(channel for channel in self.channels if channel.name == name)


def find_recipe(mode: str) -> ModeRecipe:
    """Return the recipe of a mode. Raises ConfigError if the mode is unknown."""
    systems = registry()
    recipe = systems.recipe(mode)
    return ModeRecipe(mode, recipe, tuple(systems.channels[name] for name in recipe.channels))


def build_request(
    settings: Settings,
    mode: ModeRecipe,
    budgets: Sequence[int],
    *,
    top: int | None = None,
    deadline: float | None = None,
    mask: _core.Mask | None = None,
    min_score: float = 0.0,
    once: bool = True,
) -> _core.Request:
    """Return the core's request for a mode.

    Args:
        settings: Settings of the index; the options of the channels come from them.
        mode: The mode's recipe.
        budgets: Budgets in tokens; the core prints one context per budget.
        top: Maximum number of passages.
        deadline: Seconds left.
        mask: Units that may be printed, None for all.
        min_score: Minimum relevance of a printed unit.
        once: Print only one of nearly equal units, and adjacent units as one passage. Ignored if chunks
            are the fixed windows of the published systems.

    Raises:
        ConfigError: The shares of the budget add up to more than 1.
    """
    recipe = mode.recipe
    rollover = "none" if recipe.rollover is None else str(settings.value(recipe.rollover))
    options = {name: settings.value(name) for channel in mode.channels for name in channel.settings}
    return _core.Request(
        mode.name,
        split_budget(mode, settings),
        list(budgets),
        join=recipe.join,
        rollover=_ROLLOVER.get(rollover, rollover),
        options={**settings.rules, **options},
        top=top,
        skip=settings.fill_policy == "skip_and_continue",
        truncate=settings.oversize_policy == "truncate",
        deadline=deadline,
        mask=mask,
        once=once and prints_once(settings),
        min_score=min_score,
    )


def prints_once(settings: Settings) -> bool:
    """Return whether to print copies once and to merge adjacent units. False for the published systems."""
    return settings.cut != "windows" and not settings.system.endswith(":reference")


def split_budget(mode: ModeRecipe, settings: Settings) -> list[tuple[str, float]]:
    """Return each channel with its share of the budget. Raises ConfigError if the sum of shares exceeds 1."""
    recipe = mode.recipe
    if recipe.join == "fuse":
        return [(name, 1 / len(recipe.shares)) for name in recipe.channels]
    shares: list[tuple[str, float]] = []
    for share in recipe.shares:
        if share.of == REST:
            part = max(1.0 - sum(taken for _, taken in shares), 0.0)
        else:
            part = float(settings.value(share.of) if isinstance(share.of, str) else share.of)
        shares.append((share.channel, part))
    total = sum(part for _, part in shares)
    if total > 1 + 1e-9:
        names = ", ".join(share.of for share in recipe.shares if isinstance(share.of, str))
        raise ConfigError(f"{names}: the shares of mode {mode.name} add up to {total:g}, which exceeds 1")
    return shares
