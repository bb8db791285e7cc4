"""A query resolved against an opened generation: mode, budgets, filter mask, clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import KetragError, ModeUnavailable
from ketrag_fast.query.modes import UNREAD, ModeRecipe, build_request, find_recipe, reads, split_budget
from ketrag_fast.query.open_generation import FilterMask, Opened
from ketrag_fast.query.query import ENDLESS, Clock, Query, has_marks
from ketrag_fast.records import dataclass
from ketrag_fast.systems.planning import AUTO, modes_of, seconds_to_add
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.shared import TERMS
from ketrag_fast.systems.spec.stage import resolve

if TYPE_CHECKING:
    from ketrag_fast.base.filters import Condition
    from ketrag_fast.query.conversation import Continued
    from ketrag_fast.query.typed_query import TypedQuery


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A batch of queries with equal options, resolved once against an opened generation."""

    opened: Opened
    mode: ModeRecipe
    budgets: Sequence[int]
    top: int | None
    min_score: float
    automatic: bool
    """Whether `auto` chose the mode; then a query also works without the embedding model."""
    neighbourhoods: int
    """Number of top units whose neighbours in the mode's graph are read; 0 for modes without a graph."""
    explain: bool
    clock: Clock
    filtered: FilterMask | None
    """Units that pass the filter, None without a filter."""
    newest: Path | None
    """Folder of the index if newer documents come first among passages of comparable relevance, else None."""
    condition: Condition | None = None
    """The parsed filter."""
    hops: Sequence[str] = ()
    """Known names on the way to the answer, and what the question takes from its history."""
    typed: TypedQuery | None = None
    """The phrases, exclusions, prefixes and fields of the query; None if it has none, or is literal."""
    literal: bool = False
    continued: Continued | None = None
    """The names and words that the question takes from its history; None without history."""

    @property
    def settings(self) -> Settings:
        """The settings of the opened index."""
        return self.opened.settings

    @property
    def mask(self) -> _core.Mask | None:
        """The units that may be printed, in the core's form; None for all."""
        return None if self.filtered is None else self.filtered.core

    def ranked_text(self, question: str) -> str:
        """Return the text that passages are ranked by: the question and its hops.

        One walk that starts from the keywords of both finds more than two separate walks: see
        docs/how-to/assistants.md#hops.
        """
        words = (question,) if self.typed is None else (self.typed.text, *self.typed.expansions)
        return " ".join([*words, *self.hops])

    def plain_text(self, question: str) -> str:
        """Return a question without the marks of the query language, for models and quotes."""
        return question if self.typed is None else self.typed.text or question

    def asked_text(self, question: str) -> str:
        """Return a question as quotes are chosen for it: plain, and with what it takes from its history."""
        continued = self.continued
        return continued.text if continued is not None and continued.taken else self.plain_text(question)

    @property
    def has_terms(self) -> bool:
        """Whether a channel of the core matches words by learned weights instead of BM25."""
        channels = (channel for channel in self.mode.channels if channel.rank is None)
        return any(TERMS.name in channel.needed(self.settings) for channel in channels)

    def request(self, budgets: Sequence[int] | None = None) -> _core.Request:
        """Return the request to the core, with the time that is left.

        If `budgets` is given, `top` is ignored and contexts list every unit separately, as reranking needs.
        """
        return build_request(
            self.settings,
            self.mode,
            self.budgets if budgets is None else budgets,
            top=self.top if budgets is None else None,
            deadline=self.clock.each(),
            mask=self.mask,
            once=budgets is None,
            min_score=self.min_score if budgets is None else 0.0,
        )


def plan_query(
    opened: Opened,
    path: Path,
    query: Query,
    *,
    budgets: Sequence[int] | None = None,
    count: int = 1,
    narrow: Callable[[FilterMask | None, Clock], FilterMask | None] | None = None,
) -> QueryPlan:
    """Return the plan of a query, or of `count` queries with its options.

    Args:
        opened: The generation to query.
        path: Folder of the index, for error messages.
        query: The query; fields that are None come from the settings.
        budgets: Checked budgets, which replace the budget of the query.
        count: Number of queries that share the time limit.
        narrow: Function that selects some of the units that pass the filter.

    Raises:
        ConfigError: The mode is unknown, or its shares of the budget exceed 1.
        ModeUnavailable: The index cannot serve the mode.
        InputError: The filter names an unknown field.
        DeadlineExceeded: The time ran out before the filter was evaluated.
    """
    settings = opened.settings
    mode = choose_mode(opened, query.mode, path)
    around = mode.recipe.around
    neighbourhoods = 0 if around is None else int(settings.value(around.count))
    top = settings.top if query.top is None else query.top
    top = None if top is None else min(top, ENDLESS)
    if neighbourhoods:
        top = neighbourhoods if top is None else min(top, neighbourhoods)
    if budgets is None:
        budgets = (min(settings.budget, ENDLESS) if query.budget is None else query.budget,)
    clock = Clock(settings.deadline if query.deadline is None else query.deadline, count)
    condition = opened.default_condition if query.condition is None else query.condition
    split_budget(mode, settings)  # invalid shares are rejected before a model is called
    filtered = opened.filtered(condition, clock.left)
    if query.only is not None:
        from ketrag_fast.query.narrowing import in_scope

        filtered = in_scope(opened, filtered, query.only)
    if narrow is not None:
        filtered = narrow(filtered, clock)
    typed = None
    if not query.literal and has_marks(query.text):
        from ketrag_fast.query.typed_query import resolve_marks

        typed, filtered = resolve_marks(opened, path, query.text, filtered, clock)
    return QueryPlan(
        opened,
        mode,
        budgets,
        top,
        settings.min_score if query.min_score is None else query.min_score,
        (settings.mode if query.mode is None else query.mode) == AUTO,
        neighbourhoods,
        query.explain,
        clock,
        filtered,
        path if (settings.newest if query.newest is None else query.newest) else None,
        condition,
        query.hops if query.continued is None else (*query.hops, *query.continued.taken),
        typed,
        query.literal,
        query.continued,
    )


def choose_mode(opened: Opened, name: str | None, path: Path) -> ModeRecipe:
    """Return the recipe of the named mode, or of the mode in the settings. `auto` is the best available mode.

    Raises:
        ConfigError: The mode is unknown.
        ModeUnavailable: The index at `path` lacks a part that the mode needs.
    """
    wanted = opened.settings.mode if name is None else name
    if wanted == AUTO:
        return find_recipe(_best_mode(opened))
    mode = find_recipe(wanted)
    lack = opened.missing[wanted]
    if lack is not None:
        message, hint = _explain_lack(opened, mode, lack, path)
        raise ModeUnavailable(message, hint=hint)
    return mode


def _best_mode(opened: Opened) -> str:
    """Return the mode that `auto` selects for this index."""
    recipes = registry().recipes
    ranked = sorted(
        (recipe.automatic, name) for name, recipe in recipes.items() if recipe.automatic is not None
    )
    for name in (*(name for _, name in ranked), *opened.missing):
        if opened.missing[name] is None:
            return name
    raise ModeUnavailable("this index has no mode to query", hint="build it again: `ketrag index --rebuild`")


def _explain_lack(opened: Opened, mode: ModeRecipe, lack: str, path: Path) -> tuple[str, str]:
    """Return the message and the hint for a mode that cannot be used because of `lack`."""
    message = f"mode {mode.name} needs {lack}"
    if lack == UNREAD:
        return message, "index these documents alone (`ketrag index SOURCE... --llm SPEC`) to have them read"
    checks = (channel.lacks for channel in mode.channels)
    if any(check is not None and resolve(check)(opened.settings) == lack for check in checks):
        return message, "only this setting is missing: the index has everything else that the mode needs"
    return f"{message}, which this index does not have", _describe_adding(opened, mode.name, path)


def _describe_adding(opened: Opened, mode: str, path: Path) -> str:
    """Return the command that adds a mode to an index, and an estimate of its duration."""
    systems, settings, manifest = registry(), opened.settings, opened.generation.manifest
    if reads(mode, settings) and "llm" not in manifest.models:
        more = "" if systems.recipes[mode].usual else f" --modes {modes_of(manifest)},{mode}"
        return (
            f"`ketrag index -i {path} --llm SPEC{more}` extracts entities and relations from the core chunks "
            "(heuristic needs no model); `ketrag estimate` prints the cost"
        )
    modes = [name.strip() for name in modes_of(manifest).split(",")]
    command = f"`ketrag index -i {path} --modes {','.join(dict.fromkeys([*modes, mode]))}`"
    try:
        seconds = seconds_to_add(systems, mode, settings, manifest.stages)
    except KetragError:
        seconds = None
    if seconds is None:
        return f"{command} adds it and repeats nothing else"
    return f"{command} adds it in about {_duration(seconds)} and repeats nothing else"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "a second"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
