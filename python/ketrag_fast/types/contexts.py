"""Contexts: the passages retrieved for a query, and their sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

from ketrag_fast.records import dataclass, field
from ketrag_fast.types.documents import Record, Section, Span

if TYPE_CHECKING:
    from ketrag_fast.types.locations import Location

NOTHING_FITS: Final = "no passage is relevant enough: the documents may not answer this query"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cited:
    """A printed graph node's sources: its kind, first unit and chunk, and the texts from which it was made.

    Examples:
        >>> span = index.inspect.around(0)[0][1]
        >>> Cited("entity", unit=0, chunk=0, sources=(span,)).sources[0].document
        'fram'
    """

    kind: str
    unit: int
    chunk: int
    sources: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Copy(Record):
    """A unit that is left out of the context because its text equals, or nearly equals, that of a passage.

    Examples:
        >>> Copy(7, "mirror/fram.md", "Fram", 0, 120).to_json()["document"]
        'mirror/fram.md'
    """

    unit: int
    document: str
    title: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Passage:
    """One ranked unit: `document.text[start:end] == text`, offsets in code points.

    Adjacent ranked units of a document form one passage, at the rank of the best of these units,
    `unit`; `units` then lists all of them.

    `location` is its position in the source: `{"page": 12, "heading": ["3 Results", "3.2 Risks"]}`.
    `score` is only comparable within this query and mode. `relevance` is the estimated probability that the
    passage is one that the query asks for, from 0 to 1, on one scale for every mode; it never rises with
    the rank.

    A graph node that a system printed (`kind` is then neither chunk nor subchunk) is a passage as well:
    `printed` is its text in the context, `text` the first text from which it was made, and `sources` are
    all of these.

    Examples:
        >>> passage = index.retrieve("Who sailed the Fram?", mode="bm25").passages[0]
        >>> passage.rank, passage.document, passage.metadata["year"]
        (1, 'fram', 1893)
    """

    rank: int
    kind: str
    unit: int
    chunk: int
    document: str
    title: str
    start: int
    end: int
    score: float
    tokens: int
    channel: str
    text: str
    page: int | None = None
    why: Sequence[Any] = ()
    printed: str | None = None
    sources: tuple[Span, ...] = ()
    location: Location = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The metadata of the passage's document."""
    context: str = ""
    """Lines printed before the text: the header of a table, the fence and the definitions around code, or the
    lead-in of a list that it continues."""
    units: tuple[int, ...] = ()
    """All units of a passage that has several, in document order."""
    relevance: float = 0.0
    also_in: tuple[Copy, ...] = ()
    """Units with the same or nearly the same text; at most 100, best first."""
    index: str | None = None
    """Name of the passage's index, if several indexes were searched."""

    @property
    def said(self) -> str:
        """The passage's text as printed in the context."""
        return self.text if self.printed is None else self.printed

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        node = {} if self.printed is None else {"printed": self.printed, "sources": _spans(self.sources)}
        return {
            **({} if self.index is None else {"index": self.index}),
            "rank": self.rank,
            "unit": {"kind": self.kind, "id": self.unit},
            "chunk": self.chunk,
            "document": self.document,
            "title": self.title,
            "page": self.page,
            "location": dict(self.location),
            "metadata": dict(self.metadata),
            "start": self.start,
            "end": self.end,
            "score": self.score,
            "relevance": self.relevance,
            "tokens": self.tokens,
            "channel": self.channel,
            "text": self.text,
            **({"context": self.context} if self.context else {}),
            **({"units": list(self.units)} if self.units else {}),
            **({"also_in": [copy.to_json() for copy in self.also_in]} if self.also_in else {}),
            "why": list(self.why),
            **node,
        }


def _spans(spans: Sequence[Span]) -> list[dict[str, Any]]:
    return [span.to_json() for span in spans]


class Items(Sequence[T], Generic[T]):
    """Base of sequences whose items are those of another one."""

    __slots__ = ()

    def _all(self) -> Sequence[T]:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[T]:
        return iter(self._all())


class Lazy(Items[T]):
    """A sequence that is computed on first access, because many callers only need a context's text.

    Examples:
        >>> items = Lazy(lambda: [1, 2])
        >>> items[0], len(items)
        (1, 2)
    """

    __slots__ = ("_items", "_make")

    def __init__(self, make: Callable[[], Sequence[T]]) -> None:
        self._make: Callable[[], Sequence[T]] | None = make
        self._items: Sequence[T] = ()

    def _all(self) -> Sequence[T]:
        make = self._make
        if make is not None:  # two threads may both compute it; the results are equal
            self._items = tuple(make())
            self._make = None
        return self._items

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._all())

    def __reduce__(self) -> Any:
        return tuple, (tuple(self._all()),)


@dataclass(frozen=True, slots=True)
class Context:
    """The result of `retrieve`: the exact text to give to a model, and the source of each passage.

    Attributes:
        tokens: the sum of the rows' token counts, never above `budget`.
        reason: why there are no passages (`empty_index`, `no_match`, `nothing_fits_filter`,
            `below_min_score` or `budget_too_small`), else None.
        nothing_fits: whether no passage is relevant enough to answer the query.
        mode: the retrieval mode that ran.
        warnings: messages about parts of the index that mode `auto` could not use.
        fitting: the number of passages that passed the filter.
        notes: sentences for people about how the query was read: words that were replaced, passages that were
            left out, marks that were read as text.
        replaced: words of the query that no document has, with the similar words that were searched for.
        unknown: if there are no passages, all words of the query that no document has.
        missing: of a query over several indexes, the names of those that did not answer in time.

    Examples:
        >>> context = index.retrieve("Who sailed the Fram?", mode="bm25", budget=100)
        >>> context.mode, context.reason, context.tokens <= context.budget
        ('bm25', None, True)
        >>> index.retrieve("zzz", mode="bm25").reason
        'no_match'
    """

    question: str
    mode: str
    budget: int
    tokens: int
    text: str
    passages: Sequence[Passage] = ()
    sections: Sequence[Section] = ()
    reason: str | None = None
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    generation: int = 0
    query_id: str | None = None
    warnings: tuple[str, ...] = ()
    fitting: int | None = None
    nothing_fits: bool = False
    notes: tuple[str, ...] = ()
    replaced: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        return {
            "schema": "ketrag/context/1",
            "query_id": self.query_id,
            "question": self.question,
            "mode": self.mode,
            "budget": self.budget,
            "tokens": self.tokens,
            "reason": self.reason,
            "nothing_fits": self.nothing_fits,
            "context": self.text,
            "passages": [passage.to_json() for passage in self.passages],
            "sections": [section.to_json() for section in self.sections],
            "timings_ms": dict(self.timings_ms),
            "generation": self.generation,
            "warnings": list(self.warnings),
            "fitting": self.fitting,
            **reading_json(self.notes, self.replaced, self.unknown),
            **({"missing": list(self.missing)} if self.missing else {}),
        }


def merged_reading(results: Sequence[Any]) -> dict[str, Any]:
    """Return `notes`, `replaced` and `unknown` of the results of one query over several indexes.

    A word is replaced or unknown if it is in all of them. As for one index, there are no unknown words if
    there are passages.
    """
    known = [{*one.replaced, *one.unknown} for one in results]
    everywhere = set.intersection(*known) if known else set()
    notes = dict.fromkeys(note for one in results for note in one.notes)
    for word in {word for one in results for word in one.replaced} - everywhere:
        for note in [note for note in notes if note.startswith(f'no "{word}": ')]:
            notes.pop(note)
    for note in [note for note in notes if note.startswith("no document has ")]:
        if not all(note in one.notes or not one.text for one in results):
            notes.pop(note)
    replaced = {w: s for one in results for w, s in one.replaced.items() if w in everywhere}
    shown = () if any(one.text or one.passages for one in results) else results
    unknown = dict.fromkeys(w for one in shown for w in one.unknown if w in everywhere)
    return {"notes": tuple(notes), "replaced": replaced, "unknown": tuple(unknown)}


def reading_json(notes: Sequence[str], replaced: Mapping[str, str], unknown: Sequence[str]) -> dict[str, Any]:
    """Return the JSON fields about how a query was read, which plain queries do not have."""
    return {
        **({"notes": list(notes)} if notes else {}),
        **({"replaced": dict(replaced)} if replaced else {}),
        **({"unknown": list(unknown)} if unknown else {}),
    }
