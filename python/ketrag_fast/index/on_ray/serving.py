"""Search on Ray Serve: replicas that open the same indexes and answer queries from the whole cluster.

Every replica opens the indexes as `Index.open` does, so its answers are those of local indexes; several are
ranked together (`index/indexes.py`). Replicas on one machine share the mapped files."""

from __future__ import annotations

import asyncio
import importlib
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ketrag_fast._core import __version__
from ketrag_fast.base.config import Settings
from ketrag_fast.building.sources import absolute
from ketrag_fast.errors import BackendMissing, ConfigError, KetragError
from ketrag_fast.index import Index
from ketrag_fast.index.indexes import Indexes
from ketrag_fast.storage.layout import Layout

_REFRESH_SECONDS: Final = 1.0
"""Default seconds between two checks of a replica for a new generation."""
_NAME: Final = "ketrag"


class SearchReplica:
    """One replica: open indexes that switch to each new generation.

    Its methods are called through a handle of Ray Serve. They raise the errors of `Index`.
    """

    def __init__(
        self, paths: Mapping[str, str], settings: Mapping[str, Any], version: str, refresh_seconds: float
    ) -> None:
        """Open the indexes, read the files that queries need, and start watching for new generations."""
        if version != __version__:
            raise ConfigError(
                f"a Ray worker has version {__version__} of ketrag-fast, and the deployment {version}",
                hint=f"pip install ketrag-fast=={version} on every machine of the cluster",
            )
        self._opened: dict[str, Index] = {}
        for name, path in paths.items():
            self._opened[name] = Index.open(path, settings=Settings(**settings))
            self._opened[name].inspect.warm()
        self._indexes = Indexes(self._opened)
        self._problem = ""
        self._ended = threading.Event()
        threading.Thread(target=self._follow, args=(refresh_seconds,), daemon=True).start()

    def __del__(self) -> None:
        """Release the indexes. Ray Serve calls this when it removes the replica."""
        with suppress(AttributeError):  # the replica may not have opened its indexes
            self._ended.set()
        with suppress(AttributeError):
            for index in self._opened.values():
                index.close()

    def _follow(self, seconds: float) -> None:
        while not self._ended.wait(seconds):
            self._look()

    def _look(self) -> None:
        """Switch to a new generation. If that fails, keep the open one; `state` then reports the error."""
        try:
            for index in self._opened.values():
                index.refresh(warm=True)
            self._problem = ""
        except KetragError as error:
            self._problem = error.message

    async def retrieve(self, query: str, **fields: Any) -> dict[str, Any]:
        """Return the context of a query as JSON data, as `Context.to_json` does."""
        return (await asyncio.to_thread(lambda: self._indexes.retrieve(query, **fields))).to_json()

    async def retrieve_many(
        self, queries: Sequence[str], threads: int = 1, **fields: Any
    ) -> list[dict[str, Any]]:
        """Return the contexts of several queries with the same fields, in their order."""

        def run() -> list[dict[str, Any]]:
            if len(self._opened) > 1:
                return [self._indexes.retrieve(query, **fields).to_json() for query in queries]
            found = next(iter(self._opened.values())).retrieve_many(list(queries), threads=threads, **fields)
            return [context.to_json() for context in found]

        return await asyncio.to_thread(run)

    async def state(self) -> dict[str, Any]:
        """Return digest, generation, modes and process of this replica, and the last error of switching.

        Over several indexes, `shards` has digest and generation of each by name instead.
        """
        indexes = list(self._opened.values())
        modes = [mode for mode in indexes[0].modes if all(mode in index.modes for index in indexes)]
        shared = {"modes": modes, "process": os.getpid(), "problem": self._problem}
        states = {
            name: {"digest": index.digest, "generation": index.generation}
            for name, index in self._opened.items()
        }
        return {**(states.popitem()[1] if len(states) == 1 else {"shards": states}), **shared}


def search_application(
    index: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    replicas: int = 1,
    settings: Settings | None = None,
    refresh_seconds: float = _REFRESH_SECONDS,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Return an application for `ray.serve.run` that answers queries over an index.

    The handle that `ray.serve.run` returns has the methods `retrieve(query, **fields)`,
    `retrieve_many(queries, **fields)` and `state()`; the fields are those of `Query`. A context arrives as
    JSON data, equal to `Index.retrieve(...).to_json()` on one machine except for `timings_ms`. Errors
    of a query are those of `Index.retrieve`. A deadline starts when a replica receives the query.

    Args:
        index: Folder of an index, several such folders, or a folder of shards, on storage that every
        machine of the cluster can read. Several indexes are ranked together; passages name their index by
        its folder's name. replicas: Number of replicas. Ray Serve replaces replicas that die. settings: As
        for `Index.open`. refresh_seconds: Seconds between two checks of a replica for a new generation.
        options: Options of `ray.serve.deployment`, for example `max_ongoing_requests` or
        `ray_actor_options`.

    Raises:
        BackendMissing: Ray Serve is not installed.
        ConfigError: A number is out of range, or two folders have the same name.
    """
    if replicas < 1:
        raise ConfigError(f"replicas must be at least 1, got {replicas}")
    if not refresh_seconds > 0:
        raise ConfigError(f"refresh_seconds must be above 0, got {refresh_seconds}")
    own = settings or Settings()
    gpus = {"num_gpus": 1} if own.device.startswith("cuda") else {}
    chosen = {
        "name": _NAME,
        "num_replicas": replicas,
        "ray_actor_options": {"num_cpus": 1, **gpus},
        **(options or {}),
    }
    deployment = _serve().deployment(**chosen)(SearchReplica)
    return deployment.bind(_named(index), own.given, __version__, refresh_seconds)


def _named(index: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> dict[str, str]:
    """Return the folders of indexes by name. Raises ConfigError if there are none, or two have the same
    name."""
    folders = [index] if isinstance(index, str | os.PathLike) else list(index)
    if len(folders) == 1 and not Layout(Path(folders[0])).exists() and Path(folders[0]).is_dir():
        inside = sorted(folder for folder in Path(folders[0]).iterdir() if Layout(folder).exists())
        folders = [*inside] or folders
    named = {Path(folder).name: absolute(os.fspath(folder)) for folder in folders}
    if not folders or len(named) < len(folders):
        raise ConfigError(
            "there are no indexes to search" if not folders else "two indexes have folders of the same name",
            hint='for example search_application(["/shared/north", "/shared/south"])',
        )
    return named


def _serve() -> Any:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # set before the import, which reads it
    try:
        return importlib.import_module("ray.serve")
    except ImportError as error:
        raise BackendMissing(
            f"Ray Serve is not installed ({error.msg.partition('.')[0]})",
            hint="pip install 'ray[client,serve]>=2.40'",
        ) from error
