"""Copies of small indexes behind services, for callers that query them often.

A service that permits copies (`ketrag serve --allow-copies`) sends a bundle of its index to the first query.
The copy answers instead of the service, as an index of this process does, as long as the service has the same
state, which is checked once a second. The service answers while there is no copy: if it was not ready in the
time of a call, if it failed, and while the index changes often."""

from __future__ import annotations

import base64
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import KetragError
from ketrag_fast.index.bundles import read_bundle
from ketrag_fast.index.index import Index
from ketrag_fast.index.shard_calls import COPIED, index_state
from ketrag_fast.query.shards import MOST_JOINED

FRESH: Final = 1.0
"""Seconds between two checks of the state. A service itself looks for a new generation as often."""
_AGAIN: Final = 60.0
"""Seconds until the next attempt after one that failed, for example because the index is being built."""
_PAUSES: Final = 10.0
"""Times the duration of a copy that pass before the next one, so that copies of an index that changes all the
time take a tenth of it."""

_SHARE: Final = 0.5
"""Share of the time of a call that a query waits for a copy, so that the service can still answer."""

Call = Callable[[str, Mapping[str, Any], float | None], Any]
"""Sends the fields of a call to a service within some seconds, and returns the reply."""


class ShardCopy:
    """The copy of one index. `call` sends requests to its service; `given` are settings of the caller."""

    def __init__(self, call: Call, given: Mapping[str, Any]) -> None:
        self._call = call
        self._given = {name: given[name] for name in COPIED if given.get(name) is not None}
        self._lock = threading.Lock()
        self._index: Index | None = None
        self._state = ""
        self._checked = 0.0
        self._later = 0.0
        self._copying: threading.Thread | None = None
        self._is_closed = False

    @property
    def is_unavailable(self) -> bool:
        """Whether no copy exists, none is being made, and the next try to make one is later."""
        return self._index is None and self._copying is None and time.monotonic() < self._later

    def fresh(self) -> Index | None:
        """Return the copy if it was compared with the index less than a second ago."""
        index = self._index
        return index if time.monotonic() - self._checked < FRESH else None

    def find(self, seconds: float | None) -> Index | None:
        """Return the copy, which is made if it does not exist, or None if the service must answer.

        Raises the errors of `RemoteIndex.call`.
        """
        index = self._index
        if index is not None and time.monotonic() - self._checked < FRESH:
            return index
        if index is not None:
            began = time.monotonic()
            if self._call("state", {}, seconds)["state"] == self._state:
                self._checked = began
                return index
            self._index = None
        copying = self._start()
        if copying is not None:
            copying.join(None if seconds is None else _SHARE * seconds)
        return self._index

    def close(self) -> None:
        """Close the copy. No further one is made."""
        self._is_closed = True
        copying, index = self._copying, self._index
        self._index = None
        if copying is not None:
            copying.join()
        if index is not None:
            index.close()

    def _start(self) -> threading.Thread | None:
        """Return the thread that copies the index; None if it is too early to copy it."""
        with self._lock:
            if self._copying is None and not self._is_closed and time.monotonic() >= self._later:
                self._copying = threading.Thread(target=self._copy, name="ketrag-copy", daemon=True)
                self._copying.start()
            return self._copying

    def _copy(self) -> None:
        """Copy the index. If that fails, the service answers as before."""
        began = time.monotonic()
        try:
            self._replace()
        except (KetragError, OSError, KeyError, TypeError, ValueError, AttributeError):
            pass
        finally:
            now = time.monotonic()
            self._later = now + (_AGAIN if self._index is None else _PAUSES * (now - began))
            self._copying = None

    def _replace(self) -> None:
        began = time.monotonic()
        about = self._call("state", {}, None)
        state, copy = about["state"], about.get("copy")
        if copy is None or not 0 <= copy["keywords"] <= MOST_JOINED:
            return
        settings = {name: value for name, value in copy["settings"].items() if name in COPIED}
        reply = self._call("copy", {"state": state}, None)
        folder = Path(tempfile.mkdtemp(prefix="ketrag-copy-"))
        index = None
        try:
            (folder / "bundle").write_bytes(base64.b64decode(reply["bundle"], validate=True))
            read_bundle(folder / "bundle", folder / "index")
            (folder / "bundle").unlink()
            own = Settings(**{**settings, **self._given, "refresh": "never"})
            index = Index.open(folder / "index", settings=own)
        finally:
            is_wanted = index is not None and index_state(index._opened.generation) == state
            if index is None or not is_wanted or index._opened.questions is not None or self._is_closed:
                if index is not None:
                    index.close()
                shutil.rmtree(folder, ignore_errors=True)
                index = None
        if index is not None:
            weakref.finalize(index, shutil.rmtree, folder, ignore_errors=True)
            self._state, self._checked = state, began
            self._index = index
