"""Search results for people and assistants: the location of a passage, and the lines that match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from ketrag_fast.records import dataclass, field, replace
from ketrag_fast.types.contexts import Context, Items, reading_json

Lines = tuple[int, int]
"""The first and last line, counted from 1."""


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line of a document with the ranges that match; `number` is None if it is unknown.

    Examples:
        >>> line = index.grep("Maud")[0].line
        >>> line.text[slice(*line.marks[0])]
        'Maud'
    """

    text: str
    marks: tuple[tuple[int, int], ...] = ()
    number: int | None = None
    cut: int = 0
    """Number of characters omitted at the start of the line, before `text`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A location: the document, its file, and the position in the file.

    Attributes:
        document: Id of the document.
        path: Absolute path of the file; None for documents that a program passed.
        source: The indexed file, folder or glob that the file belongs to.
        lines: First and last line in the file; None if the format has no lines.
        page: Page or slide.
        cell: Cell of a sheet, such as `Stock!A65`, or number of a cell of a notebook, such as `cell3`.
        time: Time in a recording, such as `00:12:30`.
        headings: Title of the document and the headings above, from the outermost to the innermost.
        state: "changed" if the file was changed since it was indexed, "missing" if it does not exist here.
        index: Name of the collection, if several were searched.
        part: The part of the file that is the document: `#2` for a row, `/notes.txt` for a member of an
            archive.
        text_lines: First and last line in the indexed text, if the format has no lines, pages or cells.

    Examples:
        >>> place = Place(document="notes.md", path="/home/ada/notes.md", lines=(93, 110))
        >>> place.position
        '93'
    """

    document: str
    path: str | None = None
    source: str | None = None
    lines: Lines | None = None
    page: int | None = None
    cell: str | None = None
    time: str | None = None
    headings: tuple[str, ...] = ()
    state: str | None = None
    index: str | None = None
    part: str = ""
    text_lines: Lines | None = None

    @property
    def title(self) -> str:
        """The headings in one line, separated by ` › `."""
        return " › ".join(self.headings)

    @property
    def position(self) -> str:
        """The position in the form that `ketrag get FILE:POSITION` accepts; empty if it is unknown."""
        if self.lines is not None:
            return str(self.lines[0])
        if self.page is not None:
            return f"p{self.page}"
        return self.cell or self.time or ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON fields that all results have in common."""
        return {
            "path": self.path,
            "source": self.source,
            "document": self.document,
            "lines": None if self.lines is None else list(self.lines),
            "page": self.page,
            "cell": self.cell,
            "time": self.time,
            "title": self.title,
            **({} if self.text_lines is None else {"text_lines": list(self.text_lines)}),
            **({} if self.state is None else {"state": self.state}),
            **({} if self.index is None else {"index": self.index}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit(Place):
    """A passage found by `Index.search`.

    `score` is its relevance, `text` the passage, and `snippet` the two lines that contain most of the
    query's rare words. `unit` is its number in the index.

    Examples:
        >>> hit = index.search("Who sailed the Fram?")[0]
        >>> hit.document, hit.rank
        ('fram', 1)
    """

    rank: int
    score: float
    text: str
    snippet: tuple[ShownLine, ...] = ()
    unit: int = 0
    description: str | None = None
    """Description of the folder that the file is in (`ketrag annotate`)."""
    sender: str | None = None
    """Sender of a mail."""
    date: str | None = None
    """Date of a mail, as YYYY-MM-DD."""
    relation: str | None = None
    """With `related`: how the passage belongs to the place, such as `uses parse_args`."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        about = {"description": self.description, "sender": self.sender, "date": self.date}
        about["relation"] = self.relation
        described = {name: value for name, value in about.items() if value is not None}
        return {
            "rank": self.rank,
            "score": self.score,
            **Place.to_json(self),
            **described,
            "unit": self.unit,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(Place):
    """A line that `Index.grep` found.

    Examples:
        >>> match = index.grep("sailed")[0]
        >>> match.document, match.line.marks
        ('fram', ((7, 13),))
    """

    line: ShownLine

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        cut = {"cut": self.line.cut} if self.line.cut else {}
        marks = [list(mark) for mark in self.line.marks]
        return {**Place.to_json(self), "text": self.line.text, "marks": marks, **cut}


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt(Place):
    """Lines of the indexed text of a file, from `Index.text`.

    `first` is the number of the first line: in the file, or in the indexed text if `lines` is None. `total`
    is the number of the last line of the text. `heads` are the heads of mails (From, To, Subject, Date), each
    with the number of the line that it precedes; they are not part of the text.

    Examples:
        >>> excerpt = index.text("fram")
        >>> excerpt.first, excerpt.total, excerpt.text[:17]
        (1, 1, 'Nansen sailed the')
    """

    text: str
    first: int
    total: int
    heads: tuple[tuple[int, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        heads = [{"line": line, "text": text} for line, text in self.heads]
        return {
            **Place.to_json(self),
            "first": self.first,
            "total": self.total,
            "text": self.text,
            **({"heads": heads} if heads else {}),
        }

    def rows(self) -> list[tuple[int | None, str]]:
        """Return the lines with their numbers; those of heads have none."""
        heads = dict(self.heads)
        found: list[tuple[int | None, str]] = []
        for number, row in enumerate(self.text.split("\n"), self.first):
            if number in heads:
                found += [(None, line) for line in ["", *heads[number].split("\n"), ""][not found :]]
            found.append((number, row))
        return found


@dataclass(frozen=True, slots=True)
class Hits(Items[Hit]):
    """The hits of a query, best first.

    `reason` is why there are no hits (as in `Context`), or `below_min_score`; `nothing_fits` is whether no
    hit is relevant enough to answer the query; `warnings` are the warnings of the query. `notes`, `replaced`
    and `unknown` describe how the query was read, and `missing` names the indexes that did not answer in time
    (as in `Context`).

    Examples:
        >>> hits = index.search("Who sailed the Maud?", limit=1)
        >>> len(hits), hits.reason
        (1, None)
    """

    query: str
    mode: str
    hits: tuple[Hit, ...] = ()
    reason: str | None = None
    warnings: tuple[str, ...] = field(default=())
    generation: int = 0
    nothing_fits: bool = False
    notes: tuple[str, ...] = ()
    replaced: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def _all(self) -> Sequence[Hit]:
        return self.hits

    @classmethod
    def from_context(cls, query: str, context: Context, hits: Sequence[Hit]) -> Hits:
        """Return hits with what a context says of its query."""
        return cls(
            query,
            context.mode,
            tuple(hits),
            context.reason,
            context.warnings,
            context.generation,
            context.nothing_fits,
            context.notes,
            context.replaced,
            context.unknown,
        )

    def of_index(self, name: str) -> Hits:
        """Return a copy in which each hit names the index."""
        return replace(self, hits=tuple(replace(hit, index=name) for hit in self.hits))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        return {
            "schema": "ketrag/search/1",
            "query": self.query,
            "mode": self.mode,
            "reason": self.reason,
            "nothing_fits": self.nothing_fits,
            "hits": [hit.to_json() for hit in self.hits],
            "generation": self.generation,
            "warnings": list(self.warnings),
            **reading_json(self.notes, self.replaced, self.unknown),
            **({"missing": list(self.missing)} if self.missing else {}),
        }


@dataclass(frozen=True, slots=True)
class Files(Sequence[Place]):
    """The files of an index, in index order; titles are read on first use.

    Attributes:
        paths: The absolute path of each file, or the id of a document that a program passed.
        documents: The id of each file's document, without the suffixes of row ids.

    Examples:
        >>> [file.title for file in index.files("fram")]
        ['Fram']
    """

    paths: tuple[str, ...]
    documents: tuple[str, ...]
    place: Callable[[int], Place] = field(repr=False, compare=False)

    @overload
    def __getitem__(self, index: int) -> Place: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Place]: ...
    def __getitem__(self, index: int | slice) -> Place | Sequence[Place]:
        numbers = range(len(self.paths))[index]
        return self.place(numbers) if isinstance(numbers, int) else [self.place(one) for one in numbers]

    def __len__(self) -> int:
        return len(self.paths)
