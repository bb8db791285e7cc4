"""Register the API keys of endpoints, and redact them from all output.

A key is registered when it is read. All output of the package passes through `redact_all`: messages and
hints of typed errors, replies of endpoints, lines on the screen.
"""

from __future__ import annotations

import re
import threading
from typing import Any, Final

HIDDEN: Final = "[key]"
_WORD: Final = re.compile(r".{0,5}|[A-Za-z]{0,7}")
"""Keys that are not redacted: short words ("none", "ollama") that local servers expect and that also occur in
ordinary texts."""

_PASSWORD: Final = re.compile(r"(?<=://)[^/?#\s'\"]*@")
_IN_QUERY: Final = re.compile(
    r"([?&](?:[\w-]*(?:key|token|secret|password|signature)|sig|code)=)[^&#\s'\"]+", re.IGNORECASE
)
_UNSEEN: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_lock = threading.Lock()
_forms: tuple[str, ...] = ()


class Key:
    """An API key, which is only revealed in its HTTP header."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        """Register the key."""
        global _forms
        self._text = text
        if not _WORD.fullmatch(text):
            import base64  # imported here so that programs without endpoints start fast
            import json
            from urllib.parse import quote

            with _lock:
                forms = {*_forms, text, quote(text, safe=""), json.dumps(text)[1:-1], repr(text)[1:-1]}
                forms.add(base64.b64encode(text.encode()).decode().rstrip("="))
                _forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))

    def header(self) -> bytes:
        """Return the value of an Authorization header."""
        return b"Bearer " + self._text.encode("ascii")

    def __repr__(self) -> str:
        return HIDDEN

    def __reduce__(self) -> Any:
        raise TypeError("a key cannot be pickled")


def redact_all(text: str) -> str:
    """Redact every key that this process has read, and passwords and keys in URLs."""
    text = redact(text)
    if "://" in text:
        text = _PASSWORD.sub(f"{HIDDEN}@", text)
    return _IN_QUERY.sub(rf"\1{HIDDEN}", text) if "=" in text else text


def without_keys(data: Any) -> Any:
    """Redact keys in parsed JSON, including object names. Lists of numbers, such as vectors, are skipped."""
    if isinstance(data, str):
        return redact(data)
    if isinstance(data, list):
        return data if data and type(data[0]) in (int, float) else [without_keys(part) for part in data]
    if isinstance(data, dict):
        return {redact(name): without_keys(value) for name, value in data.items()}
    return data


def redact_bytes(content: bytes) -> bytes:
    """Redact keys in bytes that an endpoint sent."""
    for form in _forms:
        plain = form.encode()
        if plain in content:
            content = content.replace(plain, HIDDEN.encode())
    return content


def redact(text: str) -> str:
    """Redact every key that this process has read; for texts without URLs."""
    for form in _forms:
        text = text.replace(form, HIDDEN)
    if _forms and _UNSEEN.search(text):  # a viewer that drops invisible characters would show the key
        plain = _UNSEEN.sub("", text)
        if any(form in plain for form in _forms):
            return redact(plain)
    return text


class Cover:
    """Redacts keys in a text that arrives in pieces; a possible beginning of a key is held back."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Take a piece, and return the text up to the first possible beginning of a key."""
        text = redact(self._held + piece)
        longest = max((_overlap(text, form) for form in _forms), default=0)
        self._held = text[len(text) - longest :]
        return text[: len(text) - longest]

    def finish(self) -> str:
        """Return the text held back so far; call it at the end."""
        text, self._held = self._held, ""
        return text


def _overlap(text: str, form: str) -> int:
    """Return the length of the longest suffix of the text that is a prefix of `form`."""
    return next((n for n in range(min(len(text), len(form) - 1), 0, -1) if form.startswith(text[-n:])), 0)
