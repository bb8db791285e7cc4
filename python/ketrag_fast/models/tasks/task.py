"""A task: one kind of question to a language model, declared as data.

A task says what the model is told, which form its reply must have, how a reply is read, and under which key
it is kept. It asks nobody: `tasks.driver` does. To add one, write a file that makes a `Task`:

    TITLE = Task(name="title", version=1, instructions="Give the text a title. ...", text=str,
                 parse=json_parser(lambda value, text: value.get("title")), schema={...})

What a task is asked about (a chunk, two answers, a name with its lines) is its *subject*.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from ketrag_fast.models.llms.protocol import Limits, Prompt
from ketrag_fast.storage.journal import KeptReply, Verdict, reply_key

S = TypeVar("S")
V = TypeVar("V")

LEAST_ROOM: Final = 128
"""Tokens that a reply must have room for; with less it would hold nothing whole."""


@dataclass(frozen=True, slots=True)
class ParsedReply(Generic[V]):
    """What a parser found in a reply. `how` is "clean" where the reply had the form that was asked for, and
    "repaired" where it was mended; `count` is the number of entities (or whatever is counted) in it.
    """

    value: V
    how: Verdict = "clean"
    count: int = 0


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _one_turn(subject: Any, earlier: Sequence[KeptReply]) -> bool:
    return not earlier


@dataclass(frozen=True)
class Task(Generic[S, V]):
    """The declaration. Raise `version` when `parse` reads some reply differently: kept replies are then read
    anew. Another prompt or schema needs no version: both are a part of the key of a reply.
    """

    name: str
    version: int
    instructions: str
    """The same for all subjects, so that a model evaluates it once."""
    text: Callable[[S], str]
    """The first question about a subject."""
    parse: Callable[[S, str, str], ParsedReply[V] | None]
    """(subject, reply, why it ended) to what is in it, or None where it is of no use. Replies are a
    stranger's words: a parser takes any text and never raises.
    """
    schema: Mapping[str, Any] | None = None
    """A JSON schema that decoding is held to; None for free text."""
    parts: Callable[[S], tuple[str, ...]] = lambda subject: (str(subject),)
    """What makes one subject differ from another: its part of the key."""
    tokens: int = 512
    seconds: float | None = 120.0
    """Of one reply, at most."""
    more: Callable[[S, Sequence[KeptReply]], bool] = _one_turn
    """Whether there is something to ask after the usable replies of the earlier turns."""
    turn: Callable[[S, Sequence[KeptReply]], Prompt] | None = None
    """The prompt that follows the usable replies of the earlier turns; for tasks of several turns."""
    attempts: tuple[int, int] = (2, 2)
    """Usable or not, how many replies the first turn is worth, and each later one."""
    calls: int = 2
    """Calls that one run makes for one turn, failed ones included."""
    again: str = ""
    """Added to a question whose last reply could not be used: the same words would bring the same reply."""
    subject: str = "the text"
    """For messages: what does not fit a model's context, say."""
    activity: str = "asking a language model"
    """For messages: what was stopped."""
    go_on: str = "run the same command again"
    """For messages: how to continue."""
    dump: Callable[[V], str] = _dump
    load: Callable[[str], V | None] = json.loads
    """How a parsed reply is kept, and read back; None for what is damaged."""
    whole_key: Callable[[S], bytes] | None = None
    """The key of a reply where it is not made of name, prompt and `parts`."""

    @cached_property
    def mark(self) -> str:
        """A hash of all that the model is told beside the subject."""
        whole = f"{self.instructions}\x1f{json.dumps(self.schema)}"
        return hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()

    def key(self, subject: S) -> bytes:
        """Under which the replies about a subject are kept."""
        if self.whole_key is not None:
            return self.whole_key(subject)
        return reply_key(self.name, self.mark, *self.parts(subject))

    @property
    def limits(self) -> Limits:
        """Of one reply."""
        return Limits(self.tokens, self.seconds, self.schema)

    def prompt(self, subject: S, earlier: Sequence[KeptReply] = ()) -> Prompt:
        """The next question about a subject."""
        if self.turn is not None:
            return self.turn(subject, earlier)
        return Prompt(0, self.instructions, self.text(subject))

    def judged(self, subject: S, reply: KeptReply) -> tuple[KeptReply, V | None]:
        """The reply as the parser of today sees it, and what is in it."""
        found = None if reply.finish == "error" else self.parse(subject, reply.text, reply.finish)
        how: Verdict = "unusable" if found is None else found.how
        count, records = (0, "") if found is None else (found.count, self.dump(found.value))
        judged = reply._replace(verdict=how, entities=count, parser=self.version, records=records)
        return judged, None if found is None else found.value

    def value(self, subject: S, reply: KeptReply) -> V | None:
        """What is in a kept reply."""
        if reply.parser == self.version and reply.usable and reply.records:
            try:
                known = self.load(reply.records)
            except (ValueError, RecursionError):
                known = None
            if known is not None:
                return known
        return self.judged(subject, reply)[1]


@dataclass(eq=False)
class Item(Generic[S, V]):
    """One subject under a task, with all replies about it so far; what is to be asked about it next.

    A call that failed is tried again in the next run; a reply that could not be used is asked for as often
    as the task allows, whoever runs. `again` forgets this for the first turn.
    """

    task: Task[S, V]
    about: S
    key: bytes
    kept: list[KeptReply] = field(default_factory=list)
    again: bool = False
    calls: Counter[int] = field(default_factory=Counter)
    """Calls of this run, by turn."""

    @property
    def answers(self) -> list[KeptReply]:
        """The usable replies, the first one of each turn, as far as no turn lacks one."""
        by_turn = {reply.turn: reply for reply in reversed(self.kept) if reply.usable}
        return [by_turn[turn] for turn in range(len(by_turn)) if turn in by_turn]

    @property
    def values(self) -> list[V]:
        """What is in these."""
        found = (self.task.value(self.about, reply) for reply in self.answers)
        return [value for value in found if value is not None]

    @property
    def usable(self) -> bool:
        """Whether the first turn has an answer."""
        return any(reply.usable for reply in self.kept if reply.turn == 0)

    @property
    def last(self) -> KeptReply | None:
        """The reply of the first turn that counts: the first usable one, else the last."""
        first = [reply for reply in self.kept if reply.turn == 0]
        return next((reply for reply in first if reply.usable), first[-1] if first else None)

    @property
    def spent(self) -> bool:
        """Whether the first turn was asked as often as it is worth."""
        return self._answered(0) >= self.task.attempts[0]

    @property
    def whole(self) -> bool:
        """Whether every turn has its answer."""
        answers = self.answers
        return bool(answers) and not self.task.more(self.about, answers)

    def next(self) -> tuple[int, int] | None:
        """(turn, attempt) to be asked now; None when there is nothing to ask, for good or in this run."""
        answers = self.answers
        turn = len(answers)
        if not self.task.more(self.about, answers) or self.calls[turn] >= self.task.calls:
            return None
        if self._answered(turn) >= self.task.attempts[min(turn, 1)] and not (self.again and turn == 0):
            return None
        return turn, max((reply.attempt for reply in self.kept if reply.turn == turn), default=0) + 1

    def prompt(self, number: int) -> Prompt:
        """The next question, in other words where a reply to it could not be used."""
        answers = self.answers
        prompt = replace(self.task.prompt(self.about, answers), number=number)
        if self.task.again and self._answered(len(answers)):
            prompt = replace(prompt, text=prompt.text + self.task.again)
        return prompt

    def _answered(self, turn: int) -> int:
        return sum(1 for reply in self.kept if reply.turn == turn and reply.finish != "error")
