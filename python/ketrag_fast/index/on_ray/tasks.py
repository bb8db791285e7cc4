"""The functions that run on Ray workers.

`build_shard` is `ketrag index SOURCES -i FOLDER --shard I/N`: a function over a shard of the sources that
writes a folder. It can be restarted at any time, on any machine with access to the folder, and continues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import IndexLocked, KetragError

_LOCK_SECONDS: Final = 120.0
"""Seconds to wait for the previous process in the folder, which may still be running."""


@dataclass(frozen=True, slots=True)
class ShardJob:
    """Shard `number` of `count` of the sources, to be built in `folder`."""

    sources: tuple[str, ...]
    folder: str
    number: int
    count: int
    settings: dict[str, Any]
    neighbours: int
    """Number of shards that one machine builds at the same time, which share its memory."""

    @property
    def name(self) -> str:
        """The shard in the form of the setting `shard`, such as `2/8`."""
        return f"{self.number}/{self.count}"


def build_shard(job: ShardJob, lock_seconds: float = _LOCK_SECONDS) -> dict[str, Any]:
    """Build or continue a shard. Returns its report, or an error as data, because classes may differ."""
    from ketrag_fast.base.config import LEAST_MEMORY
    from ketrag_fast.index import Index
    from ketrag_fast.systems.shared.memory_bound import memory_of

    settings = Settings(**job.settings)
    if not settings.memory:
        settings = settings.having(memory=max(LEAST_MEMORY, memory_of(settings) // job.neighbours))
    settings = settings.having(shard=job.name)
    end = time.monotonic() + lock_seconds
    while True:
        try:
            with Index.build(job.sources, job.folder, settings=settings, replace=True) as index:
                report = index.report
        except IndexLocked as error:
            if time.monotonic() > end:
                return _as_data(error)
            time.sleep(0.5)
        except KetragError as error:
            return _as_data(error)
        else:
            return {} if report is None else report.to_json()


def _as_data(error: KetragError) -> dict[str, Any]:
    return {"error": {"code": error.code, "message": error.message, "hint": error.hint}}


def probe_of() -> Callable[[Sequence[str], str, str], dict[str, Any]]:
    """Return the function that checks a node, sent by value because the node may lack this package."""

    def probe(sources: Sequence[str], marker: str, text: str) -> dict[str, Any]:
        """Return the package version on this node, missing sources, and whether the folder is shared."""
        import glob
        import os
        import time

        try:
            from ketrag_fast._core import __version__

            version, problem = str(__version__), ""
        except Exception as error:  # noqa: BLE001 - whatever the import raises is reported to the driver
            version, problem = "", f"{type(error).__name__}: {error}"
        missing = [
            path
            for path in sources
            if not os.path.exists(path)  # noqa: PTH110
            and not (glob.has_magic(path) and glob.glob(path, recursive=True))  # noqa: PTH207
        ]
        shared = False
        for wait in (0.0, 1.0, 3.0, 6.0):  # a new file may appear late on a network file system
            time.sleep(wait)
            try:
                with open(marker, encoding="utf-8") as file:  # noqa: PTH123
                    shared = file.read() == text
            except OSError:
                continue
            if shared:
                break
        shared = shared and os.access(os.path.dirname(marker), os.W_OK)  # noqa: PTH120
        return {"version": version, "problem": problem, "missing": missing, "shared": shared}

    return probe
