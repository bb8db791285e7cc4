"""The calls that a service answers as one shard of a query over several indexes, as JSON data.

`plan_shard` returns the plan of the query, the totals of the index and the numbers of units that have each
term of the question, `count_terms` those of other terms, which shards of other languages have,
`find_candidates` and `look_up` units with everything that a ranking reads of them, and `print_passages` the
passages of units that the caller has ranked. `describe_shard` and `copy_shard` let a caller keep a copy of a
small index. `index/remote.py` is the other side.

Each call has the whole query, so that a service keeps nothing between calls and any of its workers may
answer. A call names the state of the index that its numbers are from. If the index has changed meanwhile, the
reply has only the new state."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.index.bundles import write_bundle
from ketrag_fast.index.index import Index
from ketrag_fast.index.parts import LocalPart, Printed, Search, local_part
from ketrag_fast.query.query import Query
from ketrag_fast.query.reading import Reading
from ketrag_fast.query.shards import WALK, Words, question_terms
from ketrag_fast.records import asdict
from ketrag_fast.storage.generation import Generation

PROTOCOL: Final = 2
"""Version of the calls. It changes with the format of their requests and replies."""
SETTINGS: Final = ("system", "cut")
"""Settings of an index that the request of a mode to the core has, in addition to those of its channels."""
COPIED: Final = ("mode", "budget", "top", "min_score", "filter", "newest")
"""Settings of a service with which a client opens a copy, so that it answers as the service does."""
_WITHOUT_EFFECT: Final = frozenset({"deadline", "memory", "offline", "refresh", "threads"})
"""Settings that do not change answers, apart from their time."""
BYTES: Final = "bytes"
"""Field of a request whose reply may be that of `pack_reply`."""
PACKED: Final = "application/octet-stream"
"""Media type of `pack_reply`."""
SIZE: Final = 4
"""Bytes of the size with which a packed reply begins."""
_KINDS: Final = ("keywords", "names", "subjects")
_MOST_UNITS: Final = 10_000
_MOST_MASS: Final = 1e9
"""Maximum of weights, masses, means and deviations, so that no sum of them overflows."""

Reply = dict[str, Any]


def _answered(
    index: Index,
    query: Query,
    search: Search | None,
    expected: str | None,
    work: Callable[[LocalPart], Reply],
) -> Reply:
    """Return the reply to a call, with the state of the index that it is from."""
    part = local_part(index, "", query, search)
    known = _known(part.plan.opened.generation)
    return known if expected not in (None, known["state"]) else known | work(part)


def index_state(generation: Generation) -> str:
    """Return the state of an index, which no other contents have."""
    return f"{generation.number}-{generation.manifest.digest}"


def _known(generation: Generation) -> Reply:
    return {"schema": "ketrag/shard/1", "protocol": PROTOCOL, "state": index_state(generation)}


def describe_shard(index: Index, given: Mapping[str, Any]) -> Reply:
    """Return the state of an index, and what is needed to open a copy of it with the settings `given`.

    `copy` is None if a copy would not answer as the index does: the index needs a model, hides documents from
    its readers, or is opened with other settings than those in COPIED.
    """
    opened = index._opened
    used = {name: value for name, value in given.items() if value is not None}
    is_alike = used.keys() <= {*COPIED, *_WITHOUT_EFFECT} and index._state.settings.allow is None
    has_model = opened.questions is not None or opened.reranker is not None
    copy = None
    if is_alike and not has_model:
        settings = {name: used[name] for name in COPIED if name in used}
        copy = {"keywords": opened.totals[2], "settings": settings}
    return _known(opened.generation) | {"copy": copy}


def copy_shard(index: Index, state: str) -> Reply:
    """Return a bundle of an index, as `Index.bundle` writes it, in base64.

    Raises IndexLocked during a build, and the other errors of `Index.bundle`.
    """
    known = _known(index._opened.generation)
    if known["state"] != state:
        return known
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bundle"
        write_bundle(index.path, file, replace=False, with_model=False)
        return known | {"bundle": base64.b64encode(file.read_bytes()).decode("ascii")}


def plan_shard(
    index: Index, query: Query, search: Search | None, state: str | None = None, *, reading: bool = False
) -> Reply:
    """Return the plan of a query: mode, limits, words that the index lacks, and the totals of the index.

    With `reading`, return how the question is read: its similar words need a look at the whole vocabulary.
    """

    def read(part: LocalPart) -> Reply:
        found = part.read()
        words = {"text": found.text, "replaced": dict(found.replaced), "unknown": list(found.unknown)}
        return {"reading": words}

    def work(part: LocalPart) -> Reply:
        settings = part.plan.settings
        names = {*SETTINGS, *(name for channel in part.plan.mode.channels for name in channel.settings)}
        totals = part.plan.opened.totals
        units, documents, keywords, languages = totals
        terms = question_terms(part.plain_text, totals, walks=WALK in part.channels)
        counts = part.shard.counts(terms, part.plan.clock.left())
        return {
            "mode": part.mode,
            "modes": sorted(part.modes),
            "plain": part.is_plain,
            "top": part.top,
            "budget": part.budget,
            "min_score": part.min_score,
            "settings": {name: settings.value(name) for name in sorted(names)},
            "text": part.plain_text,
            "missing": list(part.missing_words),
            "totals": {
                "units": units,
                "documents": documents,
                "keywords": keywords,
                "languages": {str(number): count for number, count in languages.items()},
            },
            "counts": {
                kind: dict(zip(known, found, strict=True))
                for kind, known, found in zip(_KINDS, terms, counts, strict=True)
            },
        }

    return _answered(index, query, search, state, read if reading else work)


def count_terms(
    index: Index, query: Query, search: Search | None, state: str, terms: Mapping[str, list[str]]
) -> Reply:
    """Return the number of units that have each keyword, name and subject."""

    def work(part: LocalPart) -> Reply:
        asked = (terms["keywords"], terms["names"], terms["subjects"])
        counts = part.shard.counts(asked, part.plan.clock.left())
        return dict(zip(_KINDS, counts, strict=True))

    return _answered(index, query, search, state, work)


def find_candidates(
    index: Index,
    query: Query,
    search: Search | None,
    state: str,
    words: Mapping[str, Any],
    count: int,
    *,
    narrow: bool = False,
) -> Reply:
    """Return the best units by weighted keywords; with `narrow`, no other keywords of them."""

    def work(part: LocalPart) -> Reply:
        weighted = _words(words, are_enough=narrow)
        return _bundled(part, part.shard.candidates(weighted, count, part.plan.clock.left()))

    return _answered(index, query, search, state, work)


def look_up(
    index: Index,
    query: Query,
    search: Search | None,
    state: str,
    words: Mapping[str, Any],
    leads: Mapping[str, Any],
) -> Reply:
    """Return the units to which the best candidates of all shards lead."""

    def work(part: LocalPart) -> Reply:
        try:
            keywords, names, subjects = (
                [(text, _mass(mass), count) for text, mass, count in leads[kind]] for kind in _KINDS
            )
            seeds, rest = ([(text, _mass(mass)) for text, mass in leads[kind]] for kind in ("seeds", "rest"))
            standard = [_mass(value) for value in leads["standard"]]
            given = (keywords, names, subjects, seeds, leads["question"], rest, standard)
            found = part.shard.look_up(_words(words), given, part.plan.clock.left())
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"the leads of a query have another form: {error}") from None
        return _bundled(part, found)

    return _answered(index, query, search, state, work)


def print_passages(
    index: Index,
    query: Query,
    search: Search | None,
    state: str | None,
    *,
    reading: Mapping[str, Any] | None,
    units: list[int],
    scores: list[float],
) -> Reply:
    """Return the passages of ranked units; without `reading`, those that the index ranks alone."""

    def work(part: LocalPart) -> Reply:
        if reading is None:
            return _printed(part.print_alone())
        count = len(part.plan.opened.searcher)
        if len(units) != len(scores) or len(units) > _MOST_UNITS or not all(0 <= u < count for u in units):
            raise InputError(f"units must be from 0 to {count - 1:,}, each with a score")
        read = Reading(reading["text"], reading["replaced"], tuple(reading["unknown"]))
        return _without_text(_printed(part.print_units(read, units, scores)))

    return _answered(index, query, search, state, work)


def _mass(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _MOST_MASS:
        raise ValueError(f"a mass must be a number from 0 to {_MOST_MASS:g}")
    return float(value)


def _words(words: Mapping[str, Any], *, are_enough: bool = False) -> Words:
    try:
        pairs = [(str(word), _mass(weight)) for word, weight in words["weights"]]
        length, units = words["length"], words["units"]
        return Words(_core.Weighting(pairs, length, units), length, units, are_enough)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"the weights of a query have another form: {error}") from None


def _bundled(part: LocalPart, bundle: _core.Bundle) -> Reply:
    preferred = {*part.shard.preferred()}
    return {
        "bundle": bundle.to_bytes(),
        "preferred": [unit for unit in bundle.units if unit in preferred] if preferred else [],
    }


def pack_reply(reply: Reply) -> bytes:
    """Return a reply with a bundle as bytes: the size of the JSON that follows, this JSON, and the bundle."""
    bundle: bytes = reply["bundle"]
    head = json.dumps({name: value for name, value in reply.items() if name != "bundle"}).encode()
    return len(head).to_bytes(SIZE, "little") + head + bundle


def plain_reply(reply: Reply) -> Reply:
    """Return a reply whose bundle, if it has one, is base64."""
    if not isinstance(reply.get("bundle"), bytes):
        return reply
    return {**reply, "bundle": base64.b64encode(reply["bundle"]).decode("ascii")}


def _printed(printed: Printed) -> Reply:
    context = printed.context
    hits = None if printed.hits is None else printed.hits(context)
    return {
        "context": context.to_json(),
        "sections": [asdict(section) for section in context.sections],
        "blocks": printed.blocks,
        "hits": None if hits is None else [{**hit.to_json(), **_rest_of(hit)} for hit in hits],
    }


def _without_text(reply: Reply) -> Reply:
    """Leave out the text of a context of which the caller takes single passages."""
    if not reply["context"]["passages"]:
        return reply
    sections = [{**section, "text": ""} for section in reply["sections"]]
    return {**reply, "context": {**reply["context"], "context": ""}, "sections": sections}


def _rest_of(hit: Any) -> Reply:
    """Return the fields of a hit that its JSON form lacks, or has in another form."""
    snippet = [
        {
            "text": line.text,
            "marks": [list(mark) for mark in line.marks],
            "number": line.number,
            "cut": line.cut,
        }
        for line in hit.snippet
    ]
    return {"title": list(hit.headings), "part": hit.part, "snippet": snippet}
