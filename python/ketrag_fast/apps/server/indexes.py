"""The indexes of a service: opened at the start, each taking up its new generations by itself."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ketrag_fast.apps.server.options import ServerOptions
from ketrag_fast.apps.server.problems import Problem, log
from ketrag_fast.errors import ConfigError, KetragError
from ketrag_fast.index import Index


@dataclass(eq=False)
class OpenIndex:
    """One index under its name. `answering` lets one question at a time ask the language model."""

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
                "clients that may not see all documents may not change them",
                hint="leave out --allow or --allow-write",
            )
        self._all: dict[str, OpenIndex] = {}
        try:
            for name, folder in options.indexes.items():
                index = Index.open(folder, settings=settings)
                self._all[name] = OpenIndex(name, index, int(index.path.stat().st_mtime))
        except KetragError:
            self.close()
            raise
        self.folders: tuple[tuple[str, str], ...] = tuple(
            sorted(((n, f) for n, f in options.indexes.items()), key=lambda row: -len(row[1]))
        )
        """Names and folders, the longest first: what a message must not show."""

    def __iter__(self) -> Iterator[OpenIndex]:
        return iter(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def find(self, name: str | None) -> OpenIndex:
        """The index of a name; the first one for None. Problem 404 where there is none."""
        if name is None:
            return next(iter(self._all.values()))
        found = self._all.get(name)
        if found is None:
            raise Problem(
                404,
                "unknown_index",
                f"there is no index {name[:80]!r}",
                hint=f"there is: {', '.join(self._all)}",
            )
        return found

    def load(self) -> None:
        """Loads the models of questions, so that the first question waits for nothing."""
        for entry in self:
            entry.index.inspect.warm()

    async def stay_fresh(self, seconds: float, on_change: Mapping[str, object] | None = None) -> None:
        """Takes up new generations until it is cancelled. A damaged one is said in the log, and the old one
        goes on answering.
        """
        errors: dict[str, str] = {}
        while True:
            await asyncio.sleep(seconds)
            for entry in self:
                try:
                    if await asyncio.to_thread(entry.index.refresh):
                        log.info("index %s: generation %d", entry.name, entry.index.generation)
                    errors.pop(entry.name, None)
                except KetragError as error:
                    if errors.get(entry.name) != error.message:
                        errors[entry.name] = error.message
                        log.error("index %s stays at its generation: %s", entry.name, error.message)

    def close(self) -> None:
        """Lets go of files and models."""
        for entry in self._all.values():
            with contextlib.suppress(KetragError):
                entry.index.close()
