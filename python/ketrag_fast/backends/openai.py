"""What all backends behind OpenAI-compatible endpoints need: `openai:MODEL@URL`, the key, a text's size."""

from __future__ import annotations

import os
import re
from typing import Final

from ketrag_fast.backends.http import is_loopback
from ketrag_fast.errors import ConfigError

KEY_VARIABLES: Final = ("KETRAG_OPENAI_API_KEY", "OPENAI_API_KEY")
WEIGHT: Final = re.compile(r"[A-Za-z]+|[0-9]|[^\sA-Za-z0-9]")
LETTERS: Final = 6
"""Letters of a word that weigh as much as one token."""

_SPEC: Final = re.compile(r"(?P<model>.+?)@(?P<url>https?://.+)", re.DOTALL)


def parts_of(spec: str) -> tuple[str, str]:
    """(MODEL, URL) of `openai:MODEL@URL`."""
    found = _SPEC.fullmatch(spec.removeprefix("openai:"))
    if not found or not found["model"].strip():
        raise ConfigError(
            f"{spec!r} is not openai:MODEL@URL", hint="as in openai:nomic@http://127.0.0.1:8080/v1"
        )
    return found["model"], found["url"]


def weight(text: str) -> int:
    """Estimated tokens: a word counts one for each six letters begun, any other sign and digit one."""
    return sum(1 + (len(part) - 1) // LETTERS for part in WEIGHT.findall(text))


def key_for(host: str, scheme: str) -> str | None:
    """Ours goes to the endpoint that the spec names; OpenAI's own key to OpenAI alone."""
    own = os.environ.get(KEY_VARIABLES[0])
    key = own or (os.environ.get(KEY_VARIABLES[1]) if host == "api.openai.com" else None)
    if key and scheme != "https" and not is_loopback(host):
        raise ConfigError(f"a key would go to {host} unencrypted", hint="use an https address")
    return key
