"""The languages that text analysis supports."""

from __future__ import annotations

from ketrag_fast.base.config.fields import suggest
from ketrag_fast.errors import ConfigError


def check_language(name: str) -> None:
    """Raise ConfigError unless the name is `auto`, `none`, or a language or its code."""
    if name in ("auto", "none", "english", "en"):
        return  # without importing the core
    from ketrag_fast import _core

    known = {"auto", *(value for row in _core.languages() for value in row)}
    if name not in known:
        raise ConfigError(
            f"language: {name[:80]!r} is not auto, none or a known language",
            hint=suggest(name, sorted(known)) or "docs/languages.md lists them; auto detects the language",
        )
