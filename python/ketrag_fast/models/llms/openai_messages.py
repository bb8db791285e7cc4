"""Build the requests to a chat endpoint and parse its replies; malformed replies become errors."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from ketrag_fast.errors import BackendError
from ketrag_fast.models.http.client import RefusedError
from ketrag_fast.models.llms.protocol import Finish, Limits, Prompt
from ketrag_fast.records import dataclass, replace

_SHOWN: Final = 8
FORMS: Final = ("json_schema", "json_object", "text")
"""Response formats, the strictest first."""
SPARE: Final = ("max_tokens", "temperature", "seed", "stream_options")
"""Parameters that some endpoints reject and that can be left out or replaced."""


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """A reply or an event of it; counts are None if unknown."""

    text: str
    finish: Finish
    tokens_in: int | None
    tokens_out: int | None
    shared: int = 0
    error: str | None = None


def request_body(
    model: str, prompt: Prompt, limits: Limits, form: str, spared: Collection[str], *, streamed: bool
) -> dict[str, Any]:
    """Return the body of a request with the given response format and without the `spared` parameters."""
    messages = [
        {"role": "system", "content": prompt.instructions},
        {"role": "user", "content": prompt.text},
    ]
    for reply, question in prompt.turns:
        messages.append({"role": "assistant", "content": reply})
        messages.append({"role": "user", "content": question})
    body: dict[str, Any] = {"model": model, "messages": messages, "temperature": 0, "seed": 1}
    body["max_completion_tokens" if "max_tokens" in spared else "max_tokens"] = limits.tokens
    if limits.schema is not None and form == "json_schema":
        schema = {"name": "reply", "strict": True, "schema": dict(limits.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif limits.schema is not None and form == "json_object":
        body["response_format"] = {"type": "json_object"}
    if streamed:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return {name: value for name, value in body.items() if name not in spared}


def less(
    error: RefusedError, form: int, spared: frozenset[str], body: Mapping[str, Any]
) -> tuple[int, frozenset[str]]:
    """Return the response format and the parameters to leave out after a rejection; re-raise other errors."""
    plain = str(error).lower()
    if error.status in (400, 404, 415, 422, 501):
        named = next((name for name in SPARE if name in plain and name in body), None)
        if named is not None:
            return form, spared | {named}
        about_form = any(word in plain for word in ("response_format", "schema", "json", "grammar", "format"))
        if "response_format" in body and (about_form or "model" not in plain):
            return form + 1, spared
    raise error


EMPTY: Final = "an empty reply (a model that thinks first may have spent its tokens on that)"


def whole(reply: Any) -> ReplyPart:
    """Parse the first choice of a complete reply; malformed replies become errors."""
    found = piece(reply, "message")
    if found.error is None and not found.text.strip():
        return replace(found, finish="error", error=EMPTY)
    return found


def piece(event: Any, holder: str = "delta") -> ReplyPart:
    """Parse an event of a stream (or a complete reply, `holder="message"`). Raises BackendError for an event
    with an error.
    """
    usage = event.get("usage") if isinstance(event, dict) else None
    counts = [_natural(usage.get(n)) if isinstance(usage, dict) else None for n in _COUNTS]
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    shared = _natural(details.get("cached_tokens")) if isinstance(details, dict) else None
    part = ReplyPart("", "stop", counts[0], counts[1], shared or 0)
    choices = event.get("choices") if isinstance(event, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        if holder == "delta" and isinstance(event, dict) and "error" not in event:
            return part  # only usage, or a keep-alive
        problem = event.get("error") if isinstance(event, dict) else None
        text = f"the reply says: {str(problem)[:300]}" if problem else "a reply without choices"
        if holder == "delta":
            raise BackendError(text)
        return replace(part, finish="error", error=text)
    choice = choices[0]
    message = choice.get(holder) or choice.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    reason = choice.get("finish_reason")
    finish: Finish = "length" if reason == "length" else "stop"
    if reason == "content_filter" and not content:
        return replace(part, finish="error", error="the endpoint's filter withheld the reply")
    return replace(part, text=content if isinstance(content, str) else "", finish=finish)


_COUNTS: Final = ("prompt_tokens", "completion_tokens")


def _natural(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 40 else None


def context_of(entry: Mapping[str, Any]) -> int | None:
    """Return the context size of a model as reported by vLLM, the llama.cpp server and others."""
    meta = entry.get("meta")
    inner = meta.get("n_ctx") if isinstance(meta, dict) else None
    sizes = (entry.get("max_model_len"), entry.get("context_length"), inner)
    return next((size for size in map(_natural, sizes) if size), None)


def list_names(names: Iterable[str]) -> str:
    """Return the first model names, for a message."""
    every = list(names)
    text = ", ".join(name[:80] for name in every[:_SHOWN])
    return text if len(every) <= _SHOWN else f"{text} and {len(every) - _SHOWN} more"


def fingerprint(model: str) -> str:
    """Return the fingerprint of a model behind an endpoint, which depends on its name only."""
    return hashlib.sha256(f"openai chat/1\n{model}".encode()).hexdigest()
