"""What a language model is: many prompts in, replies out as they finish.

A reply is data that a stranger wrote: nobody here trusts its form or its length. A prompt that fails
gives a reply that says so; only what would fail every prompt (no such model, a refused key, a limit that
is reached) is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

Cancel = Callable[[], bool]
"""True asks to stop; looked at between tokens, or several times a second where others compute."""

Finish = Literal["stop", "length", "time", "repetition", "cancelled", "error"]
"""Why a reply ended: by itself, at the cap on tokens, at the cap on seconds, because it repeated
itself, because it was told to, or because something failed (`ModelReply.error` says what)."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to a model. `instructions` are the same for many prompts, so that their evaluation
    can be shared; `text` comes last. `turns` are earlier (reply, question) pairs of the same talk.
    """

    number: int
    instructions: str
    text: str
    turns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """What one reply may take, and the form it must have.

    `schema` is a JSON schema: decoding is held to it where the backend can, and asked for where it can't.
    `seconds` counts from when this prompt's evaluation begins.
    """

    tokens: int = 2048
    seconds: float | None = 120.0
    schema: Mapping[str, Any] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What came back for the prompt of that number; `text` is what there was when it ended."""

    number: int
    text: str
    finish: Finish
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_shared: int = 0
    """Of `tokens_in`, those that were not evaluated again because they begin every prompt."""
    seconds: float = 0.0
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As a recording keeps it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Which model it is. Equal fingerprints mean equal replies, as far as the backend can know."""

    spec: str
    fingerprint: str
    context: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def to_json(self) -> dict[str, Any]:
        """For a manifest."""
        return {**asdict(self), "details": dict(self.details)}


class LanguageModel(Protocol):
    """The protocol. One thread at a time; close it when done."""

    @property
    def identity(self) -> ModelIdentity:
        """Known without loading the weights."""

    def count(self, text: str) -> int:
        """Tokens of a text as this model counts them; an estimate that errs upwards where it can't know."""

    def room(self, prompt: Prompt) -> int | None:
        """Tokens left for the reply after this prompt; None where the context's size is not known.

        Zero or less: the prompt does not fit.
        """

    def replies(
        self, prompts: Iterable[Prompt], limits: Limits, cancel: Cancel | None = None
    ) -> Generator[ModelReply, None, None]:
        """One reply for each prompt, as they finish, in any order. `prompts` is read as slots get free.

        Once `cancel` says so, what is under way ends as "cancelled", no further prompt is read, and the
        iterator ends. Raises BackendError, BackendMissing, NetworkForbidden.
        """

    def stream(
        self, prompt: Prompt, limits: Limits, cancel: Cancel | None = None
    ) -> Iterator[str | ModelReply]:
        """The pieces of one reply as they are made, and last the whole ModelReply."""

    def close(self) -> None:
        """Gives back memory and connections."""


@runtime_checkable
class Loadable(Protocol):
    """What a model has beside, if its weights are loaded by the first text: time is then counted for that."""

    def load(self, cancel: Cancel | None = None) -> None:
        """Loads them now; Cancelled where `cancel` says so."""
