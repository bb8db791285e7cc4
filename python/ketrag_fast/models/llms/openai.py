"""`openai:MODEL@URL`: any local or remote endpoint with OpenAI's chat completions API.

The features of an endpoint are detected and cached: structured output by schema, else JSON mode, else plain
text, and the parameters that it rejects. Several requests run at once. A failing prompt gives a reply with an
error; only errors that affect every prompt are raised.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Final

from ketrag_fast.errors import BackendError, Cancelled, ConfigError
from ketrag_fast.models.http.client import Client, RefusedError, TooLongError, UnreachableError, in_threads
from ketrag_fast.models.http.connections import Connections
from ketrag_fast.models.http.endpoints import RetryPolicy, endpoint, key_for, options_of, parts_of, weight
from ketrag_fast.models.llms.openai_messages import (
    EMPTY,
    FORMS,
    ReplyPart,
    context_of,
    fingerprint,
    less,
    list_names,
    piece,
    request_body,
    whole,
)
from ketrag_fast.models.llms.protocol import Cancel, Finish, Limits, ModelIdentity, ModelReply, Prompt
from ketrag_fast.models.llms.registry import ModelOptions
from ketrag_fast.models.spending import Account, LimitReachedError
from ketrag_fast.records import replace
from ketrag_fast.secrets import Cover

CONCURRENCY: Final = 4
LEAST_SECONDS: Final = 0.1
LONGEST_SECONDS: Final = 600.0
"""Default timeout of a reply: a server that does not stream is silent until it is done."""
IN_A_ROW: Final = 3
"""After this many failures in a row, the endpoint is at fault and not the prompts."""
_BASE_BYTES: Final = 1_000_000
_TOKEN_BYTES: Final = 64
_LIST_BYTES: Final = 4_000_000
LIST_SECONDS: Final = 10.0
"""Timeout for the list of models over all attempts: endpoints without it may still work."""
_SHOWN: Final = 8


class _TimeUpError(Exception):
    """The time limit of a reply is reached."""


class _StoppedError(Exception):
    """The caller cancelled the replies."""


def open_model(spec: str, rest: str, options: ModelOptions) -> OpenAIModel:
    """Open the model of a spec."""
    return OpenAIModel(spec, options)


class OpenAIModel:
    """An LLM behind an endpoint. Opening it requests the list of models.

    Raises ConfigError (address), NetworkForbidden, BackendError (connection, key, model), and Cancelled if
    the option `cancel` returns True.
    """

    def __init__(self, spec: str, options: ModelOptions | None = None) -> None:
        options = options or ModelOptions()
        self._model, url = parts_of(spec)
        if options_of(spec) is not None:
            raise ConfigError(f"{spec[:200]!r}: a language model has no options after #")
        place = endpoint(url, offline=options.offline)
        place = replace(place, base=place.base.removesuffix("/chat/completions"))
        self._key = key_for(place.host, place.scheme)
        self._retry = options.retry or RetryPolicy()
        self.connections = Connections(place)
        self._path, self._models_path = place.path("/chat/completions"), place.path("/models")
        self.account = options.account or Account()
        self._slots = options.slots or CONCURRENCY
        self._known: tuple[int, frozenset[str]] = (0, frozenset())
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._served, context = self._look(options.cancel)
        self.identity = ModelIdentity(
            spec, fingerprint(self._model), options.context or context, {"endpoint": place.netloc}
        )

    # ------------------------------------------------------------ the protocol

    def count(self, text: str) -> int:
        """Return the estimated number of tokens; for most languages it is too high rather than too low."""
        return weight(text)

    def room(self, prompt: Prompt) -> int | None:
        """See the protocol; None if the endpoint does not report the context size."""
        if self.identity.context is None:
            return None
        return self.identity.context - self._weight(prompt)

    def replies(
        self, prompts: Iterable[Prompt], limits: Limits, cancel: Cancel | None = None
    ) -> Generator[ModelReply, None, None]:
        """See the protocol. Raises LimitReachedError before a request that might exceed the spending limit,
        after the running requests have been yielded.
        """
        source = iter(prompts)
        began: dict[int, float] = {}  # of the running prompts
        stop = threading.Event()
        failures = 0
        ending: BackendError | None = None

        def waiting() -> Iterator[Prompt]:
            while ending is None and (prompt := next(source, None)) is not None:
                began[prompt.number] = time.monotonic()
                yield prompt

        def alive() -> None:
            if cancel is not None and cancel():
                raise _StoppedError

        def ask(prompt: Prompt) -> ModelReply:
            return self._reply(prompt, limits, stop)

        try:
            for prompt, done in in_threads(ask, waiting(), self._slots, self._slots, alive):
                del began[prompt.number]
                try:
                    reply = done.result()
                except LimitReachedError as error:
                    ending = error
                    continue
                failures = failures + 1 if reply.finish == "error" and not reply.tokens_in else 0
                yield reply
                if failures >= IN_A_ROW:
                    raise BackendError(
                        f"{failures} requests in a row failed, last: {reply.error}",
                        hint="see the server's log; finished work is kept",
                    )
        except _StoppedError:
            stop.set()
            for number, start in began.items():
                yield ModelReply(number, "", "cancelled", seconds=time.monotonic() - start)
            return
        finally:  # an error or cancellation ends the rest without waiting
            stop.set()
        if ending is not None:
            raise ending

    def stream(
        self, prompt: Prompt, limits: Limits, cancel: Cancel | None = None
    ) -> Iterator[str | ModelReply]:
        """See the protocol. `limits.seconds` includes connecting, all attempts and all pauses."""
        began = time.monotonic()
        said: list[str] = []

        def stopped() -> None:
            self._alive()
            if cancel is not None and cancel():
                raise Cancelled("the model was stopped")
            if limits.seconds is not None and time.monotonic() - began > limits.seconds:
                raise _TimeUpError

        try:
            for part in self._stream(prompt, limits, stopped):
                if isinstance(part, str):
                    said.append(part)
                yield part
        except Cancelled:
            yield ModelReply(prompt.number, "".join(said), "cancelled", seconds=time.monotonic() - began)

    def close(self) -> None:
        """Cancel requests in progress and close all connections."""
        self._closed.set()
        self.connections.close()

    # ------------------------------------------------------------ one request

    def _reply(self, prompt: Prompt, limits: Limits, stop: threading.Event) -> ModelReply:
        """Return the reply to a prompt; raise errors that affect every prompt."""
        began = time.monotonic()

        def failed(finish: Finish, error: str | None) -> ModelReply:
            return ModelReply(prompt.number, "", finish, seconds=time.monotonic() - began, error=error)

        try:
            part = self._whole_reply(prompt, limits, stop)
        except _TimeUpError:
            return failed("time", None)
        except Cancelled:
            return failed("cancelled", None)
        except (LimitReachedError, UnreachableError):
            raise
        except RefusedError as error:
            if error.status in (401, 402, 403, 404):
                raise self._explained(error) from error
            return failed("error", str(error))
        except TooLongError as error:  # affects this prompt only
            return replace(failed("error", str(error)), tokens_in=self._weight(prompt))
        except BackendError as error:
            return failed("error", str(error))
        return ModelReply(
            prompt.number,
            part.text,
            part.finish,
            part.tokens_in or self._weight(prompt),
            weight(part.text) if part.tokens_out is None else part.tokens_out,
            part.shared,
            time.monotonic() - began,
            part.error,
        )

    def _whole_reply(self, prompt: Prompt, limits: Limits, stop: threading.Event) -> ReplyPart:
        client = self._client(limits)
        stopped = self._stopper(client, limits, stop)
        booked = self._weight(prompt)
        self.account.book(booked, limits.tokens)
        part = None
        size = _BASE_BYTES + limits.tokens * _TOKEN_BYTES
        form, spared = self._known
        try:
            while True:
                body = request_body(self._model, prompt, limits, FORMS[form], spared, streamed=False)
                try:
                    part = whole(client.post(body, size, stopped))
                    self._learn(form, spared)
                    return part
                except RefusedError as error:
                    form, spared = less(error, form, spared, body)
        finally:
            sent, received = (part.tokens_in, part.tokens_out) if part else (0, 0)
            self.account.settle(booked, sent, limits.tokens, received)

    def _stream(
        self, prompt: Prompt, limits: Limits, stopped: Callable[[], None]
    ) -> Iterator[str | ModelReply]:
        began = time.monotonic()
        client = self._client(limits)
        booked = self._weight(prompt)
        self.account.book(booked, limits.tokens)
        said: list[str] = []
        cover = Cover()  # a key may be split between events
        finish: Finish = "stop"
        usage = ReplyPart("", "stop", None, None)
        size = _BASE_BYTES + limits.tokens * 16 * _TOKEN_BYTES  # one event per token
        try:
            form, spared = self._known
            while True:
                body = request_body(self._model, prompt, limits, FORMS[form], spared, streamed=True)
                try:
                    for event in client.events(body, size, stopped):
                        part = piece(event)
                        if part.tokens_in is not None:
                            usage = part
                        finish = part.finish if part.finish != "stop" else finish
                        if text := cover.feed(part.text):
                            said.append(text)
                            yield text
                    self._learn(form, spared)
                    break
                except RefusedError as error:
                    form, spared = less(error, form, spared, body)
        except _TimeUpError:
            finish = "time"
        except RefusedError as error:
            raise self._explained(error) from error
        finally:
            sent, received = usage.tokens_in, usage.tokens_out
            self.account.settle(
                booked, sent, limits.tokens, weight("".join(said)) if received is None else received
            )
        if text := cover.finish():
            said.append(text)
            yield text
        text = "".join(said)
        out = weight(text) if usage.tokens_out is None else usage.tokens_out
        problem = None if text.strip() or finish == "time" else EMPTY
        yield ModelReply(
            prompt.number,
            text,
            "error" if problem else finish,
            booked if usage.tokens_in is None else usage.tokens_in,
            out,
            usage.shared,
            time.monotonic() - began,
            problem,
        )

    def _learn(self, form: int, spared: frozenset[str]) -> None:
        """Remember the features that a successful request had to leave out. A rejected request teaches
        nothing, because its prompt may be the reason.
        """
        with self._lock:
            known, missing = self._known
            self._known = max(known, form), missing | spared

    # ------------------------------------------------------------ the endpoint

    def _look(self, cancel: Cancel | None) -> tuple[tuple[str, ...], int | None]:
        """Return the models that the endpoint lists, and the context size of ours, if reported."""
        once = replace(
            self._retry,
            attempts=min(self._retry.attempts, 2),
            timeout=min(self._retry.timeout, LIST_SECONDS),
        )
        client = Client(self.connections, self._models_path, self._key, once)
        end = time.monotonic() + LIST_SECONDS

        def stopped() -> None:
            if cancel is not None and cancel():
                raise Cancelled("opening the model was stopped")
            if time.monotonic() > end:
                raise _TimeUpError

        try:
            found = client.get(_LIST_BYTES, stopped)
        except _TimeUpError:
            return (), None
        except UnreachableError:
            raise
        except RefusedError as error:
            if error.status in (401, 403):
                raise
            return (), None
        except BackendError:
            return (), None
        data = found.get("data") if isinstance(found, dict) else None
        entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
        named = {str(entry.get("id")): entry for entry in entries if entry.get("id")}
        served = tuple(named)
        mine = next((name for name in served if name in (self._model, f"{self._model}:latest")), None)
        if served and mine is None:
            raise BackendError(
                f"{self.connections.place.netloc} does not serve the model {self._model}",
                hint=f"it serves {list_names(served)}",
            )
        return served, context_of(named[mine]) if mine is not None else None

    def _explained(self, error: RefusedError) -> BackendError:
        if error.status == 404 and self._served:
            return RefusedError(str(error), 404, hint=f"the endpoint serves {list_names(self._served)}")
        return error

    def _stopper(self, client: Client, limits: Limits, stop: threading.Event) -> Callable[[], None]:
        def stopped() -> None:
            if stop.is_set() or self._closed.is_set():
                raise Cancelled("the model was stopped")
            # Pauses between attempts do not count as seconds of a reply.
            if limits.seconds is not None and client.spent > limits.seconds:
                raise _TimeUpError

        return stopped

    def _alive(self) -> None:
        if self._closed.is_set():
            raise Cancelled("the model was closed")

    def _client(self, limits: Limits) -> Client:
        seconds = LONGEST_SECONDS if limits.seconds is None else max(limits.seconds, LEAST_SECONDS)
        return Client(self.connections, self._path, self._key, replace(self._retry, timeout=seconds))

    def _weight(self, prompt: Prompt) -> int:
        parts = [prompt.instructions, prompt.text, *(part for turn in prompt.turns for part in turn)]
        return sum(map(weight, parts)) + 8 * (len(parts) + 1)
