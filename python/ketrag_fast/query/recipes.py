"""What a mode asks of the core: channels with their shares and options, and the bounds of a context."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, Final

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.base.config.fields import short_repr
from ketrag_fast.errors import ConfigError
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.system import REST, Recipe

_ROLLOVER: Final = {"texts": "last", "graph": "first"}
"""KET-RAG's words for who gets what is left, in the core's."""
_ENDLESS: Final = 2**62
"""More tokens or passages than there are anywhere; twice as many still fit the core's numbers."""


def check_budget(tokens: int) -> int:
    """A budget that the core can count with; ConfigError where it is negative, or no whole number."""
    number = whole("budget", tokens)
    if number < 0:
        raise ConfigError(
            f"budget: {short_repr(number)} is negative", hint="give a number of tokens from 0 up"
        )
    return min(number, _ENDLESS)


def whole(name: str, value: Any) -> int:
    """A whole number, of Python's or NumPy's; ConfigError for anything else."""
    try:
        return index(value)
    except TypeError:
        raise ConfigError(f"{name}: a {type(value).__name__} is no whole number") from None


def request_of(
    settings: Settings,
    mode: str,
    budgets: Sequence[int],
    *,
    top: int | None = None,
    deadline: float | None = None,
    mask: _core.Mask | None = None,
) -> _core.Request:
    """What the core is asked for; `top` and `deadline` (seconds) are as they stand, the rest is from the
    settings. `mask` are the units that a filter leaves.
    """
    if top is not None and whole("top", top) < 0:
        raise ConfigError("top: it is negative", hint="give a number of passages from 0 up")
    found = registry()
    recipe = found.recipe(mode)
    rollover = "none" if recipe.rollover is None else str(settings.value(recipe.rollover))
    options = [name for channel in recipe.channels for name in found.channels[channel].settings]
    if len(recipe.shares) > 1:  # whoever prints beside another does so in rows of the shared form
        options.append("row_count")
    return _core.Request(
        mode,
        shares_of(recipe, settings),
        list(budgets),
        join=recipe.join,
        rollover=_ROLLOVER.get(rollover, rollover),
        options={name: settings.value(name) for name in dict.fromkeys(options)},
        top=None if top is None else min(top, _ENDLESS),
        skip=settings.fill_policy == "skip_and_continue",
        truncate=settings.oversize_policy == "truncate",
        deadline=deadline,
        mask=mask,
    )


def shares_of(recipe: Recipe, settings: Settings) -> list[tuple[str, float]]:
    """Each channel with its part of the budget: a number, what a setting says, or the rest."""
    if recipe.join == "fuse":
        return [(name, 1 / len(recipe.shares)) for name in recipe.channels]
    found: list[tuple[str, float]] = []
    for share in recipe.shares:
        if share.of == REST:
            part = max(1.0 - sum(taken for _, taken in found), 0.0)
        else:
            part = float(settings.value(share.of) if isinstance(share.of, str) else share.of)
        found.append((share.channel, part))
    total = sum(part for _, part in found)
    if total > 1 + 1e-9:
        named = ", ".join(share.of for share in recipe.shares if isinstance(share.of, str))
        raise ConfigError(f"{named}: the shares of the mode add up to {total:g}, which exceeds 1")
    return found
