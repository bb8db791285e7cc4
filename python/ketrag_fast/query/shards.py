"""One ranking over several indexes, called shards: the ranking that one index of all documents would have.

Each shard gets three calls, which run in parallel: for the numbers of units that have the words of the
query, so that rarity is counted over all documents; for its best candidates; and for the units to which the
best candidates of all shards lead. The caller ranks these units together (rust/core/src/shards). A shard
that does not answer in time is left out and named in the result.

Small open indexes of this process are joined instead (`query/joined.py`): all their units become one
collection, which is kept in memory for the next queries, and which ranks exactly as one index does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from ketrag_fast import _core
from ketrag_fast.base.memory import map_threads
from ketrag_fast.errors import BackendError, DeadlineExceeded, KetragError
from ketrag_fast.query.joined import JoinedIndexes
from ketrag_fast.query.query import Clock
from ketrag_fast.records import dataclass, field

if TYPE_CHECKING:
    from ketrag_fast.query.plan import QueryPlan

    Totals = tuple[int, int, int, dict[int, int]]
    Terms = tuple[list[str], list[str], list[str]]
    Counts = tuple[list[int], list[int], list[int]]
    Frequencies = tuple[list[tuple[str, int]], list[tuple[str, int]], list[tuple[str, int]]]

R = TypeVar("R")
T = TypeVar("T")
N = TypeVar("N", bound="Named")

MOST_JOINED: Final = 1_200_000
"""Maximum number of keywords, counting repetitions, of indexes that are joined. To join 554,000 keywords
(musique-dev, 10,214 passages) takes 0.16 s of one core, the first time 0.2 s, and 1,055,000 (hotpotqa-dev,
17,850 passages) 0.34 s, the first time 0.5 s, and about 110 MB. A query of `walk` then takes 3 ms instead of
20, so a service wins this time back in 25 queries (in 150 of `bm25`). A command asks once and only waits
longer, which is why the maximum is not higher. It was 600,000 when a join took half as long again."""
WALK: Final = "walk"
"""Channel of the core that follows links."""
_JOINED: Final = JoinedIndexes()
"""The collections of this process."""

_CANDIDATES: Final = 240
_FEWEST: Final = 60
"""Candidates of all shards together, and the minimum of one shard. The walk in one index has 120, which
hashing divides unevenly. With four shards of 2wiki-dev and musique-dev (150 questions), 60 per shard give
the recall@5 of one index."""
LIMITS: Final = (60, 30, 50)
"""Units that a shard returns by the third call: reached by the walk, reached in one step, and found by the
uncovered part of the query. The last two are the limits of the walk in one index (`Plan` in
rust/core/src/rank/walk/plan.rs). Half of each gives recall@5 of 95.2, 69.9 and 94.5 instead of 94.8, 69.4 and
94.0 on 100 questions of 2wiki-dev, musique-dev and hotpotqa-dev, in 7 to 20 % less time; these are documents
divided at random, and indexes of different topics may need more."""
CALL_SHARE: Final = 0.5
"""Share of the remaining time for one call, so that a slow shard leaves time for the other calls. It was not
compared with other values."""


class WrongReply(BackendError):
    """A service sent what a shard cannot have: another format, or values that do not fit together."""


class ShardChanged(BackendError):
    """A shard has another generation than at the beginning of the query."""


@dataclass(frozen=True, slots=True)
class Words:
    """The keywords of a query, weighted over all shards, which have `length` keywords in `units` units."""

    weighting: _core.Weighting
    length: int
    units: int
    are_enough: bool = False
    """Whether the ranking needs only the keywords of the query. The others are then not sent."""


@dataclass(frozen=True, slots=True)
class Pending(Generic[R]):
    """The result of a call to a service."""

    result: Callable[[], R]
    """Waits for the result and returns it."""
    is_sent: bool
    """Whether the request has been sent already. If not, `result` sends it on a new connection, which takes
    longer."""


def now(result: R | Pending[R]) -> R:
    """Return a result, waiting for it if it is that of a call to a service."""
    return result.result() if isinstance(result, Pending) else result


class Named(Protocol):
    """An index with a name, which is that of its shard."""

    @property
    def name(self) -> str:
        """Name of the index."""


class Shard(Named, Protocol):
    """One index that is ranked together with others. Each call may take `seconds`; None: no limit.

    Calls to a service return as soon as the request is sent.
    """

    @property
    def is_remote(self) -> bool:
        """Whether the shard is behind a service. Its calls return a `Pending` before the reply arrives."""

    def totals(self, seconds: float | None) -> Totals:
        """Return (units, documents, keywords of all units, units of each language)."""

    def counts(self, terms: Terms, seconds: float | None) -> Counts | Pending[Counts]:
        """Return the number of units that have each term."""

    def candidates(
        self, words: Words, count: int, seconds: float | None
    ) -> _core.Bundle | Pending[_core.Bundle]:
        """Return the best units by the weighted keywords."""

    def look_up(
        self, words: Words, leads: _core._Leads, seconds: float | None
    ) -> _core.Bundle | Pending[_core.Bundle]:
        """Return the units to which the best candidates of all shards lead."""

    def preferred(self) -> Collection[int]:
        """Return the units, at least of those returned so far, with a phrase that the question quotes."""


@dataclass(frozen=True)
class LocalShard:
    """An open index of this process, with the plan of the query."""

    name: str
    plan: QueryPlan

    @property
    def is_remote(self) -> bool:
        """False: its calls return their results."""
        return False

    @cached_property
    def _shard(self) -> _core.Shard:
        return _core.Shard(self.plan.opened.searcher)

    def totals(self, seconds: float | None) -> Totals:
        """Return the totals."""
        return self.plan.opened.totals

    def counts(self, terms: Terms, seconds: float | None) -> Counts:
        """Return the number of units that have each term."""
        return self._shard.term_counts(terms)

    def candidates(self, words: Words, count: int, seconds: float | None) -> _core.Bundle:
        """Return the best units by the weighted keywords."""
        return self._shard.candidates(
            words.weighting, count, narrow=words.are_enough, mask=self.plan.mask, seconds=seconds
        )

    def look_up(self, words: Words, leads: _core._Leads, seconds: float | None) -> _core.Bundle:
        """Return the units to which the best candidates lead."""
        return self._shard.look_up(words.weighting, leads, LIMITS, mask=self.plan.mask, seconds=seconds)

    def preferred(self) -> Collection[int]:
        """Return the units with a phrase that the question quotes."""
        typed = self.plan.typed
        if typed is None or typed.preferred is None:
            return ()
        return [unit for unit, is_preferred in enumerate(typed.preferred) if is_preferred]


@dataclass(frozen=True)
class Ranked:
    """Units of several shards, best first."""

    names: Sequence[str]
    """The shards."""
    numbers: Sequence[int]
    """The shard of each place of the ranking, by its number."""
    places: Sequence[int]
    """The unit of each place."""
    all_scores: Sequence[float]
    all_relevance: Sequence[float]
    nothing_fits: bool
    late: Mapping[str, KetragError]
    """Shards that are left out, with the reason."""

    @cached_property
    def units(self) -> Mapping[str, Sequence[int]]:
        """The units of each shard, best first."""
        return dict(zip(self.names, self._of_shards[0], strict=True))

    @cached_property
    def scores(self) -> Mapping[str, Sequence[float]]:
        """The scores of `units`."""
        return dict(zip(self.names, self._of_shards[1], strict=True))

    @cached_property
    def ranks(self) -> Mapping[tuple[str, int], int]:
        """The rank of each unit among those of all shards."""
        return {key: rank for rank, key in enumerate(self._keys())}

    @cached_property
    def relevance(self) -> Mapping[tuple[str, int], float]:
        """The relevance of each unit."""
        return dict(zip(self._keys(), self.all_relevance, strict=True))

    def _keys(self) -> list[tuple[str, int]]:
        return [(self.names[number], unit) for number, unit in zip(self.numbers, self.places, strict=True)]

    @cached_property
    def _of_shards(self) -> tuple[list[list[int]], list[list[float]]]:
        """The units and the scores of each shard, by its number."""
        units: list[list[int]] = [[] for _ in self.names]
        scores: list[list[float]] = [[] for _ in self.names]
        for number, unit, score in zip(self.numbers, self.places, self.all_scores, strict=True):
            units[number].append(unit)
            scores[number].append(score)
        return units, scores


@dataclass
class Together:
    """Shards that answer one query. A shard that fails or is late is left out of later calls."""

    shards: Sequence[Shard]
    clock: Clock
    threads: int
    late: dict[str, KetragError] = field(default_factory=dict)
    may_repeat: bool = False
    """If True, a changed shard makes the query run once more; otherwise the shard is left out."""

    def seconds(self) -> float | None:
        """Return the time for one call, or None without a deadline."""
        left = self.clock.left()
        return None if left is None else CALL_SHARE * left

    def call(self, work: Callable[[Shard, float | None], R | Pending[R]]) -> dict[int, R]:
        """Return the results of a call by the number of the shard. Raises an error if all shards fail."""
        seconds = self.seconds()
        found = self.of_each(self.shards, lambda shard: shard.is_remote, lambda shard: work(shard, seconds))
        return {number: found[one.name] for number, one in enumerate(self.shards) if one.name in found}

    def of_each(
        self,
        items: Sequence[N],
        is_remote: Callable[[N], bool],
        work: Callable[[N], R | Pending[R]],
    ) -> dict[str, R]:
        """Return the result of `work` by the name of the shard. Raises an error if all shards fail."""
        left = [one for one in items if one.name not in self.late]
        results = run_all(left, work, is_remote, self.threads, may_repeat=self.may_repeat)
        found: dict[str, R] = {}
        for one, result in zip(left, results, strict=True):
            if isinstance(result, KetragError):
                self.late[one.name] = result
            else:
                found[one.name] = result
        if not found:
            raise next(iter(self.late.values()))
        return found


def run_all(
    items: Sequence[T],
    work: Callable[[T], R | Pending[R]],
    is_remote: Callable[[T], bool],
    threads: int,
    *,
    may_repeat: bool,
) -> list[R | KetragError]:
    """Return the result of `work` for each item, or the error that leaves it out.

    Requests to services are sent first. While the services compute, the other items run in `threads` threads,
    and each request that has no open connection yet in another one.
    """

    def attempt(run: Callable[[], R | Pending[R]]) -> R | Pending[R] | KetragError:
        try:
            return run()
        except (DeadlineExceeded, BackendError) as error:
            if is_final(error, may_repeat=may_repeat):
                raise
            return error

    def finish(item: T) -> R | KetragError:
        result = attempt(lambda: work(item))
        return finished(result) if isinstance(result, Pending) else result

    def finished(pending: Pending[R]) -> R | KetragError:
        result = attempt(pending.result)
        assert not isinstance(result, Pending)  # noqa: S101 - a result is final
        return result

    begun = {at: attempt(partial(work, item)) for at, item in enumerate(items) if is_remote(item)}
    unsent = {at: one for at, one in begun.items() if isinstance(one, Pending) and not one.is_sent}
    here = [at for at in range(len(items)) if at not in begun or at in unsent]

    def run(at: int) -> R | KetragError:
        return finished(unsent[at]) if at in unsent else finish(items[at])

    count = min(len(here), threads + len(unsent))
    if count <= 1 and not begun:
        return [run(at) for at in here]
    results = dict(zip(here, map_threads(run, here, count), strict=True))
    for at, one in begun.items():
        if at not in results:
            results[at] = finished(one) if isinstance(one, Pending) else one
    return [results[at] for at in range(len(items))]


def is_final(error: KetragError, *, may_repeat: bool) -> bool:
    """Return whether an error of one shard ends the query, instead of leaving the shard out."""
    return isinstance(error, WrongReply) or (may_repeat and isinstance(error, ShardChanged))


def rank_shards(
    together: Together,
    request: _core.Request,
    question: str,
    count: int,
    *,
    walks: bool,
    depth: int = 0,
) -> Ranked | None:
    """Return the best `count` units of all shards for a mode that ranks by keywords.

    Args:
        together: The shards.
        request: The request of the mode, as for one index.
        question: The text to rank by.
        count: Number of units.
        walks: Whether the mode follows links, so that shards are asked where the candidates lead.
        depth: Number of the best units among which the first preferred one moves to the front.

    Returns:
        The ranking; None for a query of function words alone, which no index has as keywords.
    """
    totals = together.call(lambda shard, seconds: shard.totals(seconds))
    whole = _core.sum_totals(list(totals.values()))
    if _core.has_only_function_words(question, whole):
        return None
    joined = _joined(together, whole[2])
    if joined is not None:
        masks = [(number, mask) for number, mask in enumerate(_masks(together.shards)) if mask is not None]
        flagged = _flagged(together)
        ranking = joined.rank(request, question, count, preferred=flagged, depth=depth, masks=masks)
        return _named(together, ranking)
    terms = question_terms(question, whole, walks=walks)
    counted = together.call(lambda shard, seconds: shard.counts(terms, seconds))
    known = _summed(terms, list(counted.values()))
    are_enough = not walks and not _core.reads_forms(question, whole)
    words = Words(_core.Weighting.of(question, whole, known), whole[2], whole[0], are_enough)
    each = max(_FEWEST, _CANDIDATES // len(totals)) if walks else count
    found = together.call(lambda shard, seconds: shard.candidates(words, each, seconds))
    bundles = list(found.items())
    if walks:
        leads = _core.Union(bundles, whole, known, is_final=False).leads(request, question)
        more = together.call(lambda shard, seconds: shard.look_up(words, leads, seconds))
        bundles = sorted([*bundles, *more.items()], key=lambda one: one[0])
    union = _core.Union(bundles, whole, known, is_final=walks)
    return _named(together, union.rank(request, question, count, preferred=_flagged(together), depth=depth))


def question_terms(question: str, whole: Totals, *, walks: bool) -> Terms:
    """Return the keywords of a query, and the names and subjects by which a mode that follows links ranks."""
    keywords, names, subjects = _core.question_terms(question, whole)
    return (keywords, names, subjects) if walks else (keywords, [], [])


def _joined(together: Together, keywords: int) -> _core.Union | None:
    """Return all units of open indexes as one collection; None for large indexes, for a shard elsewhere, or
    if there is no time to join them."""
    opened = [shard.plan.opened for shard in together.shards if isinstance(shard, LocalShard)]
    is_whole = all(shard.name not in together.late for shard in together.shards)
    if keywords > MOST_JOINED or len(opened) < len(together.shards) or not is_whole:
        return None
    return _JOINED.find(opened, keywords, together.seconds())


def _masks(shards: Sequence[Shard]) -> list[_core.Mask | None]:
    """Return the filter of each open index."""
    return [shard.plan.mask if isinstance(shard, LocalShard) else None for shard in shards]


def _flagged(together: Together) -> list[tuple[int, int]]:
    """Return the preferred units as pairs of the number of a shard and the number of a unit."""
    return [
        (number, unit)
        for number, shard in enumerate(together.shards)
        if shard.name not in together.late
        for unit in shard.preferred()
    ]


def _named(
    together: Together, ranking: tuple[list[int], list[int], list[float], list[float], bool]
) -> Ranked:
    """Return a ranking of the core with the names of the shards."""
    names = [shard.name for shard in together.shards]
    return Ranked(names, *ranking, together.late)


def _summed(terms: Terms, counts: Sequence[tuple[list[int], list[int], list[int]]]) -> Frequencies:
    """Return the terms that some shard has, each with the number of units of all shards."""

    def of_kind(kind: int) -> list[tuple[str, int]]:
        sums = (sum(one[kind][at] for one in counts) for at in range(len(terms[kind])))
        return [(term, total) for term, total in zip(terms[kind], sums, strict=True) if total]

    return of_kind(0), of_kind(1), of_kind(2)
