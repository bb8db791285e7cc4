"""Keys of endpoints, and the one place that keeps them out of everything that is written.

A key is registered when it is read. Whatever leaves this package passes `redact_all`: the messages and hints
of all typed errors, what an endpoint sends, lines on the screen.
"""

from __future__ import annotations

import re
import threading
from typing import Any, Final

HIDDEN: Final = "[key]"
_WORD: Final = re.compile(r".{0,5}|[A-Za-z]{0,7}")
"""Keys that are not hidden: short words ("none", "ollama"), which servers on one's own machine ask for, and
which texts would lose."""

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
    """A key that shows itself nowhere but in the header that it is made for."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        """Registers it."""
        global _forms
        self._text = text
        if not _WORD.fullmatch(text):
            import base64  # here, so that a start without an endpoint does not wait for them
            import json
            from urllib.parse import quote

            with _lock:
                forms = {*_forms, text, quote(text, safe=""), json.dumps(text)[1:-1], repr(text)[1:-1]}
                forms.add(base64.b64encode(text.encode()).decode().rstrip("="))
                _forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))

    def header(self) -> bytes:
        """The value of an Authorization header."""
        return b"Bearer " + self._text.encode("ascii")

    def __repr__(self) -> str:
        return HIDDEN

    def __reduce__(self) -> Any:
        raise TypeError("a key is not written down")


def redact_all(text: str) -> str:
    """The text with every key that this process read, and passwords and keys in addresses, covered."""
    text = redact(text)
    if "://" in text:
        text = _PASSWORD.sub(f"{HIDDEN}@", text)
    return _IN_QUERY.sub(rf"\1{HIDDEN}", text) if "=" in text else text


def without_keys(data: Any) -> Any:
    """What was read from JSON, with the keys in its texts covered, names included. Lists of numbers, of
    which vectors are made, are passed over.
    """
    if isinstance(data, str):
        return redact(data)
    if isinstance(data, list):
        return data if data and type(data[0]) in (int, float) else [without_keys(part) for part in data]
    if isinstance(data, dict):
        return {redact(name): without_keys(value) for name, value in data.items()}
    return data


def redact_bytes(content: bytes) -> bytes:
    """Bytes that an endpoint sent, with the keys in them covered."""
    for form in _forms:
        plain = form.encode()
        if plain in content:
            content = content.replace(plain, HIDDEN.encode())
    return content


def redact(text: str) -> str:
    """The text with every key that this process read covered; for what is not about addresses."""
    for form in _forms:
        text = text.replace(form, HIDDEN)
    if _forms and _UNSEEN.search(text):  # others may drop these later, and have the key then
        plain = _UNSEEN.sub("", text)
        if any(form in plain for form in _forms):
            return redact(plain)
    return text


class Cover:
    """Covers keys in a text that comes in pieces: what may be the beginning of one is held back."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What of the text is certain with this piece."""
        text = redact(self._held + piece)
        longest = max((_overlap(text, form) for form in _forms), default=0)
        self._held = text[len(text) - longest :]
        return text[: len(text) - longest]

    def finish(self) -> str:
        """What is left at the end."""
        text, self._held = self._held, ""
        return text


def _overlap(text: str, form: str) -> int:
    """The longest end of the text that begins the form."""
    return next((n for n in range(min(len(text), len(form) - 1), 0, -1) if form.startswith(text[-n:])), 0)
