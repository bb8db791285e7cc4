"""The indexes of a service: opened at the start, switched to new generations automatically."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ketrag_fast.apps.server.options import ServerOptions
from ketrag_fast.apps.server.problems import Problem, log
from ketrag_fast.errors import ConfigError, KetragError
from ketrag_fast.index import Index


@dataclass(eq=False)
class OpenIndex:
    """An open index and its name. The lock `answering` lets one question at a time use the language model."""

    name: str
    index: Index
    created: int
    answering: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)


class Indexes:
    """All indexes by name."""

    def __init__(self, options: ServerOptions) -> None:
        settings = options.opened_with()
        if options.writable and settings.allow is not None:
            raise ConfigError(
                "--allow-write with --allow: clients that may not see all documents may not change them",
                hint="leave out one of them",
            )
        self._all: dict[str, OpenIndex] = {}
        try:
            for name, folder in options.indexes.items():
                index = Index.open(folder, settings=settings)
                self._all[name] = OpenIndex(name, index, int(index.path.stat().st_mtime))
                index.inspect.open_answer_llm()
        except KetragError:
            self.close()
            raise
        self.folders: tuple[tuple[str, str], ...] = tuple(
            sorted(options.indexes.items(), key=lambda row: -len(row[1]))
        )
        """Names and folders, longest folder first; messages must not show folders."""
        self.on_change: Callable[[], object] = lambda: None
        """Called when queries see a new generation."""

    def __iter__(self) -> Iterator[OpenIndex]:
        return iter(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def find(self, name: str | None) -> OpenIndex:
        """Return the index of a name, the first one for None. Raises Problem 404 for an unknown name."""
        if name is None:
            return next(iter(self._all.values()))
        entry = self._all.get(name)
        if entry is None:
            raise Problem(
                404,
                "unknown_index",
                f"unknown index {name[:80]!r}",
                hint=f"indexes: {', '.join(self._all)}",
            )
        return entry

    def load(self, go_on: Callable[[], bool] = lambda: True) -> None:
        """Load the embedding models and read the indexes, so that the first questions do not wait for them.

        Raises Cancelled once `go_on` returns False.
        """
        for entry in self:
            entry.index.inspect.warm(go_on)

    async def stay_fresh(self, seconds: float) -> None:
        """Switch to new generations until cancelled, without delaying queries. A damaged generation is
        logged, and the old one stays in use.
        """
        errors: dict[str, str] = {}
        while True:
            await asyncio.sleep(seconds)
            for entry in self:
                try:
                    if await asyncio.to_thread(entry.index.refresh, warm=True):
                        self.on_change()
                        log.info("index %s: generation %d", entry.name, entry.index.generation)
                    errors.pop(entry.name, None)
                except KetragError as error:
                    if errors.get(entry.name) != error.message:
                        errors[entry.name] = error.message
                        log.error("index %s stays at its generation: %s", entry.name, error.message)

    def close(self) -> None:
        """Release files and models."""
        for entry in self._all.values():
            with contextlib.suppress(KetragError):
                entry.index.close()
