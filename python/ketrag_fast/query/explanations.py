"""Reasons why passages were retrieved; the core computes them after ranking, for printed passages only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Any

from ketrag_fast import _core
from ketrag_fast.records import dataclass, replace
from ketrag_fast.systems.shared.stored_rows import languages_of
from ketrag_fast.types import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.models.embedders.sparse import Terms
    from ketrag_fast.query.open_generation import Opened
    from ketrag_fast.types import Passage


LISTED = 3
"""Maximum number of bridges of a pair in JSON; `more` counts the omitted ones."""

_PAIR = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff]")
_SPLIT_VOWELS = {"\u0e33": "\u0e4d\u0e32", "\u0eb3": "\u0ecd\u0eb2"}
_WORD = re.compile(r"[^\s\-–—/]+")
_MARKS = "\"'.,;:!?()[]{}«»„“”‘’…¿¡؟،؛।。，？！"
SAID = 2
"""Maximum number of bridges of a pair in its sentence."""
_NUMBERS = {code: number for number, (code, _) in enumerate(_core.languages())}

Bridge = tuple[str, str, int, float]
Step = tuple[int, float, Sequence[Bridge]]
Reason = tuple[Step | None, tuple[Step, int, Sequence[Bridge]] | None]
"""The result of `_core.Searcher.explain` for a unit."""
Place = Callable[[int], tuple[dict[str, Any], str]]
"""Function that returns document, title, offset and rank (or None) of a unit, and its text if printed."""


@dataclass(frozen=True, slots=True)
class Explainer:
    """Explains the passages of one query.

    `ranked` is the text that passages were ranked by; `vector` and `terms` represent the same text.
    """

    opened: Opened
    request: _core.Request
    question: str
    ranked: str
    vector: NDArray[np.float32] | None
    terms: Terms | None = None

    def explained(self, passages: Sequence[Passage]) -> list[Passage]:
        """Return the passages with their reasons: keywords of the question, then partners and chains."""
        reasons: dict[int, Reason] = {}
        searcher = self.opened.searcher
        for channel in dict.fromkeys(p.channel for p in passages):
            own = [at for at, p in enumerate(passages) if p.channel == channel]
            units = [passages[at].unit for at in own]
            found = searcher.explain(
                self.request, channel, self.ranked, units, vector=self.vector, terms=self.terms
            )
            reasons |= dict(zip(own, found, strict=False))  # empty if the channel cannot explain
        printed: dict[int, Passage] = {}
        for passage in passages:
            for unit in (passage.unit, *passage.units, *(copy.unit for copy in passage.also_in)):
                printed.setdefault(unit, passage)

        def place(unit: int) -> tuple[dict[str, Any], str]:
            _, document, title, start, *_ = searcher.places([unit], [0])[0]
            own = printed.get(unit)
            rank = None if own is None else own.rank
            found = {"unit": unit, "document": document, "title": title, "start": start, "rank": rank}
            return found, "" if own is None else f"{title}\n{own.text}"

        languages = languages_of(self.opened.generation.stages.get("links"))
        return [
            replace(
                passage,
                why=(
                    *why(self.question, passage, languages),
                    *(best_pair_text(passage, reasons[at], place, len(searcher)) if at in reasons else ()),
                ),
            )
            for at, passage in enumerate(passages)
        ]


def why(question: str, passage: Passage, languages: Sequence[int] = ()) -> tuple[dict[str, Any], ...]:
    """Return an entry for each keyword of the question that the title or text contains, with its count.

    `languages` are the languages of the index if some units are not English. Then a keyword is shown as the
    question spells it, because a stem is often not a word, and `forms` are its spellings in the passage.
    """
    asked = dict.fromkeys(_core.lexical_keywords(question, languages=languages))
    found = _keywords_of_text(f"{passage.title}\n{passage.text}", languages)
    counts: dict[str, int] = {}
    forms: dict[str, dict[str, None]] = {}
    spelled = _spellings(f"{passage.title}\n{passage.text}", asked, languages) if languages else {}
    for word in asked:
        shown = as_spelled(word, question, languages) if languages else word
        counts[shown] = max(counts.get(shown, 0), found[word])
        forms.setdefault(shown, {}).update(spelled.get(word, {}))
    return tuple(
        {"word": word, "count": count, **({"forms": list(forms[word])} if languages else {})}
        for word, count in counts.items()
        if count
    )


def _keywords_of_text(text: str, languages: Sequence[int]) -> Counter[str]:
    """Return the keywords of a text with their counts.

    A Vietnamese word also yields a keyword without marks.
    """
    found = Counter(_core.lexical_keywords(text, languages=languages))
    if _NUMBERS["vi"] in languages:
        found |= Counter(_core.lexical_keywords(text, "vietnamese"))
    return found


def _spellings(text: str, keywords: Container[str], languages: Sequence[int]) -> dict[str, dict[str, None]]:
    """Return the spellings of each keyword in a text, in text order."""
    found: dict[str, dict[str, None]] = {}
    words = dict.fromkeys(word.strip(_MARKS) for word in _WORD.findall(text))
    for word in words:
        for key in _keywords_of_text(word, languages):
            if key in keywords:
                found.setdefault(key, {})[_part(word, key) if _PAIR.match(key) else word] = None
    return found


def _part(text: str, pair: str) -> str:
    """Return how a text without spaces spells a pair of pieces, because folding splits double vowels."""
    pattern = re.escape(pair)
    for whole, parts in _SPLIT_VOWELS.items():
        pattern = pattern.replace(parts, f"(?:{whole}|{parts})")
    found = re.search(pattern, text)
    return found.group() if found else pair


def as_spelled(keyword: str, text: str, languages: Sequence[int]) -> str:
    """Return the first word of a text that has this keyword, or the keyword if there is none."""
    words = (match.group() for match in re.finditer(r"\S+", text))
    forms = (word.strip(_MARKS) for word in words)
    found = (form for form in forms if _is_form(form, keyword, languages))
    return next(found, keyword.partition("@")[0])


def _is_form(word: str, keyword: str, languages: Sequence[int]) -> bool:
    """Return whether a word has this keyword. A run of text without spaces has several keywords."""
    found = _core.lexical_keywords(word, languages=languages)
    return keyword in _keywords_of_text(word, languages) and len(found) <= len(languages)


def best_pair_text(passage: Passage, reason: Reason, place: Place, units: int) -> tuple[dict[str, Any], ...]:
    """Return the partner of the passage's best pair, and the pair that it continues, with their bridges.

    A bridge is something that both passages contain and the question does not: a name, a keyword, or the
    subject of one passage that the other mentions. Each entry has its first bridges, and `more` counts the
    rest. If both passages of a pair are printed before this passage, the pair has a `sentence`; otherwise
    the partner has one, unless it is part of the passage. The result is empty if the passage was not a
    candidate of the walk. `units` is the number of passages in the index.
    """
    partner, chain = reason
    own = f"{passage.title}\n{passage.text}"
    entries: list[dict[str, Any]] = []
    if partner is not None:
        other, _ = place(partner[0])
        bridges = _bridges(partner[2], own)
        entry = {"partner": other, "worth": partner[1], **_first(bridges)}
        if other["rank"] != passage.rank:
            entry["sentence"] = f"linked to {_name_of_place(other)}: {_describe_bridges(bridges, units)}"
        entries.append(entry)
    if chain is not None:
        (near, text), (far, _) = place(chain[0][0]), place(chain[1])
        bridges = _bridges(chain[0][2], own)
        between = _bridges(chain[2], text)
        entry = {"chain": [far, near], "between": between[:LISTED], "worth": chain[0][1], **_first(bridges)}
        if all(one["rank"] is not None and one["rank"] < passage.rank for one in (near, far)):
            through = f"{_name_of_place(near)}, and through it to {_name_of_place(far)}"
            entry["sentence"] = f"linked to {through}: {_describe_bridges(bridges, units)}"
            for before in entries:
                before.pop("sentence", None)
        entries.append(entry)
    return tuple(entries)


def _bridges(bridges: Sequence[Bridge], text: str) -> list[dict[str, Any]]:
    return [
        {"kind": kind, "text": as_written(name, text), "units": count, "rarity": rarity}
        for kind, name, count, rarity in bridges
    ]


def _first(bridges: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"bridges": bridges[:LISTED], "more": max(len(bridges) - LISTED, 0)}


def as_written(name: str, text: str) -> str:
    """Return a name as a text spells it, if the text contains it. The index stores names in lower case."""
    pattern = r"\W+".join(map(re.escape, name.split(" ")))
    found = re.search(rf"\b{pattern}\b", text, re.IGNORECASE)
    code = name.partition("@")[2]
    if found is None and (code in _NUMBERS or not name.isascii()) and " " not in name:  # a stem
        return as_spelled(name, text, [_NUMBERS.get(code, 0)])
    return found.group() if found is not None else name


def _name_of_place(place: dict[str, Any]) -> str:
    title = place["title"] or place["document"]
    return f"{title} (not printed)" if place["rank"] is None else f"[{place['rank']}] {title}"


_EDGES = {
    "cites": "cites it",
    "cited": "is cited by it",
    "refers": "refers to it",
    "follows": "follows it",
}
"""Bridges that are edges of a citation graph."""


def _describe_bridges(bridges: Sequence[dict[str, Any]], units: int) -> str:
    """Return a text like `both mention *Fort Ross* (in 3 of 9,329 passages) and *Bodega* (in 5)`."""
    if not bridges:
        return "together they have more words of the question"
    edges = [_EDGES[bridge["kind"]] for bridge in bridges if bridge["kind"] in _EDGES]
    if edges:
        return " and ".join(edges)
    described: list[str] = []
    is_both = False
    for bridge in bridges[:SAID]:
        name = f"*{bridge['text']}*"
        count = f"(in {bridge['units']:,}{f' of {units:,} passages' if not described else ''})"
        if bridge["kind"] == "mentions":
            described.append(f"it mentions {name}, the subject there {count}")
        elif bridge["kind"] == "mentioned":
            described.append(f"{name}, its subject, is mentioned there {count}")
        elif is_both:
            described[-1] += f" and {name} {count}"
        else:
            described.append(f"both mention {name} {count}")
            is_both = True
    return "; ".join(described)
