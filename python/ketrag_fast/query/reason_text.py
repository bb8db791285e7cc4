"""Why a passage was found: the question's words that it holds, and what joins it to other passages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ketrag_fast import _core

if TYPE_CHECKING:
    from ketrag_fast.types import Passage

RARE = 0.5
"""From this rarity on (idf / ln n) a bridge is called rare: at most some sqrt(n) passages have it."""

LISTED = 3
"""Bridges of a pair in JSON; `more` counts the others."""

SAID = 2
"""Bridges of a pair in its sentence."""

Bridge = tuple[str, str, int, float]
Step = tuple[int, float, Sequence[Bridge]]
Reason = tuple[Step | None, tuple[Step, int, Sequence[Bridge]] | None]
"""As `_core.Searcher.explain` gives it."""
Place = Callable[[int], tuple[dict[str, Any], str]]
"""Of a unit: its document, title, place, rank in the context or None; and its text, if it is there."""


def why(question: str, passage: Passage) -> tuple[dict[str, Any], ...]:
    """One entry for each word of the question that the title or text holds, with its count there."""
    asked = dict.fromkeys(_core.lexical_keywords(question))
    found = _core.lexical_keywords(f"{passage.title}\n{passage.text}")
    counts = {word: found.count(word) for word in asked}
    return tuple({"word": word, "count": count} for word, count in counts.items() if count)


def best_pair_text(passage: Passage, reason: Reason, place: Place, units: int) -> tuple[dict[str, Any], ...]:
    """The other passage of its best pair, and the pair that it lengthens to a chain, with the bridges.

    A bridge is what both passages have and the question does not name: the subject of the one, which the
    other mentions, a name, or a keyword. `units` is how many passages there are. Each entry has its first
    bridges, how many `more` there are, and a `sentence` that says it in words. No entry where the passage was
    no candidate of the walk.
    """
    partner, chain = reason
    entries = []
    if partner is not None:
        other, _ = place(partner[0])
        bridges = _bridges(partner[2], f"{passage.title}\n{passage.text}")
        sentence = f"goes with {_name_of_place(other)}: {_describe_bridges(bridges, units)}"
        entry = {"partner": other, "worth": partner[1], **_first(bridges), "sentence": sentence}
        entries.append(entry)
    if chain is not None:
        (near, text), (far, _) = place(chain[0][0]), place(chain[1])
        bridges = _bridges(chain[0][2], f"{passage.title}\n{passage.text}")
        named = f"continues {_name_of_place(far)} and {_name_of_place(near)}"
        sentence = f"{named}: to the second, {_describe_bridges(bridges, units)}"
        between = _bridges(chain[2], text)
        entry = {"chain": [far, near], "between": between[:LISTED], "worth": chain[0][1], **_first(bridges)}
        entries.append({**entry, "sentence": sentence})
    return tuple(entries)


def _bridges(bridges: Sequence[Bridge], text: str) -> list[dict[str, Any]]:
    return [
        {"kind": kind, "text": as_written(name, text), "units": count, "rarity": rarity}
        for kind, name, count, rarity in bridges
    ]


def _first(bridges: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"bridges": bridges[:LISTED], "more": max(len(bridges) - LISTED, 0)}


def as_written(name: str, text: str) -> str:
    """A name in the letters that a text has it in, where it is there; the index keeps small ones."""
    pattern = r"\W+".join(map(re.escape, name.split(" ")))
    found = re.search(rf"\b{pattern}\b", text, re.IGNORECASE)
    return found.group() if found is not None else name


def _name_of_place(place: dict[str, Any]) -> str:
    title = place["title"] or place["document"]
    return f"[{place['rank']}] {title}" if place["rank"] is not None else f"{title} (not printed)"


_EDGES = {
    "cites": "cites it",
    "cited": "is cited by it",
    "refers": "refers to it",
    "follows": "follows it",
}
"""Bridges that are edges of a graph of citations."""


def _describe_bridges(bridges: Sequence[dict[str, Any]], units: int) -> str:
    """`shares *Fort Ross*, rare (in 3 of 9,329 passages); not in the question`."""
    if not bridges:
        return "together they hold more of the question; nothing else joins them"
    edges = [_EDGES[bridge["kind"]] for bridge in bridges if bridge["kind"] in _EDGES]
    if edges:
        return " and ".join(edges)
    told = []
    for bridge in bridges[:SAID]:
        rare = ", rare" if bridge["rarity"] >= RARE else ""
        among = f"{rare} (in {bridge['units']:,} of {units:,} passages)"
        if bridge["kind"] == "mentions":
            told.append(f"mentions its subject *{bridge['text']}*{among}")
        elif bridge["kind"] == "mentioned":
            told.append(f"its subject *{bridge['text']}* is mentioned there{among}")
        else:
            told.append(f"shares *{bridge['text']}*{among}")
    if len(bridges) > SAID:
        told.append(f"and {len(bridges) - SAID} more")
    return "; ".join(told) + "; not in the question"
