"""Search on Ray Serve: replicas that open the same index and answer queries from the whole cluster.

Every replica opens the index as `Index.open` does, so its answers are those of a local index. Replicas on one
machine share the mapped files.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from ketrag_fast._core import __version__
from ketrag_fast.base.config import Settings
from ketrag_fast.building.sources import absolute
from ketrag_fast.errors import BackendMissing, ConfigError, KetragError
from ketrag_fast.index import Index

_REFRESH_SECONDS: Final = 1.0
"""Default seconds between two checks of a replica for a new generation."""
_NAME: Final = "ketrag"


class SearchReplica:
    """One replica: an open index that switches to each new generation.

    Its methods are called through a handle of Ray Serve. They raise the errors of `Index`.
    """

    def __init__(self, path: str, settings: Mapping[str, Any], version: str, refresh_seconds: float) -> None:
        """Open the index, read the files that queries need, and start watching for new generations."""
        if version != __version__:
            raise ConfigError(
                f"a Ray worker has version {__version__} of ketrag-fast, and the deployment {version}",
                hint=f"pip install ketrag-fast=={version} on every machine of the cluster",
            )
        self._index = Index.open(path, settings=Settings(**settings))
        self._index.inspect.warm()
        self._problem = ""
        self._ended = threading.Event()
        threading.Thread(target=self._follow, args=(refresh_seconds,), daemon=True).start()

    def __del__(self) -> None:
        """Release the index. Ray Serve calls this when it removes the replica."""
        with suppress(AttributeError):  # the replica may not have opened its index
            self._ended.set()
            self._index.close()

    def _follow(self, seconds: float) -> None:
        while not self._ended.wait(seconds):
            self._look()

    def _look(self) -> None:
        """Switch to a new generation. If that fails, keep the open one; `state` then reports the error."""
        try:
            self._index.refresh(warm=True)
            self._problem = ""
        except KetragError as error:
            self._problem = error.message

    async def retrieve(self, query: str, **fields: Any) -> dict[str, Any]:
        """Return the context of a query as JSON data, as `Context.to_json` does."""
        return (await self._index.aretrieve(query, **fields)).to_json()

    async def retrieve_many(
        self, queries: Sequence[str], threads: int = 1, **fields: Any
    ) -> list[dict[str, Any]]:
        """Return the contexts of several queries with the same fields, in their order."""

        def run() -> list[dict[str, Any]]:
            found = self._index.retrieve_many(list(queries), threads=threads, **fields)
            return [context.to_json() for context in found]

        return await asyncio.to_thread(run)

    async def state(self) -> dict[str, Any]:
        """Return digest, generation, modes and process of this replica, and the last error of switching."""
        return {
            "digest": self._index.digest,
            "generation": self._index.generation,
            "modes": list(self._index.modes),
            "process": os.getpid(),
            "problem": self._problem,
        }


def search_application(
    index: str | os.PathLike[str],
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
        index: Folder of the index, on storage that every machine of the cluster can read.
        replicas: Number of replicas. Ray Serve replaces replicas that die.
        settings: As for `Index.open`.
        refresh_seconds: Seconds between two checks of a replica for a new generation.
        options: Options of `ray.serve.deployment`, for example `max_ongoing_requests` or `ray_actor_options`.

    Raises:
        BackendMissing: Ray Serve is not installed.
        ConfigError: A number is out of range.
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
    return deployment.bind(absolute(os.fspath(index)), own.given, __version__, refresh_seconds)


def _serve() -> Any:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # set before the import, which reads it
    try:
        return importlib.import_module("ray.serve")
    except ImportError as error:
        raise BackendMissing(
            f"Ray Serve is not installed ({error.msg.partition('.')[0]})",
            hint="pip install 'ray[client,serve]>=2.40'",
        ) from error
