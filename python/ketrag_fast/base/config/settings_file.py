"""Settings files: `ketrag.toml`, or a file that the user names.

A file that the user names (`--config`, `KETRAG_CONFIG`, a path in Python) is the user's word. The file in the
working folder is not: the folder may be an unpacked archive or somebody else's repository. What such a file
names outside its folder (an endpoint, a path) is used only after the user has confirmed the content of the
file, once for each content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.config.fields import Setting, short_repr
from ketrag_fast.base.config.local_servers import SETTINGS as MODELS
from ketrag_fast.base.config.local_servers import spell_out
from ketrag_fast.base.config.settings import catalogue, find_setting
from ketrag_fast.base.hashes import blake2b
from ketrag_fast.base.safe_io import read_toml
from ketrag_fast.base.user_records import SETTINGS, read_record
from ketrag_fast.errors import ConfigError, SettingsNotConfirmed
from ketrag_fast.records import dataclass

DEFAULT_FILE: Final = "ketrag.toml"
_ADDRESS: Final = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]++://[^\s#?]*")
_USER: Final = re.compile(r"//[^/@]*@")
_PREFIX: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_KEY: Final = re.compile(r"\s*(\"(?:\\.|[^\"\\])*\"|'[^']*'|[A-Za-z0-9_-]+)\s*=")
_LISTED: Final = 4
"""Maximum number of settings that an error lists."""
_MOST_CANDIDATES: Final = 16
"""Maximum number of lines of a file that are tried as the line of one setting."""


@dataclass(frozen=True, slots=True)
class Outside:
    """An address, or a path outside its folder, that a settings file names, with the setting and its line."""

    setting: str
    line: int
    what: str

    def sentence(self) -> str:
        """Return the end of a sentence that begins with the file and the line."""
        return f"{self.setting} {self.what}"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file that was read.

    Attributes:
        path: The file.
        values: The settings by name.
        outside: What the settings name outside the folder of the file.
        digest: Hash of the content.
        is_named: Whether the user has named the file.
    """

    path: Path
    values: Mapping[str, Any]
    outside: tuple[Outside, ...] = ()
    digest: str = ""
    is_named: bool = False

    @property
    def about(self) -> dict[str, str]:
        """The path and the hash of the content, which a confirmation of the file is stored for."""
        return {"file": os.path.realpath(self.path), "content": self.digest}

    @property
    def is_confirmed(self) -> bool:
        """Whether the user has named the file or confirmed its content, or it names nothing outside."""
        return self.is_named or not self.outside or read_record(SETTINGS, self.about) is not None

    def require_confirmed(self, used: Set[str]) -> None:
        """Raise SettingsNotConfirmed if one of the `used` settings names something that is not confirmed."""
        found = [one for one in self.outside if one.setting in used]
        if not found or self.is_confirmed:
            return
        listed = "; ".join(f"line {one.line}: {one.sentence()}" for one in found[1:_LISTED])
        more = f" ({listed})" if listed else ""
        raise SettingsNotConfirmed(
            f"{self.path}:{found[0].line}: {found[0].sentence()}{more}, and you have not confirmed the "
            "settings file of this folder",
            hint="`ketrag trust --settings` confirms its present content; "
            f"`--config {self.path}` uses it for one command",
        )


def read_settings_file(path: Path | None) -> SettingsFile:
    """Read settings from a TOML file; None reads `./ketrag.toml` if it exists.

    Raises ConfigError if the file cannot be read, or has an unknown setting.
    """
    wanted = Path(DEFAULT_FILE) if path is None else path
    try:
        data, table = read_toml(wanted)
    except FileNotFoundError:
        if path is None:
            return SettingsFile(wanted, {})
        raise ConfigError(f"settings file {path} is missing") from None
    found: dict[str, Any] = {}
    outside: list[Outside] = []
    folder = os.path.dirname(os.path.abspath(wanted))  # noqa: PTH100, PTH120 - the folder that names the file
    for key, value in table.items():
        name = find_setting(key, f" (in {wanted})")
        spec = catalogue()[name]
        if spec.protects and isinstance(value, str):
            try:
                spec.require_restriction(value)
            except ConfigError as error:
                raise ConfigError(f"{wanted}: {error.message}", hint=error.hint) from None
        optional = spec.default is None
        found[name] = None if optional and value in ("", "none") else value
        if name in MODELS:
            found[name] = spell_out(found[name])
        what = named_outside(spec, found[name], folder)
        if what is not None:
            outside.append(Outside(name, line_of(data.decode("utf-8-sig"), key), what))
    return SettingsFile(
        wanted, found, tuple(outside), blake2b(data, digest_size=32).hexdigest(), path is not None
    )


def from_file(path: Path | None) -> dict[str, Any]:
    """Return the settings of a TOML file; None reads `./ketrag.toml` if it exists.

    Raises ConfigError if the file cannot be read, SettingsNotConfirmed if `./ketrag.toml` names an endpoint
    or a path outside the working folder and the user has not confirmed its content.
    """
    file = read_settings_file(path)
    file.require_confirmed(file.values.keys())
    return dict(file.values)


def named_outside(spec: Setting, value: Any, folder: str) -> str | None:
    """Return what a value names outside a folder, as the end of a sentence; None if it names nothing there.

    Examples:
        >>> from ketrag_fast.base.config import catalogue
        >>> named_outside(catalogue()["answer_llm"], "openai:m@https://example.org/v1", "/work")
        'names the endpoint https://example.org/v1'
        >>> named_outside(catalogue()["record"], "../replies.jsonl", "/work")
        "names '../replies.jsonl', a path outside its folder"
        >>> named_outside(catalogue()["record"], "replies.jsonl", "/work")
    """
    if spec.reaches == "true":
        return f"is true: {spec.help}" if value is True else None
    if spec.reaches == "never" or not isinstance(value, str):
        return None
    address = _ADDRESS.search(value)
    if address is not None:
        return f"names the endpoint {_USER.sub('//', address[0])[:300]}"
    if any(_is_outside(text, folder) for text in _paths_in(value)):
        return f"names {short_repr(value)}, a path outside its folder"
    return None


def _paths_in(value: str) -> Iterator[str]:
    """Yield the texts in a value that may be a path: all of it, and its parts without their prefixes."""
    yield value
    for part in value.split(","):
        text = part.strip()
        yield text
        while found := _PREFIX.match(text):
            text = text[found.end() :].strip()
            yield text


def _is_outside(text: str, folder: str) -> bool:
    path = os.path.expanduser(text)  # noqa: PTH111 - Path.expanduser raises for an unknown user
    try:
        real, top = os.path.realpath(os.path.join(folder, path)), os.path.realpath(folder)  # noqa: PTH118
    except (OSError, ValueError):
        return True
    return real != top and not real.startswith(top.rstrip(os.sep) + os.sep)


def line_of(text: str, key: str) -> int:
    """Return the line, from 1 on, at which a key of a TOML file is set.

    A line inside a text of several lines may look the same. It is not taken, because the lines before it are
    no complete TOML.
    """
    import tomllib  # only messages need it here

    candidates = []
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        found = _KEY.match(line)
        if found is not None and _key_of(found[1]) == key:
            candidates.append(number)
    for number in candidates[:_MOST_CANDIDATES]:
        try:
            tomllib.loads("".join(lines[:number]))
        except (ValueError, RecursionError):
            continue
        return number + 1
    return candidates[-1] + 1 if candidates else 1


def _key_of(text: str) -> str:
    import tomllib

    try:
        return next(iter(tomllib.loads(f"{text} = 0")))
    except ValueError:
        return text
