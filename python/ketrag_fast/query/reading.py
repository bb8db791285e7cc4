"""How a question is read: the text that passages are ranked by, and similar words for unknown ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ketrag_fast.query.plan import QueryPlan
from ketrag_fast.query.query import core_text
from ketrag_fast.records import dataclass, field, replace
from ketrag_fast.types import Context

_KEYWORDS: Final = 4
"""Words of a query whose unknown words are named next to results. Questions have more words, and often some
that no document has, without a loss; in a few keywords an unknown one explains why the results are poor.
It changes no result, and other numbers were not compared. The service has the same number in `front.rs`.
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """The text that passages are ranked by. `replaced` and `unknown` are those of `Context`."""

    text: str
    replaced: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


def read_question(plan: QueryPlan, question: str) -> Reading:
    """Return the text that passages are ranked by, with similar words for those that no document has."""
    text = core_text(plan.ranked_text(question))
    if plan.literal:
        return Reading(text)
    # A prefix is not a word: a query of prefixes alone has no plain text.
    own = core_text(question if plan.typed is None else plan.typed.text)
    found = plan.opened.searcher.correct(own)
    if found is None:
        return Reading(text)
    words, corrected = found
    replaced = {word: similar for word, similar in words if similar is not None}
    unknown = tuple(word for word, _ in words)
    return Reading(text.replace(own, corrected, 1) if replaced else text, replaced, unknown)


def missing_words(plan: QueryPlan, question: str) -> list[str]:
    """Return all words of a question that no document has; `unknown` of its reading has some of them."""
    own = core_text(question if plan.typed is None else plan.typed.text)
    return [] if plan.literal else plan.opened.searcher.missing_words(own)


def add_reading(plan: QueryPlan, reading: Reading, context: Context) -> Context:
    """Return a context with notes about how its question was read."""
    notes = [f'no "{word}": searched for {similar}' for word, similar in reading.replaced.items()]
    typed = [] if plan.typed is None else plan.typed.notes
    # A note about a field, such as `colour:red`, names the word already.
    if reading.unknown and context.text and not typed:
        notes += [f'no document has "{word}"' for word in _missing(reading)]
    notes += typed
    if plan.continued is not None and plan.continued.taken:
        notes.append(f"continues the conversation: searched with {', '.join(plan.continued.taken)}, too")
    unknown = () if context.text else reading.unknown
    if not notes and not unknown:
        return context
    return replace(context, notes=tuple(notes), replaced=reading.replaced, unknown=unknown)


def _missing(reading: Reading) -> list[str]:
    """Return the words of a query of a few keywords that no document has, if it has others."""
    words = reading.text.split()
    missing = [word for word in reading.unknown if word not in reading.replaced]
    is_question = len(words) > _KEYWORDS or reading.text.endswith(("?", "？"))
    return [] if is_question or len(missing) >= len(words) else missing
