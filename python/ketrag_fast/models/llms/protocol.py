"""The interface of LLMs: many prompts in, replies out as they finish.

Replies are untrusted data of any form and length. A failing prompt gives a reply with an error; only errors
that affect every prompt (unknown model, rejected key, spending limit) are raised.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from ketrag_fast.records import asdict, dataclass, field

Cancel = Callable[[], bool]
"""Returns True to cancel; called between tokens, or several times a second for remote models."""

Finish = Literal["stop", "length", "time", "repetition", "cancelled", "error"]
"""Why a reply ended: by itself, at the token limit, at the time limit, because it repeated itself, because it
was cancelled, or because of an error (`ModelReply.error`)."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt. `instructions` are equal for many prompts, so their evaluation can be shared; `text` comes
    last. `turns` are the (reply, question) pairs that follow it in the conversation.
    """

    number: int
    instructions: str
    text: str
    turns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits and the form of a reply.

    `schema` is a JSON schema that constrains decoding if the backend supports it; otherwise the prompt
    requests it. `seconds` counts from the beginning of the prompt's evaluation.
    """

    tokens: int = 2048
    seconds: float | None = 120.0
    schema: Mapping[str, Any] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The reply to the prompt with this `number`; `text` may be partial."""

    number: int
    text: str
    finish: Finish
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_shared: int = 0
    """Tokens of `tokens_in` that were reused from the shared prefix."""
    seconds: float = 0.0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """The identity of a model. Equal fingerprints should mean equal replies."""

    spec: str
    fingerprint: str
    context: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def to_json(self) -> dict[str, Any]:
        """Return the fields for a manifest."""
        return {**asdict(self), "details": dict(self.details)}


class LanguageModel(Protocol):
    """The protocol. One thread at a time; close it when done."""

    @property
    def identity(self) -> ModelIdentity:
        """The identity, available without loading the weights."""

    def count(self, text: str) -> int:
        """Return the token count of a text, or an estimate that is rather too high."""

    def room(self, prompt: Prompt) -> int | None:
        """Return the tokens left for the reply; None if the context size is unknown.

        0 or less if the prompt does not fit.
        """

    def replies(
        self, prompts: Iterable[Prompt], limits: Limits, cancel: Cancel | None = None
    ) -> Generator[ModelReply, None, None]:
        """Yield one reply per prompt, as they finish, in any order. `prompts` is read as slots get free.

        When `cancel` returns True, running replies end as "cancelled", no further prompt is read, and the
        iterator ends. Raises BackendError, BackendMissing, NetworkForbidden.
        """

    def stream(
        self, prompt: Prompt, limits: Limits, cancel: Cancel | None = None
    ) -> Iterator[str | ModelReply]:
        """Yield the pieces of a reply as they are generated, then the complete ModelReply."""

    def close(self) -> None:
        """Release memory and connections."""


@runtime_checkable
class Loadable(Protocol):
    """A model whose weights are loaded on first use, and can be loaded earlier to count the time."""

    def load(self, cancel: Cancel | None = None) -> None:
        """Load the weights now. Raises Cancelled when `cancel` returns True."""
