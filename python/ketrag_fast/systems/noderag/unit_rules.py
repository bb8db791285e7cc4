"""Decompositions without a model: each sentence is a semantic unit, its names are found by rules or recorded.

A sentence without a name ("It was built ...") counts as being about the title of the document, or about the
first name of the chunk, as in `heuristic`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ketrag_fast.kernels.text import sentence_spans
from ketrag_fast.models.extraction.cleaning import MAX_DESCRIPTION, clean
from ketrag_fast.models.extraction.grounding import Source
from ketrag_fast.models.extraction.heuristic import (
    distinct,
    own_subject,
    passage_with_rules,
    subject_of,
)
from ketrag_fast.models.extraction.records import Extraction, NameMention, RelationRecord
from ketrag_fast.systems.noderag.units import MAX_UNITS, Decomposition, Relationship, SemanticUnit

VERSION: Final = "2"
"""Part of the key of decompositions by rules."""
BETWEEN: Final = 80
"""The maximum length of the text between two names that becomes their relation."""
_JOINED: Final = "is named with"
_LEAST: Final = 2
"""The minimum number of letters of a sentence."""


def by_rules(title: str, text: str, language: str = "auto") -> Decomposition:
    """Return the units of a chunk; deterministic, for any text. `language` is as for `heuristic.extract`."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    subject = subject_of(title, text)
    passage = passage_with_rules(text, subject, language)
    units = []
    head = clean(subject, escaped=False)
    for sentence in _sentences(text)[:MAX_UNITS]:
        found = distinct(passage.entities(sentence))
        own = own_subject(sentence, found, passage.articles)
        key = own or head.casefold()
        first = found[key].name if key in found else head
        names = dict.fromkeys([first] if first else [])
        names |= dict.fromkeys(each.name for each in found.values())
        joined = tuple(
            Relationship(first, _between(sentence, found, first, each), each.name)
            for each in found.values()
            if first and each.name.casefold() != first.casefold()
        )
        units.append(SemanticUnit(_unit_text(sentence), tuple(names), joined))
        head = head or first
    return Decomposition(tuple(units))


def by_records(title: str, text: str, recorded: Extraction) -> Decomposition:
    """Return the units of a chunk with the names and relations of a recording.

    A relation belongs to the first sentence that names both its ends; if none does, its description
    becomes a unit.
    """
    sentences = _sentences(text)[:MAX_UNITS]
    places = [Source(sentence) for sentence in sentences]
    names = list(dict.fromkeys(record.name for record in recorded.entities))
    held = [[name for name in names if place.holds(name)] for place in places]
    rows: list[list[Relationship]] = [[] for _ in sentences]
    alone: list[SemanticUnit] = []
    for relation in recorded.relations:
        at = next(
            (
                k
                for k, place in enumerate(places)
                if place.holds(relation.source) and place.holds(relation.target)
            ),
            None,
        )
        one = Relationship(relation.source, _verb(relation), relation.target)
        if at is not None:
            rows[at].append(one)
        else:
            said = relation.description or f"{relation.source} {one.relation} {relation.target}"
            alone.append(SemanticUnit(said, (relation.source, relation.target), (one,)))
    units = [
        SemanticUnit(_unit_text(sentence), tuple(found), tuple(joined))
        for sentence, found, joined in zip(sentences, held, rows, strict=True)
    ]
    return Decomposition((*units, *alone[: MAX_UNITS - len(units)]), recorded.dropped)


def _sentences(text: str) -> list[str]:
    cut = (text[start:end].strip() for start, end in sentence_spans(text).tolist())
    return [sentence for sentence in cut if sum(map(str.isalnum, sentence[:64])) >= _LEAST]


def _unit_text(sentence: str) -> str:
    """Return a unit's text unchanged, so that it can be located, but in one line and bounded."""
    return clean(sentence, escaped=False)[:MAX_DESCRIPTION]


def _between(sentence: str, found: Mapping[str, NameMention], first: str, each: NameMention) -> str:
    """Return the words between two names if the first comes first; else a phrase that both are named."""
    begin = found.get(first.casefold())
    start = 0 if begin is None else begin.end
    words = (
        clean(sentence[start : each.start], escaped=False).strip(" ,;:-–—([\"'“”")
        if start < each.start
        else ""
    )
    if len(words) > BETWEEN:
        words = words[:BETWEEN].rpartition(" ")[0]
    return words or _JOINED


def _verb(relation: RelationRecord) -> str:
    """Return a description of the form "A was born in B" without the two names."""
    told = relation.description
    if told.casefold().startswith(relation.source.casefold()) and told.casefold().endswith(
        relation.target.casefold()
    ):
        middle = told[len(relation.source) : len(told) - len(relation.target)].strip()
        if middle:
            return middle
    return told or _JOINED
