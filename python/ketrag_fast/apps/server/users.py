"""Users of a service: a file with the hashes of their tokens, which documents they may see, and what they
may do.

Each line of the file is the JSON object of a user:

    {"name": "anna", "sha256": "9f86...", "allow": "team=red", "may": ["read"]}

The service reads it again when it changes. While it cannot be read, the last users stay valid.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import ConfigError, InputError
from ketrag_fast.records import dataclass

ABILITIES: Final = ("read", "add", "remove")
_MOST: Final = 10_000_000
"""Maximum size of a users file in bytes."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_FIELDS: Final = ("name", "sha256", "allow", "may")
_EMPTIED: Final = 5.0
"""Seconds for which a file that was emptied leaves the users as they are. A busy machine took more than 1 s
from the emptying to the writing, and all requests in between were refused."""
_TOKEN_BYTES: Final = 32
"""Random bytes of a new token; 16 would be enough, because a hash of 128 random bits cannot be guessed."""


@dataclass(frozen=True, slots=True)
class User:
    """A user. `allow` is the condition on the documents that it may see, empty for all."""

    name: str = ""
    digest: bytes = b""
    allow: str = ""
    may: frozenset[str] = frozenset()

    @property
    def shown(self) -> str:
        """The user as messages show it."""
        return f"the user {self.name}" if self.name else "this service"

    def to_line(self) -> str:
        """Return the line of the user in a users file."""
        data: dict[str, Any] = {"name": self.name, "sha256": self.digest.hex()}
        data |= {"allow": self.allow} if self.allow else {}
        return json.dumps({**data, "may": [ability for ability in ABILITIES if ability in self.may]})


def digest_of(token: str) -> bytes:
    """Return the hash of a token."""
    return hashlib.sha256(token.encode()).digest()


def parse_users(text: str, file: str) -> list[User]:
    """Return the users of a file. Raises ConfigError that names the line."""
    users: list[User] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            user = _parse_user(line)
        except (ValueError, InputError) as error:
            raise ConfigError(f"{file}, line {number}: {error}") from None
        for name in ("name", "digest"):
            if any(getattr(user, name) == getattr(other, name) for other in users):
                what = f"the name {user.name}" if name == "name" else "the token"
                raise ConfigError(f"{file}, line {number}: another user has {what}")
        users.append(user)
    return users


def _parse_user(line: str) -> User:
    """Return the user of a line. Raises ValueError or InputError."""
    from ketrag_fast.base.filters import allow_condition

    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("not a JSON object") from None
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    if unknown := sorted(set(data).difference(_FIELDS)):
        raise ValueError(f"unknown field {unknown[0]!r}; fields are {', '.join(_FIELDS)}")
    name, digest, allow, may = (data.get(field) for field in _FIELDS)
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise ValueError(f"name must have 1 to 64 letters, digits and . _ @ -, got {str(name)[:80]!r}")
    if not isinstance(digest, str) or _SHA256.fullmatch(digest.lower()) is None:
        raise ValueError("sha256 must be the SHA-256 of the token, 64 hexadecimal digits")
    if "allow" in data:
        if not isinstance(allow, str):
            raise ValueError("allow must be a condition, such as 'team=red'")
        allow_condition(allow)
    may = ["read"] if "may" not in data else may
    if not isinstance(may, list) or not all(one in ABILITIES for one in may):
        raise ValueError(f"may must be a list of {', '.join(ABILITIES)}, got {json.dumps(may)[:80]}")
    if allow and set(may) != {"read"}:
        raise ValueError(
            "a user with allow may only read, because it could replace documents that it does not see"
        )
    return User(name, bytes.fromhex(digest), allow or "", frozenset(may))


def check_private(file: str, option: str) -> None:
    """Raise ConfigError if other users of the machine can read or write a file with tokens or their
    hashes."""
    if os.name == "nt":
        return
    try:
        mode = Path(file).stat().st_mode
    except OSError as error:
        raise ConfigError(f"{option} {file}: cannot be read: {error.strerror or error}") from None
    open_to = mode & (stat.S_IROTH | stat.S_IWOTH | stat.S_IWGRP)
    if open_to:
        who = "every user of this machine" if mode & (stat.S_IROTH | stat.S_IWOTH) else "its group"
        verb = "read" if open_to == stat.S_IROTH else "write"
        raise ConfigError(f"{option} {file}: {who} can {verb} the file", hint=f"chmod 600 {file}")


def read_users(file: str) -> list[User]:
    """Return the users of a file. Raises ConfigError if it cannot be read, is not private, or has a wrong
    line."""
    check_private(file, "--users")
    try:
        text = read_regular(Path(file), _MOST).decode("utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"--users {file}: cannot be read: {error}") from None
    return parse_users(text, f"--users {file}")


class UsersFile:
    """The users of a file, which is read again when it changes."""

    def __init__(self, file: str) -> None:
        """Read the file. Raises ConfigError as `read_users`."""
        self.file = file
        self._seen = self._stamp()
        self._users = {user.digest: user for user in read_users(file)}

    def __iter__(self) -> Iterator[User]:
        return iter(self._users.values())

    def __len__(self) -> int:
        return len(self._users)

    def of(self, token: str) -> User | None:
        """Return the user of a token. Hashes are compared, so times reveal nothing that leads to a token."""
        return self._users.get(digest_of(token))

    def refresh(self) -> str | None:
        """Read the file again if it has changed; return what has changed, None if nothing.

        Raises ConfigError if the file is wrong now. The users stay as they were, and the same content raises
        no error again.
        """
        now = self._stamp()
        if now == self._seen or self._is_being_written(now):
            return None
        try:
            users = {user.digest: user for user in read_users(self.file)}
        except ConfigError:
            self._seen = now
            raise
        if self._stamp() != now:
            return None  # it was written meanwhile
        self._seen, before, self._users = now, self._users, users
        old, new = set(before.values()), set(users.values())
        names = sorted({user.name for user in old ^ new})
        return f"{len(users)} users; changed: {', '.join(names) or 'none'}"

    @staticmethod
    def _is_being_written(stamp: tuple[int, ...]) -> bool:
        """Return whether the file was emptied just now, as an editor does before it writes."""
        return bool(stamp) and stamp[1] == 0 and 0 <= time.time() - stamp[0] / 1e9 < _EMPTIED

    def _stamp(self) -> tuple[int, ...]:
        try:
            found = Path(self.file).stat()
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode


def add_user(file: str, name: str, allow: str | None, may: Sequence[str]) -> str:
    """Add a user to a file, which is created if it does not exist, and return the new token.

    Raises ConfigError if the name is taken or anything is wrong.
    """
    path = Path(file)
    users = read_users(file) if path.exists() else []
    if any(user.name == name for user in users):
        raise ConfigError(
            f"{file} has a user {name} already", hint=f"ketrag users revoke {name} --users {file}"
        )
    if unknown := sorted(set(may).difference(ABILITIES)):
        raise ConfigError(f"--may must be a list of {', '.join(ABILITIES)}, got {unknown[0]!r}")
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    line = User(name, digest_of(token), allow or "", frozenset(may)).to_line()
    parse_users(line, "the new user")
    old = path.read_text("utf-8") if path.exists() else ""
    _replace(path, f"{old}{'' if not old or old.endswith(chr(10)) else chr(10)}{line}\n")
    return token


def revoke_user(file: str, name: str) -> None:
    """Remove a user from a file; other lines stay as they are. Raises ConfigError if it has none of this
    name."""
    if all(user.name != name for user in read_users(file)):
        raise ConfigError(f"{file} has no user {name}", hint=f"ketrag users list --users {file}")
    lines = Path(file).read_text("utf-8").splitlines(keepends=True)
    _replace(Path(file), "".join(line for line in lines if not _is_of(line, name)))


def _is_of(line: str, name: str) -> bool:
    try:
        data = json.loads(line)
    except ValueError:
        return False
    return isinstance(data, dict) and data.get("name") == name


def _replace(path: Path, text: str) -> None:
    """Replace a file atomically; only its owner can read the new one."""
    aside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with os.fdopen(
            os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8", newline="\n"
        ) as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from None
