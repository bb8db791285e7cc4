"""Options of the service, which workers receive as JSON, without the token."""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Mapping
from typing import Any, Final

from ketrag_fast.base.config import Settings
from ketrag_fast.base.processor import cores
from ketrag_fast.errors import ConfigError
from ketrag_fast.records import asdict, dataclass, field

DEFAULT_NAME: Final = "ketrag"
"""The name of an index without NAME=."""
_NAME_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_LONGEST_NAME: Final = 64


@dataclass(frozen=True)
class ServerOptions:
    """Limits hold for each worker. Times are in seconds, sizes in bytes."""

    indexes: Mapping[str, str]
    """Names and folders, several separated by commas; the first is the default of requests."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings for `Index.open`."""
    host: str = "127.0.0.1"
    port: int = 8765
    workers: int = 1
    concurrency: int = field(default_factory=cores)
    """Threads that answer questions, in addition to the event loop."""
    queue: int = 512
    """Queries that may wait; more get status 429."""
    answers: int = 8
    """Maximum number of LLM answers that wait."""
    batch: int | None = None
    """Maximum batch size. Default: 32 if a model embeds the questions, which is faster together, else 8,
    because a batch then only saves the cost of handing questions to a thread.
    """
    questions: int = 256
    """Maximum number of queries in one request."""
    body: int = 1_000_000
    deadline: float = 30.0
    """For the passages of a request, counted from its last byte."""
    answer_seconds: float = 300.0
    read_seconds: float = 10.0
    """For the next head of a connection, and again for its body."""
    idle_seconds: float = 30.0
    """For a client that does not read its reply."""
    connections: int = 1024
    cache: int = 64_000_000
    """Total size of cached replies."""
    refresh_seconds: float = 1.0
    graceful_seconds: float = 10.0
    budget: int = 100_000
    """Maximum token budget of a request."""
    writable: bool = False
    copies: bool = False
    """Let clients that may see all documents copy an index."""
    hosts: tuple[str, ...] = ()
    """Names accepted in `Host`, in addition to the addresses of this machine."""
    origins: tuple[str, ...] = ()
    """Origins whose pages may use this service (CORS)."""
    users: str | None = None
    """File with the users, instead of one token."""
    log: str | None = None
    """`text` or `json`: a line for each request on standard error; None: only slow and refused requests."""
    log_questions: bool = False
    slow_seconds: float = 5.0
    """Requests for passages and other data that take longer are marked in the log."""
    page: bool = True
    front: bool = True
    """Answer plain requests in the core."""

    def opened_with(self) -> Settings:
        """Return the settings with which indexes are opened."""
        return Settings(**dict(self.settings))

    def to_json(self) -> str:
        """Return the options as JSON, for a worker."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ServerOptions:
        """Return the options from the result of `to_json`."""
        data = json.loads(text)
        return cls(**{**data, "hosts": tuple(data["hosts"]), "origins": tuple(data["origins"])})


def parse_indexes(folders: list[str]) -> dict[str, str]:
    """Return names and folders from `DIR` and `NAME=DIR`. Raises ConfigError for a bad or repeated name."""
    indexes: dict[str, str] = {}
    for given in folders:
        name, mark, folder = given.partition("=")
        if not mark or not set(name) <= _NAME_LETTERS:
            name, folder = DEFAULT_NAME, given
        if not name or len(name) > _LONGEST_NAME or not folder:
            raise ConfigError(
                f"-i {given}: not of the form DIR or NAME=DIR", hint="for example -i notes=./notes-index"
            )
        if name in indexes:
            raise ConfigError(
                f"-i: two indexes have the name {name!r}", hint="use different names: -i a=DIR -i b=DIR"
            )
        indexes[name] = os.path.abspath(folder)  # noqa: PTH100 - keeps symbolic links
    return indexes


def is_local(host: str) -> bool:
    """Return whether a name or address is this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
