"""A task: one kind of LLM request, declared as data.

A task defines the instructions, the schema of the reply, its parser and its storage key; `tasks.driver` runs
it. To add one, write a module that creates a `Task`:

    TITLE = Task(name="title", version=1, instructions="Give the text a title. ...", text=str,
                 parse=json_parser(lambda value, text: value.get("title")), schema={...})

The input of a task (a chunk, two answers, a name with its lines) is its *subject*.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from ketrag_fast.models.llms.protocol import Limits, Prompt
from ketrag_fast.records import dataclass, field, replace
from ketrag_fast.storage.journal import KeptReply, Verdict, reply_key

S = TypeVar("S")
V = TypeVar("V")

LEAST_ROOM: Final = 128
"""Minimum room for a reply in tokens; with less it would be useless."""


@dataclass(frozen=True, slots=True)
class ParsedReply(Generic[V]):
    """A parsed reply. `how` is "clean" if it had the requested form, "repaired" if it had to be repaired;
    `count` is the number of entities (or other items) in it.
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
    """The declaration of a task. Raise `version` when `parse` changes: stored replies are then parsed again.
    A changed prompt or schema needs no new version, because both are part of the reply key.
    """

    name: str
    version: int
    instructions: str
    """Equal for all subjects, so that a model evaluates it once."""
    text: Callable[[S], str]
    """Returns the first prompt about a subject."""
    parse: Callable[[S, str, str], ParsedReply[V] | None]
    """Parses (subject, reply, finish reason); returns None for an unusable reply. Replies are untrusted: a
    parser accepts any text and never raises.
    """
    schema: Mapping[str, Any] | None = None
    """A JSON schema that constrains decoding; None for free text."""
    parts: Callable[[S], tuple[str, ...]] = lambda subject: (str(subject),)
    """Returns what identifies a subject: its part of the key."""
    tokens: int = 512
    seconds: float | None = 120.0
    """Maximum duration of a reply."""
    more: Callable[[S, Sequence[KeptReply]], bool] = _one_turn
    """Returns whether another turn is needed after the usable replies of the earlier turns."""
    turn: Callable[[S, Sequence[KeptReply]], Prompt] | None = None
    """Returns the prompt after the usable replies of the earlier turns, for tasks with several turns."""
    attempts: tuple[int, int] = (2, 2)
    """Maximum number of replies to the first turn and to each later one, usable or not."""
    calls: int = 2
    """Maximum number of calls per run and turn, including failed ones."""
    again: str = ""
    """Added to a prompt after an unusable reply: the same prompt would give the same reply."""
    subject: str = "the text"
    """For messages: the name of the input."""
    activity: str = "asking a language model"
    """For messages: the activity that was stopped."""
    go_on: str = "run the same command again"
    """For messages: how to resume."""
    dump: Callable[[V], str] = _dump
    load: Callable[[str], V | None] = json.loads
    """Serialise a parsed reply, and load it; None if it is damaged."""
    whole_key: Callable[[S], bytes] | None = None
    """Returns the key of a reply, if it is not made of name, prompt and `parts`."""

    @cached_property
    def mark(self) -> str:
        """A hash of instructions and schema."""
        whole = f"{self.instructions}\x1f{json.dumps(self.schema)}"
        return hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()

    def key(self, subject: S) -> bytes:
        """Return the key under which replies about a subject are stored."""
        if self.whole_key is not None:
            return self.whole_key(subject)
        return reply_key(self.name, self.mark, *self.parts(subject))

    @property
    def limits(self) -> Limits:
        """The limits of one reply."""
        return Limits(self.tokens, self.seconds, self.schema)

    def prompt(self, subject: S, earlier: Sequence[KeptReply] = ()) -> Prompt:
        """Return the next prompt about a subject."""
        if self.turn is not None:
            return self.turn(subject, earlier)
        return Prompt(0, self.instructions, self.text(subject))

    def judged(self, subject: S, reply: KeptReply) -> tuple[KeptReply, V | None]:
        """Return the reply with the verdict of the current parser, and its value."""
        found = None if reply.finish == "error" else self.parse(subject, reply.text, reply.finish)
        how: Verdict = "unusable" if found is None else found.how
        count, records = (0, "") if found is None else (found.count, self.dump(found.value))
        judged = reply._replace(verdict=how, entities=count, parser=self.version, records=records)
        return judged, None if found is None else found.value

    def value(self, subject: S, reply: KeptReply) -> V | None:
        """Return the value of a stored reply."""
        if reply.parser == self.version and reply.usable and reply.records:
            try:
                known = self.load(reply.records)
            except (ValueError, RecursionError):
                known = None
            if known is not None:
                return known
        found = None if reply.finish == "error" else self.parse(subject, reply.text, reply.finish)
        return None if found is None else found.value


@dataclass(eq=False)
class Item(Generic[S, V]):
    """A subject of a task with all replies so far, and the next request.

    A failed call is retried in the next run; an unusable reply is retried as often as the task allows, over
    all runs. `again` ignores that limit for the first turn.
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
        """The first usable reply of each turn, up to the first turn without one."""
        by_turn = {reply.turn: reply for reply in reversed(self.kept) if reply.usable}
        return [by_turn[turn] for turn in range(len(by_turn)) if turn in by_turn]

    @property
    def values(self) -> list[V]:
        """The values of the answers."""
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
        """Whether the first turn has used up its attempts."""
        return self._answered(0) >= self.task.attempts[0]

    @property
    def whole(self) -> bool:
        """Whether every turn has its answer."""
        answers = self.answers
        return bool(answers) and not self.task.more(self.about, answers)

    def next(self) -> tuple[int, int] | None:
        """Return the next (turn, attempt), or None if there is nothing to request in this run."""
        answers = self.answers
        turn = len(answers)
        if not self.task.more(self.about, answers) or self.calls[turn] >= self.task.calls:
            return None
        if self._answered(turn) >= self.task.attempts[min(turn, 1)] and not (self.again and turn == 0):
            return None
        return turn, max((reply.attempt for reply in self.kept if reply.turn == turn), default=0) + 1

    def prompt(self, number: int) -> Prompt:
        """Return the next prompt, extended after an unusable reply."""
        answers = self.answers
        prompt = replace(self.task.prompt(self.about, answers), number=number)
        if self.task.again and self._answered(len(answers)):
            prompt = replace(prompt, text=prompt.text + self.task.again)
        return prompt

    def _answered(self, turn: int) -> int:
        return sum(1 for reply in self.kept if reply.turn == turn and reply.finish != "error")


def object_schema(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has these fields and no others."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }
