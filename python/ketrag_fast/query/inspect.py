"""Contents of an opened generation: documents, nodes of graphs, neighbouring units, vectors, token counts."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import InputError, ModeUnavailable, UnknownName
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.query import whole
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.shared.stored_rows import span_of, text_of
from ketrag_fast.types import Document, Listed, Span
from ketrag_fast.types.wording import about_missing_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.base.filters import Condition
    from ketrag_fast.models.embedders.protocol import Role
    from ketrag_fast.systems.spec.system import Node


def document_count(opened: Opened) -> int:
    """Return the number of documents."""
    return int(opened.generation.stages["units"].columns["document_count"][0])


def document(opened: Opened, number: int) -> Document:
    """Return a document by its number in index order, without the locators of its text."""
    texts = opened.texts
    rows = texts.rows(number)
    title = document_title(opened.generation.stages["units"], rows)
    return Document(texts.names[number], texts.text(number), title, opened.document_metadata.of_row(rows[0]))


def documents(
    opened: Opened,
    first: int,
    count: int,
    containing: str,
    condition: Condition | None = None,
    rows: NDArray[np.int64] | None = None,
) -> list[Listed]:
    """Return at most `count` documents in index order, starting with number `first`.

    `containing` selects documents whose id or title contains that text, ignoring case; `condition` selects
    documents by metadata; `rows` selects documents by their first row.
    """
    import numpy as np

    from ketrag_fast.systems.shared.rows import documents_of

    if whole("first", first) < 0 or whole("count", count) < 0:
        raise InputError("first and count must not be negative")
    units, text = opened.generation.stages["units"], containing.casefold()
    listed: list[Listed] = []
    owners, total = units["unit_document"], document_count(opened)
    starts = [*documents_of(units)[1].tolist(), len(units["document_ids_offsets"]) - 1]
    fits = None if condition is None else opened.columns().fitting(condition)
    if rows is not None:
        fits = np.isin(np.arange(starts[-1]), rows) & (True if fits is None else fits)
    numbers: Sequence[int] = range(total)
    if fits is not None:
        numbers = np.flatnonzero(fits[starts[:-1]]).tolist()
    if not text:
        numbers, first = numbers[first : first + count], 0
    matches = 0
    for number in numbers:
        if len(listed) >= count:
            break
        row, stop = starts[number : number + 2]
        name = text_of(units, "document_ids", row)
        title = text_of(units, "document_titles", row)
        if text not in name.casefold() and text not in title.casefold():
            continue
        matches += 1
        if matches <= first:
            continue
        begin, end = np.searchsorted(owners, np.array([row, stop], owners.dtype)).tolist()
        title = document_title(units, range(row, stop))
        listed.append(Listed(name, title, begin, end - begin, opened.document_metadata.of_row(row)))
    return listed


def document_title(units: Mapping[str, Any], rows: Iterable[int]) -> str:
    """Return the title of a document, given the rows of its sections, such as `Risks (Report › Results)`."""
    titles = [text_of(units, "document_titles", row) for row in rows]
    first = titles[0]
    if len(titles) == 1:
        return first
    titles = [title for title in titles if " (" not in title or title.endswith(")")]  # long titles are cut
    outer = first.split(" (")[1:]
    whole = [" (".join(outer[at:])[:-1].split(" › ")[0] for at in range(len(outer))]
    for title in (first, *whole):
        if all(each == title or f" ({title})" in each or f" ({title} › " in each for each in titles):
            return title
    return ""


def find_node(opened: Opened, name: str, kind: str | None = None) -> Node:
    """Return the node with a name: among nodes of one kind, or in the first graph that has it.

    Raises UnknownName with similar names if no node has the name, ModeUnavailable without a graph.
    """
    inspectors = opened.inspectors
    if not inspectors:
        adds = [f"`{graph.add}`" for one in registry().systems if one.inspect for graph in one.graphs[:1]]
        named = f"graphs of named things are added by {', '.join(adds)}; " if adds else ""
        raise ModeUnavailable(
            "this index has no graph of named things",
            hint=f"{named}the graph of the walk is a picture: `ketrag graph NAME --graph walk --html FILE`",
        )
    if kind is not None:
        inspectors = [inspector for inspector in inspectors if kind == inspector.WHAT]
        if not inspectors:
            kinds = ", ".join(inspector.WHAT for inspector in opened.inspectors)
            raise ModeUnavailable(
                f"no graph of this index has nodes of kind {kind!r}", hint=f"it has: {kinds}"
            )
    for inspector in inspectors:
        node = inspector.find(name)
        if node is not None:
            return node
    similar = dict.fromkeys(other for inspector in inspectors for other in inspector.near(name))
    kinds = " or ".join(inspector.WHAT for inspector in inspectors)
    raise UnknownName(f"there is no {kinds} {name!r}", hint=about_missing_name(name, similar))


def neighbouring_units(opened: Opened, unit: int, before: int, after: int) -> list[tuple[int, Span]]:
    """Return a unit and the units before and after it in its document, in text order, with their numbers."""
    units = opened.generation.stages["units"].columns
    owners = units["unit_document"]
    number = _check_unit(opened, unit)
    if whole("before", before) < 0 or whole("after", after) < 0:
        raise InputError("before and after must not be negative")
    own = owners[number]
    begin, end = owners.find(own), owners.find(own + 1)
    shown = range(max(begin, number - before), min(end, number + after + 1))
    return [(one, span_of(units, one)) for one in shown]


def unit_at(opened: Opened, document: str, at: int) -> int:
    """Return the unit that has a character of a document, or the nearest one before it, else the first one.

    Raises UnknownName if the index does not have the document, or no text of it.
    """
    number = opened.texts.numbers.get(document)
    if number is None:
        raise UnknownName(f"the index has no document {document[:200]!r}", hint="it may have been removed")
    units = opened.generation.stages["units"].columns
    owners, rows = units["unit_document"], opened.texts.rows(number)
    begin, end = owners.find(rows[0]), owners.find(rows[-1] + 1)
    if begin == end:
        raise UnknownName(f"the document {document[:200]!r} has no text", hint="see its failures")
    starts = [span_of(units, unit).start for unit in range(begin, end)]
    return begin + max(bisect_right(starts, whole("at", at)) - 1, 0)


def metadata_of_unit(opened: Opened, unit: int) -> dict[str, Any]:
    """Return the metadata of the document that contains a unit."""
    return opened.document_metadata.of_unit(_check_unit(opened, unit))


def location_in_unit(opened: Opened, unit: int, start: int, end: int) -> dict[str, Any]:
    """Return the location in the source of a span of a unit's document; {} if the source has no locations."""
    return opened.places.of_unit(_check_unit(opened, unit), start, end)


def _check_unit(opened: Opened, unit: int) -> int:
    count = len(opened.searcher)
    number = whole("unit", unit)
    if not 0 <= number < count:
        raise InputError(f"unit {number} does not exist", hint=f"units are numbered from 0 to {count - 1}")
    return number


def vectors(
    opened: Opened, texts: Sequence[str], role: Role, seconds: float | None = None
) -> NDArray[np.float32]:
    """Return the vectors of texts in the index's space, f32[texts, dimension].

    Raises ModeUnavailable if the index has no vectors.
    """
    if role not in ("query", "document"):
        raise InputError(f"role must be 'query' or 'document', got {role!r}")
    if opened.questions is not None:
        if role == "query":
            return opened.questions.vectors(texts, seconds)
        return opened.questions.embed(texts, role, Limited(None, seconds, time.monotonic()))
    from ketrag_fast.query.python_channels import fitted_vectors

    found = fitted_vectors(opened, texts)
    if found is None:
        raise ModeUnavailable("this index has no vectors", hint="`ketrag index --modes auto,text` adds them")
    return found
