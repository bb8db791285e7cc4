"""Why a passage was found: the question's words that it holds, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ketrag_fast import _core

if TYPE_CHECKING:
    from ketrag_fast.types import Passage


def why(question: str, passage: Passage) -> tuple[dict[str, Any], ...]:
    """One entry for each word of the question that the title or text holds, with its count there."""
    asked = dict.fromkeys(_core.lexical_keywords(question))
    found = _core.lexical_keywords(f"{passage.title}\n{passage.text}")
    counts = {word: found.count(word) for word in asked}
    return tuple({"word": word, "count": count} for word, count in counts.items() if count)
