"""What was asked about one chunk so far, and what is to be asked next.

A first reply that cannot be used is asked for once more, in other words, so that a model without chance
does not say the same again. A call that failed is tried twice in one build, and again in the next. A
gleaning is worth one question: where it fails, the chunk keeps what it has.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from ketrag_fast.backends.llms.protocol import Prompt
from ketrag_fast.extraction.journal import Row
from ketrag_fast.extraction.options import PromptOptions
from ketrag_fast.extraction.prompt import build_prompt, follow_up
from ketrag_fast.extraction.reader import Chunk

ATTEMPTS: Final = 2
_AGAIN: Final = """
An earlier reply to this passage could not be used. Keep to the form, give the twenty most important \
entities and relations at most, and end the reply."""


@dataclass
class Talk:
    """One chunk under one reader. `name` is the chunk's part of the journal's key."""

    chunk: Chunk
    name: bytes
    rows: list[Row]
    gleanings: int = 0
    again: bool = False
    """Replies that could not be used in earlier builds do not count: they are asked for anew."""
    here: Counter[int] = field(default_factory=Counter)
    """Replies by turn in this build."""

    @property
    def usable(self) -> bool:
        """Whether the first question has an answer."""
        return any(row.usable for row in self.rows if row.turn == 0)

    @property
    def last(self) -> Row | None:
        """The reply that counts: the first usable one, else the last."""
        first = [row for row in self.rows if row.turn == 0]
        return next((row for row in first if row.usable), first[-1] if first else None)

    @property
    def spent(self) -> bool:
        """Whether the first question was asked as often as it is worth, whoever builds."""
        return sum(1 for row in self.rows if row.turn == 0 and row.finish != "error") >= ATTEMPTS

    def next(self) -> tuple[int, int] | None:
        """(turn, attempt) to be asked now; None when there is nothing to ask, for good or for this build."""
        for turn in range(self.gleanings + 1):
            mine = [row for row in self.rows if row.turn == turn]
            if any(row.usable for row in mine):
                continue
            attempt = max((row.attempt for row in mine), default=0) + 1
            if turn == 0:
                worth = self.here[0] < ATTEMPTS and (self.again or not self.spent)
                return (turn, attempt) if worth else None
            if self.here[turn] < ATTEMPTS and all(row.finish == "error" for row in mine):
                return turn, attempt
            return None  # later gleanings follow from earlier ones
        return None

    def prompt(self, number: int, turn: int, options: PromptOptions) -> Prompt:
        """The question of that turn."""
        prompt = build_prompt(number, self.chunk.title, self.chunk.text, options)
        if turn == 0:
            unusable = any(row.turn == 0 and row.finish != "error" for row in self.rows)
            return replace(prompt, text=prompt.text + _AGAIN) if unusable else prompt
        for earlier in range(turn):
            text = next(row.text for row in self.rows if row.turn == earlier and row.usable)
            prompt = follow_up(prompt, text)
        return prompt
