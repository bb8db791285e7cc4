"""Declaration of a setting: a dataclass field with default, help, bounds, and what it concerns.

`concerns`: "build" settings decide what the index contains and enter the fingerprints of the stages that
name them; "read" settings decide how documents are read (the document hashes show their effect) and how
long generations are kept, and are stored like build settings; "query" settings apply to each query; "run"
settings change no result.
`rebuild` marks a build setting whose change discards all earlier work, so that it needs `--rebuild`.
`topic` is the group of options that shows it in the help of a command.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ketrag_fast.errors import ConfigError
from ketrag_fast.records import dataclass, fields, replace, shared_field

Concern = Literal["build", "read", "query", "run"]
Reach = Literal["text", "files", "never", "true"]
Topic = Literal["build", "reading", "query", "embedding", "writing", "running", "common"]

MOST = 2**63 - 1
"""Default upper bound of numeric settings."""
LONGEST_SECONDS = 1e9
"""Upper bound of times in seconds: 31 years, which no clock or lock rejects as too long."""
_TOPICS: dict[Concern, Topic] = {"build": "build", "read": "build", "query": "query", "run": "running"}
_BOOLEANS = dict.fromkeys(("1", "true", "yes", "on"), True)
_BOOLEANS |= dict.fromkeys(("0", "false", "no", "off"), False)
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", type(None): "none"}


def setting(
    default: Any,
    text: str,
    *,
    concerns: Concern = "build",
    low: float | None = None,
    high: float | None = None,
    rebuild: bool = False,
    topic: Topic | None = None,
    choices: tuple[str, ...] = (),
    protects: bool = False,
    flag: bool = False,
    metavar: str = "",
    reaches: Reach = "text",
) -> Any:
    """Return a field of a settings class; its annotation is its type.

    Args:
        default: The value if no source gives one.
        text: One line of help: a noun phrase or an imperative, without a full stop.
        choices: Values of a text setting that systems may extend.
        protects: The setting restricts access. An empty value or `none` is an error instead of "not set",
            so that an unset variable in a command or a file never lifts the restriction.
        flag: The setting has a flag; every setting can also be given as `-o name=value`.
        metavar: Placeholder of the value in help texts, such as SPEC.
        reaches: The values that may reach something outside the folder of a settings file, which the user
            must confirm then: texts that name an address or a path there, no value, or `True`. A value of
            "files" is a list of files, separated by commas, that a build reads.

    Examples:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True, kw_only=True)
        ... class MySettings:
        ...     my_share: float = setting(0.5, "share of the budget", concerns="query", low=0, high=1)
        >>> MySettings().my_share
        0.5
    """
    meta = {
        "help": text,
        "concerns": concerns,
        "low": low,
        "high": high,
        "rebuild": rebuild,
        "topic": topic or _TOPICS[concerns],
        "choices": choices,
        "protects": protects,
        "flag": flag,
        "metavar": metavar,
        "reaches": reaches,
    }
    return shared_field(default, meta)


@dataclass(frozen=True, slots=True)
class Setting:
    """One declared setting.

    `types` are the allowed types of a value, `choices` the allowed values of a text setting that takes only
    certain ones, and `owner` the system that declares it ("" for shared settings).
    """

    name: str
    types: tuple[type, ...]
    default: Any
    help: str
    concerns: Concern
    low: float | None
    high: float | None
    rebuild: bool
    topic: Topic
    choices: tuple[str, ...]
    owner: str
    protects: bool = False
    flag: bool = False
    metavar: str = ""
    reaches: Reach = "text"

    def expected(self) -> str:
        """Describe the values that the setting accepts, for messages."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        text = " or ".join(_WORDS[kind] for kind in self.types)
        if self.low is not None and self.high is not None:
            text += f" from {self.low} to {self.high}"
        elif self.low is not None:
            text += f" from {self.low} up"
        return text

    def check(self, value: Any) -> None:
        """Raise ConfigError unless `value` has the right type and is within the bounds."""
        if self.protects and isinstance(value, str):
            self.require_restriction(value)
        if value == "" and isinstance(value, str):
            raise ConfigError(f"{self.name} is empty", hint=f"give {self.expected()}")
        if not (self._fits(value) and self._in_range(value)):
            raise ConfigError(
                f"{self.name}: {short_repr(value)} is not {self.expected()}", hint=self._suggest(value)
            )

    def _suggest(self, value: Any) -> str | None:
        """Return a hint that names the choice most similar to a misspelt value."""
        if not isinstance(value, str) or not self.choices:
            return None
        return suggest(value, self.choices) or None

    def parse(self, text: str) -> Any:
        """Parse a value from a flag or an environment variable. Raises ConfigError if it is invalid."""
        plain = text.strip()
        if self.protects:
            self.require_restriction(plain)
        if type(None) in self.types and plain.lower() in ("", "none"):
            return None
        if not plain:
            raise ConfigError(f"{self.name} is empty", hint=f"unset it or give a value: {self.expected()}")
        wanted = next(kind for kind in self.types if kind is not type(None))
        try:
            if wanted is bool:
                return _BOOLEANS[plain.lower()]
            if wanted in (int, float):
                return wanted(plain)
        except (KeyError, ValueError):
            raise ConfigError(f"{self.name}: {short_repr(text)} is not {self.expected()}") from None
        return plain

    def require_restriction(self, text: str) -> None:
        """Raise ConfigError if the text of a setting that restricts access is empty or `none`."""
        plain = text.strip()
        if plain.lower() in ("", "none"):
            state = f"{plain!r}" if plain else "empty"
            raise ConfigError(
                f"{self.name} is {state}, which restricts nothing: is a variable unset?",
                hint=f"give a condition such as 'group=sales', or leave {self.name} out to show all "
                "documents",
            )

    def _fits(self, value: Any) -> bool:
        if self.choices:
            return isinstance(value, str) and value in self.choices
        if value is None:
            return type(None) in self.types
        if isinstance(value, bool):
            return bool in self.types
        if float in self.types:
            return isinstance(value, (int, float))
        return isinstance(value, self.types)

    def _in_range(self, value: Any) -> bool:
        if value is None or isinstance(value, (str, bool)):
            return True
        if isinstance(value, float) and not math.isfinite(value):
            return False
        high = MOST if self.high is None else self.high
        return bool((self.low is None or value >= self.low) and value <= high)

    def extended(self, more: Iterable[str]) -> Setting:
        """Return a copy with additional choices."""
        return replace(self, choices=tuple(dict.fromkeys((*self.choices, *more))))


def short_repr(value: Any) -> str:
    """Return a shortened `repr` for error messages; the value may have any length and depth."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = 80
    try:
        return short.repr(value)[:200]
    except (ValueError, RecursionError):  # an integer with more digits than Python prints
        return f"a {type(value).__name__}"


def suggest(word: str, names: Iterable[str]) -> str:
    """Return `did you mean NAME?` for a misspelt name, or "" if no name is similar."""
    from difflib import get_close_matches  # imported here because `-h` does not need it

    near = get_close_matches(word[:200], list(names), 1)
    return f"did you mean {near[0]}?" if near else ""


def declared_settings(cls: type, owner: str = "") -> tuple[Setting, ...]:
    """Return the settings of a class in order; ConfigError if a field was not declared with `setting`."""
    hints = get_type_hints(cls)
    return tuple(
        _read_field(spec.name, spec.default, spec.metadata, hints[spec.name], owner) for spec in fields(cls)
    )


def _read_field(name: str, default: Any, meta: Any, hint: Any, owner: str) -> Setting:
    if "concerns" not in meta:
        raise ConfigError(f"{owner}: the field {name} is not declared with setting(...)")
    literal = get_origin(hint) is Literal
    types = (str,) if literal else tuple(get_args(hint)) or (hint,)
    if not set(types) <= _WORDS.keys():
        raise ConfigError(f"{owner}: the setting {name} must be a text, a number or true/false, not {hint}")
    choices = tuple(get_args(hint)) if literal else meta["choices"]
    own = {"name": name, "types": types, "default": default, "choices": choices, "owner": owner}
    spec = Setting(**{**meta, **own})
    if not spec.choices:
        spec.check(default)
    return spec
