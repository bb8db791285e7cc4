"""Parts of a query over several indexes: one index with its plan, in this process or behind a service.

A part says which mode the index has, ranks together with the others (`query/shards.py`), and prints units
that were ranked over all indexes, or the passages that its own mode ranks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from ketrag_fast.index import querying
from ketrag_fast.query.plan import QueryPlan
from ketrag_fast.query.query import Query, core_text
from ketrag_fast.query.ranking import Prepared, print_rankings
from ketrag_fast.query.reading import Reading, add_reading, missing_words, read_question
from ketrag_fast.query.retrieval import build_contexts, run_plan
from ketrag_fast.query.shards import LocalShard, Pending, Shard, WrongReply
from ketrag_fast.records import dataclass
from ketrag_fast.types import Context, Hits

if TYPE_CHECKING:
    from ketrag_fast import _core
    from ketrag_fast.index.index import Index
    from ketrag_fast.query.search import Globs


@dataclass(frozen=True, slots=True)
class Search:
    """Options of `search` that a query does not have: number of hits, patterns of paths, pattern of lines."""

    count: int
    glob: Globs = None
    grep: str | None = None


@dataclass(frozen=True)
class Printed:
    """The passages of one index, and their printed texts without numbers."""

    context: Context
    blocks: list[str]
    hits: Callable[[Context], Hits] | None = None
    """Returns the hits of a context with some of these passages; None unless it is a search."""

    def as_hits(self) -> Hits:
        """Return all passages as the hits of a search. Raises WrongReply if a service sent none."""
        if self.hits is None:
            raise WrongReply("the service replied to a search without hits")
        return self.hits(self.context)


class Part(Protocol):
    """One index with its plan of a query."""

    @property
    def name(self) -> str:
        """Name of the index."""

    @property
    def mode(self) -> str:
        """Name of the mode."""

    @property
    def channels(self) -> tuple[str, ...]:
        """Channels of the mode."""

    @property
    def modes(self) -> set[str]:
        """Modes that the index has."""

    @property
    def is_plain(self) -> bool:
        """True if the mode alone, which ranks by keywords, decides the order of the passages."""

    @property
    def top(self) -> int | None:
        """Maximum number of passages."""

    @property
    def budget(self) -> int:
        """Maximum number of tokens."""

    @property
    def min_score(self) -> float:
        """Minimum relevance of a passage."""

    @property
    def missing_words(self) -> Collection[str]:
        """All words of the question that the index does not contain."""

    def read(self) -> Reading | Pending[Reading]:
        """Return how this index alone reads the question."""

    @property
    def plain_text(self) -> str:
        """The text to rank by, without similar words."""

    @property
    def shard(self) -> Shard:
        """The index in rankings over several."""

    def request(self) -> _core.Request:
        """Return the request of the mode to the core."""

    def print_units(
        self, reading: Reading, units: Sequence[int], scores: Sequence[float]
    ) -> Printed | Pending[Printed]:
        """Return the passages of units that were ranked over all indexes."""

    def print_alone(self) -> Printed | Pending[Printed]:
        """Return the passages that the index ranks alone."""


@dataclass(frozen=True)
class LocalPart:
    """An open index of this process with its plan."""

    name: str
    question: str
    plan: QueryPlan
    hits: Callable[[Context], Hits] | None = None

    @property
    def mode(self) -> str:
        """Name of the mode."""
        return self.plan.mode.name

    @property
    def channels(self) -> tuple[str, ...]:
        """Channels of the mode."""
        return tuple(channel.name for channel in self.plan.mode.channels)

    @property
    def modes(self) -> set[str]:
        """Modes that the index has."""
        return {name for name, lack in self.plan.opened.missing.items() if lack is None}

    @property
    def is_plain(self) -> bool:
        """True if the mode alone, which ranks by keywords, decides the order of the passages."""
        plan = self.plan
        typed = plan.typed
        reorders = plan.opened.reranker is not None or plan.newest is not None
        reorders = reorders or (typed is not None and typed.is_listed)
        return not (reorders or plan.has_terms or plan.explain)

    @property
    def top(self) -> int | None:
        """Maximum number of passages."""
        return self.plan.top

    @property
    def budget(self) -> int:
        """Maximum number of tokens."""
        return self.plan.budgets[0]

    @property
    def min_score(self) -> float:
        """Minimum relevance of a passage."""
        return self.plan.min_score

    @property
    def missing_words(self) -> Collection[str]:
        """All words of the question that the index does not contain."""
        return missing_words(self.plan, self.question)

    def read(self) -> Reading:
        """Return how this index alone reads the question."""
        return read_question(self.plan, self.question)

    @property
    def plain_text(self) -> str:
        """The text to rank by, without similar words."""
        return core_text(self.plan.ranked_text(self.question))

    @cached_property
    def shard(self) -> LocalShard:
        """The index in rankings over several."""
        return LocalShard(self.name, self.plan)

    def request(self) -> _core.Request:
        """Return the request of the mode to the core."""
        return self.plan.request()

    def print_units(self, reading: Reading, units: Sequence[int], scores: Sequence[float]) -> Printed:
        """Return the passages of units that were ranked over all indexes."""
        import numpy as np

        plan, prepared = self.plan, Prepared([reading.text])
        ranking = np.array(units, np.uint32), np.array(scores, np.float64)
        reply = print_rankings(plan, prepared, [ranking], None, min_score=0.0)[0]
        context = build_contexts(plan, self.question, reply, None, prepared)[0]
        return Printed(add_reading(plan, reading, context), blocks_of(context), self.hits)

    def print_alone(self) -> Printed:
        """Return the passages that the index ranks alone."""
        context = run_plan(self.plan, [self.question], quoted=self.hits is None)[0][0]
        return Printed(context, blocks_of(context) if is_list(context) else [], self.hits)


def local_part(index: Index, name: str, query: Query, search: Search | None) -> LocalPart:
    """Return an open index with its plan of a query, or of a search."""
    if search is None:
        return LocalPart(name, query.text, querying.plan(index._state, query))
    plan, hits = querying.search_plan(index._state, query, search.count, search.glob, search.grep)
    return LocalPart(name, query.text, plan, hits)


def is_list(context: Context) -> bool:
    """Return whether a context is one list of passages, so that it can be merged with others."""
    return len(context.sections) <= 1 and (not context.passages or context.text.startswith("[1]"))


def blocks_of(context: Context) -> list[str]:
    """Return the title and text of each passage in a context, without its number.

    No text has a line that could be the mark of a passage (`unmarked` in rust/core/src/search/render.rs).
    """
    starts, position = [0] * min(1, len(context.passages)), 0
    for passage in context.passages[1:]:
        position = context.text.index(f"\n[{passage.rank}]\n", position) + 1
        starts.append(position)
    ends = [*starts, len(context.text)][1:]
    return [
        context.text[start + len(f"[{passage.rank}]") : end].rstrip("\n")
        for passage, start, end in zip(context.passages, starts, ends, strict=True)
    ]
