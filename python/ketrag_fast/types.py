"""The values that cross the public border. All are frozen; none knows how it is stored or made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Generic, TypeVar, overload

from ketrag_fast.locations import Location, Locator

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Document:
    """One text to be indexed. Offsets everywhere are code points into `text`; the title is apart.

    `locators` say where stretches of the text stand in its source (pages, headings, ...).
    """

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    locators: tuple[Locator, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """A document (or a line of one, `file.jsonl:12`) that could not be read, and why."""

    document: str
    code: str
    message: str

    def to_json(self) -> dict[str, Any]:
        """As the command prints it (85-interface)."""
        return {"document": self.document, "code": self.code, "message": self.message}


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a document: `document.text[start:end] == text`, offsets in code points."""

    document: str
    title: str
    start: int
    end: int
    text: str

    def to_json(self) -> dict[str, Any]:
        """As the command prints it (85-interface)."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Listed:
    """A document in a list: its id and title, its first unit and how many it has."""

    document: str
    title: str
    unit: int
    units: int

    def to_json(self) -> dict[str, Any]:
        """As the service sends it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Cited:
    """What a printed node of a graph stands on: its kind, its first unit and chunk, and the texts that it was
    made from, the first of them first.
    """

    kind: str
    unit: int
    chunk: int
    sources: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """One ranked unit: `document.text[start:end] == text`, offsets in code points. `location` is where that
    stands in its source: `{"page": 12, "heading": ["3 Results", "3.2 Risks"]}`.

    A node of a graph that a system printed (`kind` is then none of chunk and subchunk) is a passage as well:
    `printed` is what stands in the context, `text` the first text that it was made from, and `sources` are
    all of these.
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

    @property
    def said(self) -> str:
        """What stands in the context."""
        return self.text if self.printed is None else self.printed

    def to_json(self) -> dict[str, Any]:
        """As the command prints it (85-interface)."""
        node = {} if self.printed is None else {"printed": self.printed, "sources": _spans(self.sources)}
        return {
            "rank": self.rank,
            "unit": {"kind": self.kind, "id": self.unit},
            "chunk": self.chunk,
            "document": self.document,
            "title": self.title,
            "page": self.page,
            "location": dict(self.location),
            "start": self.start,
            "end": self.end,
            "score": self.score,
            "tokens": self.tokens,
            "channel": self.channel,
            "text": self.text,
            "why": list(self.why),
            **node,
        }


def _spans(spans: Sequence[Span]) -> list[dict[str, Any]]:
    return [span.to_json() for span in spans]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a context as a model is given it, with the sum of its rows' tokens. `passages` says whether
    its rows are passages of the context; else it is a table beside them.
    """

    name: str
    tokens: int
    text: str
    passages: bool = True

    def to_json(self) -> dict[str, Any]:
        """As the command prints it (85-interface)."""
        return {"name": self.name, "tokens": self.tokens, "text": self.text}


@dataclass(frozen=True, slots=True)
class Relation:
    """What joins two entities: how strongly, and the sentences that say so. Direction says nothing."""

    source: str
    target: str
    description: str
    weight: float
    rank: int
    sources: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of the skeleton. `rank` is the number of its relations, the strongest of which come first;
    `chunks` are those that tell of it, `sources` the sentences that name it.
    """

    name: str
    type: str
    description: str
    rank: int
    chunks: tuple[int, ...]
    relations: tuple[Relation, ...]
    sources: tuple[Span, ...]

    def to_json(self) -> dict[str, Any]:
        """As `ketrag graph --json` prints it."""
        return {"schema": "ketrag/entity/1", **asdict(self)}

    def lines(self) -> Iterator[str]:
        """As `ketrag graph` prints it for people: the strongest relations, and some sentences of each."""
        kind = f" ({self.type.lower()})" if self.type else ""
        yield f"{self.name}{kind}: {len(self.relations):,} relations, {len(self.chunks):,} chunks"
        yield from (f"  {line}" for line in self.description.splitlines())
        for relation in self.relations[:_SHOWN]:
            yield f"- {relation.source} -- {relation.target}  (strength {relation.weight:g})"
            yield from (f"    {line}" for line in relation.description.splitlines())
            yield from _quoted(relation.sources, "    ", _SENTENCES)
        if len(self.relations) > _SHOWN:
            yield f"  ... and {len(self.relations) - _SHOWN:,} more (--json lists them all)"
        yield f"named in {len(self.sources):,} sentences:"
        yield from _quoted(self.sources, "  ", _SHOWN)


_SHOWN, _SENTENCES = 20, 3


def _quoted(spans: Sequence[Span], indent: str, shown: int) -> Iterator[str]:
    for span in spans[:shown]:
        yield f"{indent}{span.document}[{span.start}:{span.end}] {' '.join(span.text.split())}"
    if len(spans) > shown:
        yield f"{indent}... and {len(spans) - shown:,} more"


class Lazy(Sequence[T], Generic[T]):
    """A sequence made when it is first looked at: many callers want a context's text alone."""

    __slots__ = ("_items", "_make")

    def __init__(self, make: Callable[[], Sequence[T]]) -> None:
        self._make: Callable[[], Sequence[T]] | None = make
        self._items: Sequence[T] = ()

    def _all(self) -> Sequence[T]:
        make = self._make
        if make is not None:  # two threads may both make it; the results are equal
            self._items = tuple(make())
            self._make = None
        return self._items

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._all())


@dataclass(frozen=True, slots=True)
class Context:
    """What retrieval answers: the exact text for a model, and where each passage comes from.

    `tokens` is the sum of the rows' counts, never above `budget`. `reason` says why there is
    nothing (`empty_index`, `no_match`, ...), else None. `mode` names what ran. `warnings` says what
    `auto` had to do without. `fitting` is the number of passages that a filter left to choose from.
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

    def to_json(self) -> dict[str, Any]:
        """As the command prints it (85-interface)."""
        return {
            "schema": "ketrag/context/1",
            "query_id": self.query_id,
            "question": self.question,
            "mode": self.mode,
            "budget": self.budget,
            "tokens": self.tokens,
            "reason": self.reason,
            "context": self.text,
            "passages": [passage.to_json() for passage in self.passages],
            "sections": [section.to_json() for section in self.sections],
            "timings_ms": dict(self.timings_ms),
            "generation": self.generation,
            "warnings": list(self.warnings),
            "fitting": self.fitting,
        }


@dataclass(frozen=True, slots=True)
class Citation:
    """`[number]` in an answer and the passage that it leads to, which is really in its document."""

    number: int
    passage: Passage

    def to_json(self) -> dict[str, Any]:
        """As the command prints it (85-interface)."""
        passage = self.passage
        return {
            "number": self.number,
            "document": passage.document,
            "title": passage.title,
            "page": passage.page,
            "location": dict(passage.location),
            "start": passage.start,
            "end": passage.end,
            "unit": {"kind": passage.kind, "id": passage.unit},
            "chunk": passage.chunk,
            "text": passage.text,
            **({} if passage.printed is None else {"sources": _spans(passage.sources)}),
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """What `ask` answers. `text` cites passages as [n]; `citations` are those, in the order of their first
    use; `citations_removed` counts numbers of the model's that led nowhere.

    `reason` says why no model was asked (`no_model`, or the context's own reason), else None; `text` is then
    empty, or says that the information does not suffice. `passages_used` of the context's passages were
    given to the model: fewer than there are where its own context is small. `finish` is how the reply
    ended ("stop", or "length", "time", "repetition", "cancelled" where it was cut). `decision` (yes, no,
    maybe) and `ranking` (the letters of the options, best first) are there where the question was of that
    kind.
    """

    question: str
    text: str
    context: Context
    citations: Sequence[Citation] = ()
    citations_removed: int = 0
    passages_used: int = 0
    reason: str | None = None
    finish: str | None = None
    model: Mapping[str, Any] | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_shared: int = 0
    usd: float | None = None
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    decision: str | None = None
    ranking: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """As the command prints it (85-interface)."""
        return {
            "schema": "ketrag/answer/1",
            "question": self.question,
            "mode": self.context.mode,
            "budget": self.context.budget,
            "reason": self.reason,
            "answer": self.text,
            **({} if self.decision is None else {"decision": self.decision}),
            **({} if self.ranking is None else {"ranking": list(self.ranking)}),
            "citations": [citation.to_json() for citation in self.citations],
            "citations_removed": self.citations_removed,
            "finish": self.finish,
            "tokens": {
                "context": self.context.tokens,
                "in": self.tokens_in,
                "out": self.tokens_out,
                "shared": self.tokens_shared,
            },
            "usd": self.usd,
            "model": None if self.model is None else dict(self.model),
            "passages_used": self.passages_used,
            "passages": [passage.to_json() for passage in self.context.passages],
            "timings_ms": dict(self.timings_ms),
            "generation": self.context.generation,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class StageReport:
    """`how`: "ran", "resumed" (finished by an interrupted build) or "reused" (from the last one)."""

    name: str
    how: str
    seconds: float
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """As the command prints it (85-interface)."""
        return {"name": self.name, "how": self.how, "seconds": self.seconds, "bytes": self.bytes}


@dataclass(frozen=True, slots=True)
class Usage:
    """What one build read and spent. Tokens are counted by the models themselves.

    Only what this build asked for is counted: a vector or a reply that was kept costs nothing again.
    `memory` is the peak of the whole process in bytes, where the system tells it.
    """

    documents: int = 0
    characters: int = 0
    chunks: int = 0
    core_chunks: int = 0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    llm_seconds: float = 0.0
    embedding_texts: int = 0
    embedding_tokens: int = 0
    memory: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As the command prints it."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Usage:
        """The inverse; what an older version did not record is zero."""
        known = {spec.name for spec in fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in known})


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did. `changed` is False when there was nothing to do.

    `extraction` counts the core chunks: read, found read (`hits`), failed, pending, and what `stopped` it;
    None where nothing reads them.
    """

    generation: int
    changed: bool
    digest: str
    documents: int
    added: int = 0
    removed: int = 0
    updated: int = 0
    stages: tuple[StageReport, ...] = ()
    failures: tuple[Failure, ...] = ()
    settings_changed: tuple[tuple[str, Any, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    extraction: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """As the command prints it (85-interface)."""
        return {
            "schema": "ketrag/index/1",
            "generation": self.generation,
            "changed": self.changed,
            "digest": self.digest,
            "documents": {
                "total": self.documents,
                "added": self.added,
                "removed": self.removed,
                "updated": self.updated,
            },
            "stages": [stage.to_json() for stage in self.stages],
            "failures": [failure.to_json() for failure in self.failures],
            "settings_changed": [{"name": n, "old": o, "new": w} for n, o, w in self.settings_changed],
            "warnings": list(self.warnings),
            "seconds": self.seconds,
            "usage": self.usage.to_json(),
            "extraction": dict(self.extraction) if self.extraction is not None else None,
        }
