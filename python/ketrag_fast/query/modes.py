"""Modes: their recipes of channels, which modes a generation can serve, and the request to the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ConfigError, KetragError
from ketrag_fast.records import dataclass
from ketrag_fast.storage.generation import Generation
from ketrag_fast.systems.planning import needs_reader
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.stage import resolve
from ketrag_fast.systems.spec.system import REST, Channel, Recipe

UNREAD: Final = "chunks read by a language model that count among the documents that are allowed alone"
_ROLLOVER: Final = {"texts": "last", "graph": "first"}
"""Rollover rules by name, as the core names them."""


@dataclass(frozen=True, slots=True)
class ModeRecipe:
    """A mode: its name, its recipe, and the channels of the recipe in order."""

    name: str
    recipe: Recipe
    channels: tuple[Channel, ...]

    def channel(self, name: str) -> Channel:
        """Return the channel with a name."""
        return next(channel for channel in self.channels if channel.name == name)


REFERENCE: Final = ":reference"
"""End of the name of a preset that follows the reference implementation of a published system.

These print no passage that does not fit into the budget; all others cut the first one.
"""


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
        truncate=not settings.system.endswith(REFERENCE),
        deadline=deadline,
        mask=mask,
        once=once and prints_once(settings),
        min_score=min_score,
    )


def prints_once(settings: Settings) -> bool:
    """Return whether to print copies once and to merge adjacent units. False for the published systems."""
    return settings.cut != "windows" and not settings.system.endswith(REFERENCE)


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


def reads(mode: str, settings: Settings) -> bool:
    """Return whether a mode needs the entities and relations that an LLM extracts from the chunks."""
    try:
        return needs_reader(registry(), mode, settings)
    except KetragError:  # The needs of the system contradict each other; a build reports why.
        return False


def missing_of(
    generation: Generation, settings: Settings, core: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Return for each mode the first missing part, or None if the mode can be used.

    `core` has the missing parts of the channels in the core.
    """
    found, stages = registry(), generation.manifest.stages
    slots = {
        stage.slot: stage.name
        for stage in found.stages
        if stage.chosen_by is None or settings.value(stage.chosen_by[0]) == stage.chosen_by[1]
    }

    def missing(channel: Channel) -> str | None:
        try:
            needs = channel.needed(settings)
        except Exception as error:  # noqa: BLE001 - a function of another package: the other modes stand
            return f"channel {channel.name}, which fails ({type(error).__name__}: {error})"
        absent = next((name for need in needs if (name := slots.get(need, need)) not in stages), None)
        lack = core.get(channel.name) if channel.rank is None else None
        if lack is None and absent is not None:
            lack = f"the stage {absent}"
        if lack is None and channel.lacks is not None:
            lack = resolve(channel.lacks)(settings)
        return lack

    lacks: dict[str, str | None] = {}
    for mode, recipe in found.recipes.items():
        parts = (missing(found.channels[name]) for name in recipe.channels)
        lacks[mode] = next((lack for lack in parts if lack is not None), None)
    return lacks
