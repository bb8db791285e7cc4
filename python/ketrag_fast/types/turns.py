"""One question of a conversation with its answer, from which the next question takes names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ketrag_fast.records import dataclass

MOST_TITLES = 20
MOST_ANSWER = 4000
"""Characters of an answer that a turn keeps."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, its answer, and the titles of documents that the answer is about.

    Attributes:
        question: The question; a follow-up question together with what it took from the turns before it.
        answer: The answer of a model without citation marks, or the quotes.
        titles: Titles of documents that the answer mentions, cites or quotes, in this order.

    Examples:
        >>> turn = index.ask("Who sailed the Fram?").turn
        >>> Turn.from_json(turn.to_json()) == turn
        True
    """

    question: str
    answer: str = ""
    titles: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, an entry of `history` in requests to the service."""
        return {"question": self.question, "answer": self.answer, "titles": list(self.titles)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Turn:
        """Return the turn of a JSON object. Raises ValueError if a field has a wrong type."""
        question, answer, titles = data.get("question"), data.get("answer") or "", data.get("titles") or ()
        is_list = isinstance(titles, (list, tuple)) and all(isinstance(one, str) for one in titles)
        if not isinstance(question, str) or not isinstance(answer, str) or not is_list:
            raise ValueError("a turn has a question, an answer (texts) and titles (a list of texts)")
        return cls(question, answer[:MOST_ANSWER], tuple(titles[:MOST_TITLES]))
