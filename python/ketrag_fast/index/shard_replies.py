"""Read the replies of a service that is a shard (`index/shard_calls.py`). Nothing in them is trusted: a reply
of another form is an error that names the shard."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.index.shard_calls import PACKED, SIZE
from ketrag_fast.query.reading import Reading
from ketrag_fast.query.shards import WrongReply
from ketrag_fast.records import dataclass
from ketrag_fast.secrets import without_keys
from ketrag_fast.types import Context, Copy, Hit, Passage, Section
from ketrag_fast.types.documents import Span
from ketrag_fast.types.hits import ShownLine

_LARGEST: Final = 2**40
"""Maximum of the numbers that are added up over shards."""
_UNIT: Final = 2**32 - 2
_UPDATE: Final = "install the same version of ketrag-fast here and there"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlanReply:
    """The plan of a query by a service."""

    state: str
    mode: str
    modes: frozenset[str]
    is_plain: bool
    top: int | None
    budget: int
    min_score: float
    settings: Mapping[str, Any]
    text: str
    missing_words: frozenset[str]
    totals: tuple[int, int, int, dict[int, int]]
    counts: tuple[dict[str, int], dict[str, int], dict[str, int]]
    """The number of units that have each keyword, name and subject of the question."""


@dataclass(frozen=True, slots=True)
class PrintedReply:
    """Passages that a service printed."""

    context: Context
    blocks: list[str]
    hits: tuple[Hit, ...] | None


def read_reply(name: str, read: Callable[[], T]) -> T:
    """Return what `read` returns. Raises WrongReply, which names the shard, if the reply has another form."""
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, InputError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise WrongReply(
            f"{name} sent a reply that a shard cannot have: {what[:300]}", hint=_UPDATE
        ) from None


def state_of(name: str, data: Any, protocol: int) -> str:
    """Return the state of the index that a reply is from."""
    if not isinstance(data, Mapping) or "protocol" not in data:
        raise WrongReply(
            f"{name} is not a shard", hint="give the address of `ketrag serve`: http://HOST:PORT"
        )
    if data["protocol"] != protocol:
        raise WrongReply(
            f"{name} has version {str(data['protocol'])[:20]} of the calls to shards, expected {protocol}",
            hint=_UPDATE,
        )
    return read_reply(name, lambda: _text(data["state"]))


def plan_reply(data: Mapping[str, Any]) -> PlanReply:
    """Return the plan in a reply."""
    totals, counts = data["totals"], data["counts"]
    languages = {int(number): _whole(count) for number, count in totals["languages"].items()}
    units, documents, keywords = (_whole(totals[name]) for name in ("units", "documents", "keywords"))
    whole = (units, documents, keywords, languages)
    _core.question_terms("", whole)  # raises an error for a language that this version does not know
    top = data["top"]
    return PlanReply(
        _text(data["state"]),
        _text(data["mode"]),
        frozenset(map(_text, data["modes"])),
        _flag(data["plain"]),
        None if top is None else _whole(top, 2**62),
        _whole(data["budget"], 2**62),
        _real(data["min_score"]),
        _named(data["settings"]),
        _text(data["text"]),
        frozenset(map(_text, data["missing"])),
        whole,
        (_counts(counts["keywords"]), _counts(counts["names"]), _counts(counts["subjects"])),
    )


def reading_reply(data: Mapping[str, Any]) -> Reading:
    """Return how an index alone reads the question."""
    reading = data["reading"]
    return Reading(
        _text(reading["text"]),
        {_text(word): _text(similar) for word, similar in reading["replaced"].items()},
        tuple(map(_text, reading["unknown"])),
    )


def counts_reply(data: Mapping[str, Any], terms: tuple[list[str], ...]) -> tuple[list[int], ...]:
    """Return the numbers of units that have each term."""
    counts = tuple([_whole(count) for count in data[kind]] for kind in ("keywords", "names", "subjects"))
    if [len(one) for one in counts] != [len(one) for one in terms]:
        raise ValueError("there is not one number for each term")
    return counts


def open_reply(kind: str, content: bytes) -> dict[str, Any] | None:
    """Return the data of a reply by its media type; None if it is neither JSON nor packed by `pack_reply`."""
    try:
        if kind == "application/json":
            data = json.loads(content)
            return without_keys(data) if b"\\" in content else data  # type: ignore[no-any-return]
        if kind == PACKED:
            size = int.from_bytes(content[:SIZE], "little")
            data = json.loads(content[SIZE : SIZE + size])
            return {**data, "bundle": content[SIZE + size :]}
    except (ValueError, TypeError, RecursionError):
        pass
    return None


def bundle_reply(data: Mapping[str, Any]) -> tuple[_core.Bundle, list[int]]:
    """Return units with everything that a ranking reads of them, and those that the question prefers."""
    given = data["bundle"]
    content = given if isinstance(given, bytes) else base64.b64decode(_text(given), validate=True)
    bundle = _core.Bundle.from_bytes(content)
    return bundle, [_whole(unit, _UNIT) for unit in data["preferred"]]


def printed_reply(data: Mapping[str, Any], units: Sequence[int] | None) -> PrintedReply:
    """Return printed passages: only of `units`, if they are not None."""
    given = data["context"]
    passages = [_passage(one) for one in given["passages"]]
    if units is not None:
        known = {*units}
        if any(known.isdisjoint(one.units or (one.unit,)) for one in passages):
            raise ValueError("passages of other units than those to print")
    blocks = [_text(block) for block in data["blocks"]]
    sections = [
        Section(_text(one["name"]), _whole(one["tokens"]), _text(one["text"]), _flag(one["passages"]))
        for one in data["sections"]
    ]
    reason, fitting = given["reason"], given["fitting"]
    context = Context(
        _text(given["question"]),
        _text(given["mode"]),
        _whole(given["budget"], 2**62),
        _whole(given["tokens"], 2**62),
        _text(given["context"]),
        passages,
        sections,
        None if reason is None else _text(reason),
        {_text(stage): _real(taken) for stage, taken in given["timings_ms"].items()},
        _whole(given["generation"]),
        None,
        tuple(map(_text, given["warnings"])),
        None if fitting is None else _whole(fitting),
        _flag(given["nothing_fits"]),
        tuple(map(_text, given.get("notes", ()))),
        {_text(word): _text(similar) for word, similar in given.get("replaced", {}).items()},
        tuple(map(_text, given.get("unknown", ()))),
    )
    if len(blocks) != len(passages) and (blocks or len(sections) <= 1):
        raise ValueError("there is not one printed text for each passage")
    hits = data["hits"]
    return PrintedReply(context, blocks, None if hits is None else tuple(map(_hit, hits)))


def _passage(data: Mapping[str, Any]) -> Passage:
    page, printed = data["page"], data.get("printed")
    return Passage(
        _whole(data["rank"]),
        _text(data["unit"]["kind"]),
        _whole(data["unit"]["id"], _UNIT),
        _whole(data["chunk"], 2**32),
        _text(data["document"]),
        _text(data["title"]),
        _whole(data["start"]),
        _whole(data["end"]),
        _real(data["score"]),
        _whole(data["tokens"]),
        _text(data["channel"]),
        _text(data["text"]),
        page=None if page is None else _whole(page),
        why=list(data["why"]),
        printed=None if printed is None else _text(printed),
        sources=tuple(_span(one) for one in data.get("sources", ())),
        location=_named(data["location"]),
        metadata=_named(data["metadata"]),
        context=_text(data.get("context", "")),
        units=tuple(_whole(unit, _UNIT) for unit in data.get("units", ())),
        relevance=_real(data["relevance"]),
        also_in=tuple(_copy(one) for one in data.get("also_in", ())),
    )


def _span(data: Mapping[str, Any]) -> Span:
    return Span(**{_text(name): value for name, value in data.items()})


def _copy(data: Mapping[str, Any]) -> Copy:
    return Copy(
        _whole(data["unit"]),
        _text(data["document"]),
        _text(data["title"]),
        _whole(data["start"]),
        _whole(data["end"]),
    )


def _hit(data: Mapping[str, Any]) -> Hit:
    return Hit(
        rank=_whole(data["rank"]),
        score=_real(data["score"]),
        text=_text(data["text"]),
        unit=_whole(data["unit"], _UNIT),
        snippet=tuple(_line(one) for one in data["snippet"]),
        document=_text(data["document"]),
        headings=tuple(map(_text, data["title"])),
        part=_text(data["part"]),
        lines=_lines(data["lines"]),
        text_lines=_lines(data.get("text_lines")),
        page=None if data["page"] is None else _whole(data["page"]),
        **{
            name: None if data.get(name) is None else _text(data[name])
            for name in ("path", "source", "cell", "time", "state", "description", "sender", "date")
        },
    )


def _line(data: Mapping[str, Any]) -> ShownLine:
    marks = tuple((_whole(start), _whole(end)) for start, end in data["marks"])
    number = data["number"]
    return ShownLine(
        _text(data["text"]), marks, None if number is None else _whole(number), _whole(data["cut"])
    )


def _lines(data: Any) -> tuple[int, int] | None:
    if data is None:
        return None
    first, last = data
    return _whole(first), _whole(last)


def _counts(value: Any) -> dict[str, int]:
    return {term: _whole(count) for term, count in _named(value).items()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {str(value)[:60]!r}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, got {str(value)[:60]!r}")
    return value


def _whole(value: Any, most: int = _LARGEST) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"expected a whole number up to {most:,}, got {str(value)[:60]!r}")
    return value


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"expected a number, got {str(value)[:60]!r}")
    return float(value)


def _named(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, got {str(value)[:60]!r}")
    return value
