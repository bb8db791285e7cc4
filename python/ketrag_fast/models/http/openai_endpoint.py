"""Shared code for OpenAI-compatible endpoints: parsing `openai:MODEL@URL`, API keys, token estimates."""

from __future__ import annotations

import os
import re
from typing import Final

from ketrag_fast.errors import ConfigError
from ketrag_fast.models.http.addresses import address, is_loopback
from ketrag_fast.secrets import Key

KEY_VARIABLES: Final = ("KETRAG_OPENAI_API_KEY", "OPENAI_API_KEY")
SERVICE_VARIABLE: Final = "KETRAG_TOKEN"
WEIGHT: Final = re.compile(r"[A-Za-z]+|[0-9]|[^\sA-Za-z0-9]")
LETTERS: Final = 6
"""Letters of a word that count as one token."""

_SPEC: Final = re.compile(r"(?P<model>.+?)@(?P<url>https?://[^#]+)(?:#(?P<options>.*))?", re.DOTALL)


def parts_of(spec: str) -> tuple[str, str]:
    """Return (MODEL, URL) of `openai:MODEL@URL` or `openai:MODEL@URL#OPTIONS`.

    Raises ConfigError if the spec has another form, or contains a password or key: specs are stored in
    indexes and recordings.
    """
    found = _match(spec)
    address(found["url"])
    return found["model"], found["url"]


def options_of(spec: str) -> str | None:
    """Return OPTIONS of `openai:MODEL@URL#OPTIONS`, None without them. Raises ConfigError as `parts_of`."""
    options: str | None = _match(spec)["options"]
    return options


def _match(spec: str) -> re.Match[str]:
    found = _SPEC.fullmatch(spec.removeprefix("openai:"))
    if not found or not found["model"].strip():
        raise ConfigError(
            f"{spec[:200]!r} is not openai:MODEL@URL", hint="as in openai:nomic@http://127.0.0.1:8080/v1"
        )
    return found


def address_of(spec: str) -> str | None:
    """Return the address of an `openai:MODEL@URL` spec in one form, however it is written; None for a spec of
    another kind. Raises ConfigError as `parts_of`.
    """
    if not spec.startswith("openai:"):
        return None
    return normalised(parts_of(spec)[1])


def normalised(url: str) -> str:
    """Return the address of an endpoint with its port, in lower case where case has no meaning. Raises
    ConfigError if it is not a valid address.
    """
    place = address(url)
    host = f"[{place.host}]" if ":" in place.host else place.host
    return f"{place.scheme}://{host.lower()}:{place.port}{place.base}{place.query}"


def weight(text: str) -> int:
    """Return the estimated tokens: one per six letters of a word, rounded up, one per other character."""
    return sum(1 + (len(part) - 1) // LETTERS for part in WEIGHT.findall(text))


def key_for(host: str, scheme: str) -> Key | None:
    """Return the API key for a host, or None.

    KETRAG_OPENAI_API_KEY is sent to any endpoint that the user names, OPENAI_API_KEY to OpenAI only. White
    space around a key is ignored. Raises ConfigError, without showing the key, if it has invalid characters
    or would be sent unencrypted.
    """
    key = _read_key(KEY_VARIABLES[0]) or (_read_key(KEY_VARIABLES[1]) if host == "api.openai.com" else None)
    return _sendable(key, "API key", host, scheme)


def token_for(host: str, scheme: str) -> Key | None:
    """Return the token in KETRAG_TOKEN for a service that shares an index, or None.

    Raises ConfigError, without showing the token, if it has invalid characters or would be sent unencrypted.
    """
    return _sendable(_read_key(SERVICE_VARIABLE), "token", host, scheme)


def _sendable(key: Key | None, name: str, host: str, scheme: str) -> Key | None:
    if key is not None and scheme != "https" and not is_loopback(host):
        raise ConfigError(f"the {name} would be sent to {host} unencrypted", hint="use an https address")
    return key


def _read_key(variable: str) -> Key | None:
    text = os.environ.get(variable, "").strip()
    bad = next((place for place, sign in enumerate(text, 1) if not "!" <= sign <= "~"), None)
    if bad is not None:
        raise ConfigError(
            f"the key in {variable} cannot be sent: character {bad} of {len(text)} is not printable ASCII",
            hint="copy the key again; it is one line without blanks",
        )
    return Key(text) if text else None
