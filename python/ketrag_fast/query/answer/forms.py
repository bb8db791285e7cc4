"""Forms of an answer: free text; yes, no or maybe; a ranking of options."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from ketrag_fast.errors import ConfigError

Kind = Literal["free", "yes-no", "choice"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)
LETTERS: Final = string.ascii_lowercase
BEGIN: Final[dict[str, str]] = {
    "free": "Begin with the answer: a word, a phrase or a few short sentences. Do not tell how you found it.",
    "yes-no": "Begin with one word: Yes or No, or Maybe where the passages leave it open. After it say in a "
    "sentence or two why.",
    "choice": "Options with letters follow the question. Begin with all of the letters in square brackets, "
    "the best answer first, as in [c,a,d,b]; leave none out, whatever the passages say of it. After "
    "that say in a sentence or two why the first is the answer.",
}
"""Instruction for the beginning of a reply, by kind."""
_BRACKETS: Final = re.compile(r"\[\s*([a-z](?:\s*[,;>]\s*[a-z])*)\s*\]", re.IGNORECASE)
_LONE: Final = re.compile(r"(?<![^\W_])\(?([a-z])[).:]|\boption\s+([a-z])\b|^\W*([a-z])\W*$", re.IGNORECASE)
_DECISION: Final = re.compile(r"\b(yes|no|maybe)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Form:
    """The form of an answer, and the options of a choice."""

    kind: Kind = "free"
    options: tuple[str, ...] = ()

    def question(self, text: str) -> str:
        """Return the question followed by its options."""
        rows = (f"({letter}) {' '.join(o.split())}" for letter, o in zip(LETTERS, self.options, strict=False))
        return "\n".join([text, *rows])

    def decision(self, reply: str) -> str | None:
        """Return the first yes, no or maybe in a reply; None without one, or for other kinds."""
        found = _DECISION.search(reply) if self.kind == "yes-no" else None
        return None if found is None else found[1].lower()

    def ranking(self, reply: str) -> tuple[str, ...] | None:
        """Return the letters of all options, best first; None for other kinds."""
        return None if self.kind != "choice" else ranking(reply, len(self.options))


FREE: Final = Form()


def form_of(kind: str | None, options: Sequence[str]) -> Form:
    """Return the form of a kind and options; options without a kind make it a choice.

    Raises ConfigError if kind and options do not fit together.
    """
    given = tuple(options)
    if isinstance(options, str) or not all(isinstance(option, str) and option.strip() for option in given):
        raise ConfigError("options must be a list of non-empty texts")
    chosen = kind if kind is not None else "choice" if given else "free"
    if chosen not in KINDS:
        raise ConfigError(f"kind must be one of {', '.join(KINDS)}, not {chosen!r}")
    if chosen == "choice" and not 2 <= len(given) <= len(LETTERS):
        raise ConfigError(
            f"a choice needs 2 to {len(LETTERS)} options, not {len(given)}",
            hint="give --option TEXT for each",
        )
    if chosen != "choice" and given:
        raise ConfigError(f"a question of kind {chosen} has no options")
    return Form(chosen, given)  # type: ignore[arg-type] # one of KINDS


def ranking(reply: str, count: int) -> tuple[str, ...]:
    """Return the letters of `count` options as a reply ranks them.

    Letters in brackets count, else letters that appear alone. Missing letters follow in alphabetical order.
    """
    letters = LETTERS[:count]
    found = _BRACKETS.search(reply)
    if found is not None:
        named = re.findall(r"[a-z]", found[1].lower())
    else:
        marks = (next(filter(None, match.groups())) for match in _LONE.finditer(reply))
        named = [mark.lower() for mark in marks]
    ranked = [letter for letter in dict.fromkeys(named) if letter in letters]
    return (*ranked, *(letter for letter in letters if letter not in ranked))
