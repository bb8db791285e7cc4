"""Indexes of other machines as parts of a joined index: their state, and copies of what they have published.

A service that was started with `--share` returns the digest of an index, and sends the index as a bundle.
A copy is made once for each digest, and every byte of it is compared with the hashes in the bundle.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpcore

from ketrag_fast.errors import BackendError, IndexDamaged, KetragError
from ketrag_fast.models.http.addresses import Address, endpoint
from ketrag_fast.models.http.connections import FAULTS, Connections, RequestClock, Stopped, reason_phrase
from ketrag_fast.models.http.openai_endpoint import token_for
from ketrag_fast.storage.bundle import unbundle
from ketrag_fast.storage.checksum import text_digest
from ketrag_fast.storage.io_errors import writing
from ketrag_fast.storage.joined_folders import COPY
from ketrag_fast.storage.layout import Layout

_STATE_SECONDS: Final = 10.0
_SILENT_SECONDS: Final = 60.0
"""A service that sends nothing for so long has failed."""
_STATE_BYTES: Final = 1 << 16
_PASSING: Final = (409, 429, 503)
_ATTEMPTS: Final = 5
_SHOWN: Final = 200


def is_service(name: str) -> bool:
    """Return whether a part is the address of a service."""
    return name.startswith(("http://", "https://"))


def state_of(url: str, *, offline: bool, look: Stopped) -> tuple[str, int]:
    """Return digest and generation of the index that a service shares.

    Raises:
        BackendError: the service does not answer in time, or refuses.
        IndexDamaged: it answers with something else.
    """
    place = endpoint(url, offline=offline)
    with _reply(place, "/v1/part", _STATE_SECONDS, look) as pieces:
        content = b""
        for piece in pieces:
            content += piece
            if len(content) > _STATE_BYTES:
                raise _wrong(url)
    try:
        data: Any = json.loads(content)
        if data["schema"] != "ketrag/part/1":
            raise _wrong(url)
        return str(data["digest"]), int(data["generation"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _wrong(url) from None


def copy_of(url: str, digest: str, home: Path, *, offline: bool, look: Stopped) -> Path:
    """Return the folder of a copy of the index that a service shares; fetch it if it is missing.

    Raises as `state_of`, and StorageFull.
    """
    folder = home / f"{COPY}{text_digest([url, digest])[:32]}"
    if folder.is_dir():
        with suppress(OSError):
            os.utime(folder)
        return folder
    file = folder.with_name(f"{folder.name}.bundle")
    try:
        with writing(home), _reply(endpoint(url, offline=offline), "/v1/part/bundle", None, look) as pieces:
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
            with os.fdopen(handle, "wb") as out:
                for piece in pieces:
                    out.write(piece)
        unbundle(file, Layout(folder))
    finally:
        file.unlink(missing_ok=True)
    return folder


def _wrong(url: str) -> IndexDamaged:
    return IndexDamaged(
        f"{url[:_SHOWN]} does not answer like a service that shares an index",
        hint="check the address; the service needs `ketrag serve --share`",
    )


@contextmanager
def _reply(place: Address, tail: str, seconds: float | None, look: Stopped) -> Iterator[Iterator[bytes]]:
    """Yield the pieces of a reply: all within `seconds`, or none later than a minute after the one before."""
    where = f"{place.scheme}://{place.netloc}{place.base}"
    late = f"no {'reply' if seconds else 'data'} in time"
    clock = RequestClock(_SILENT_SECONDS if seconds is None else seconds, look, late)
    connections = Connections(place)

    def pieces(reply: httpcore.Response) -> Iterator[bytes]:
        for piece in reply.iter_stream():
            if seconds is None:
                clock.restart(_SILENT_SECONDS, look)
            yield piece

    fault = ""
    try:
        yield pieces(_asked(connections, tail, clock, where))
    except KetragError:
        raise  # some are OSErrors, too
    except FAULTS as error:
        fault = f"{type(error).__name__}: {error}"[:_SHOWN]
    finally:
        connections.close()
    if fault:
        raise BackendError(f"{where} cannot be searched: {fault}", hint="start the service, or try again")


def _asked(connections: Connections, tail: str, clock: RequestClock, where: str) -> httpcore.Response:
    """Send a request until the service is ready, and return a good reply."""
    place = connections.place
    key = token_for(place.host, place.scheme)
    for attempt in range(_ATTEMPTS):
        reply = connections.ask("GET", place.path(tail), key, b"", clock)
        if reply.status == 200:
            return reply
        reply.close()
        if reply.status not in _PASSING or attempt == _ATTEMPTS - 1:
            hint = "set its token in KETRAG_TOKEN" if reply.status == 401 else "start it with --share"
            raise BackendError(f"{where} answered {reply.status} {reason_phrase(reply)}", hint=hint)
        until = time.monotonic() + 0.2 * 2**attempt
        while time.monotonic() < until:
            clock.check()
            time.sleep(0.05)
    raise BackendError(f"{where} does not answer")
