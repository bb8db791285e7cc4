"""The facade: build an index, open it, ask it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ketrag_fast.base.config import Settings, names
from ketrag_fast.base.filters import Condition, allow_condition, condition_of, parse_filter
from ketrag_fast.base.memory import enough_memory
from ketrag_fast.errors import InputError
from ketrag_fast.index.questions import Filter, Questions
from ketrag_fast.query.open_generation import Opened, load
from ketrag_fast.storage.generation import current_number, stamp_of
from ketrag_fast.storage.layout import Layout

if TYPE_CHECKING:
    from ketrag_fast.base.progress import Callback, Event
    from ketrag_fast.build.ingest import Sources
    from ketrag_fast.build.preview import Preview
    from ketrag_fast.types import BuildReport


_OPEN_PARTS = 16
"""Indexes of some of the documents that stay open."""


def _condition(given: Filter | None) -> Condition | None:
    if given is None:
        return None
    return parse_filter(given) if isinstance(given, str) else condition_of(given)


class Index(Questions):
    """An index on disk, opened for questions. Safe for many threads at once, and after a fork.

    Readers keep the generation they opened until `refresh`; a builder never disturbs them.
    """

    def __init__(self, path: Path, settings: Settings, report: BuildReport | None) -> None:
        self.path = path
        self.report = report
        self._given = settings
        self._allows: tuple[Filter, ...] = () if settings.allow is None else (settings.allow,)
        self._parts: dict[str, Index] = {}
        self._lent = False
        self._whole: tuple[int, tuple[int, int]] = (0, (0, 0))
        """Number and stamp of the generation that is open, or of which a part is."""
        self._now: Opened | None = self._load(None)

    def _load(self, before: Opened | None) -> Opened:
        """The generation that is current; of it, where not all may be seen, what may."""
        opened, folder = load(self.path, self._given, before), self.path
        self._whole = (opened.generation.number, opened.generation.stamp)
        if self._allows:
            from ketrag_fast.index.allowed import restrict

            for allow in self._allows:
                opened, folder = restrict(folder, opened, allow, self._given)
        self._folder = folder
        return opened

    # ------------------------------------------------------------ life

    @classmethod
    @enough_memory()
    def build(
        cls,
        sources: Sources,
        path: str | os.PathLike[str],
        *,
        settings: Settings | None = None,
        progress: Callback | Callable[[Event], bool | None] | None = None,
        replace: bool = False,
        rebuild: bool = False,
        partial: bool = False,
    ) -> Index:
        """Builds the index at `path`, or brings it up to date, and opens it.

        `sources`: a path, a glob, an iterable of these, of `Document`s, or of both. Sources accumulate in
        the index; `replace` makes these the only ones. What has not changed is not done again; `rebuild`
        does everything anew, and is needed for another cutting of units (for another embedder there is
        `reembed`). A build that was stopped or killed goes on when called again; with `partial` it asks no
        language model, and publishes what the last one has read so far. `.report` says what was done.

        Raises Cancelled when `progress` returned False, DocumentError, ConfigError, IndexLocked,
        StorageFull, ReadOnly, ModelMismatch.
        """
        from ketrag_fast.build.runner import build
        from ketrag_fast.systems.planning import stages_for

        asked = settings if settings is not None else Settings()
        report = build(
            path,
            sources,
            stages_for,
            asked,
            progress=progress,
            replace=replace,
            rebuild=rebuild,
            partial=partial,
        )
        return cls(Path(path), asked, report)

    @classmethod
    @enough_memory()
    def reembed(
        cls,
        path: str | os.PathLike[str],
        embedder: str | None = None,
        *,
        settings: Settings | None = None,
        progress: Callback | Callable[[Event], bool | None] | None = None,
    ) -> Index:
        """Gives a built index the vectors of another model, and opens it; `.report` says what was done.

        The second set of vectors is made beside the first, from the documents that the index holds, and
        published at once: readers keep the old generation until they `refresh`. Stopped or killed, the
        old one serves, and what was embedded is kept for the next call. With no `embedder` the index's
        own is used again; nothing is done unless it gives other vectors than before.

        Raises as `build`, and IndexMissing.
        """
        from ketrag_fast.build.reembed import reembed
        from ketrag_fast.systems.planning import stages_for

        given = settings.given if settings is not None else {}
        kept = {"embedder", *names("query", "run")}
        asked = Settings(**{name: value for name, value in given.items() if name in kept})
        if embedder is not None:
            asked = asked.having(embedder=embedder)
        report = reembed(path, stages_for, asked, progress=progress)
        return cls(Path(path), asked, report)

    @enough_memory()
    def update(
        self,
        *,
        add: Sources = (),
        remove: str | Sequence[str] = (),
        where: Filter | None = None,
        purge: bool = False,
        progress: Callback | Callable[[Event], bool | None] | None = None,
    ) -> BuildReport:
        """Adds and removes documents, publishes the index without them, and takes it up.

        `add` is what `build` takes; no other source is read again. `remove` are ids, or patterns of them
        (`*` also passes over `/`); documents whose metadata fits `where`, a filter as in `retrieve`, go, too.
        What is removed stays away though its source has it, until `add` names
        it or its source. Ids that no document has are among the report's failures. No language model is
        asked. The result is the index that a build over the documents that are there would give, to the
        byte. With `purge` no text, vector, reply or id of what was removed is left in any file; what was
        kept for models that the index does not use any more goes with it, as do reports of earlier builds.

        Raises as `build`, and IndexMissing.
        """
        from ketrag_fast.build.runner import build
        from ketrag_fast.systems.planning import stages_for

        if self._allows:
            raise InputError(
                "an index of which not all may be seen cannot be changed", hint="open it without allow"
            )
        Layout(self.path).require()
        patterns = (remove,) if isinstance(remove, str) else tuple(remove)
        report = build(
            self.path,
            add,
            stages_for,
            self._given,
            progress=progress,
            only=True,
            remove=patterns,
            purge=purge,
            where=_condition(where),
        )
        self.refresh()
        return report

    @classmethod
    @enough_memory()
    def preview(
        cls,
        path: str | os.PathLike[str],
        *,
        add: Sources = (),
        remove: str | Sequence[str] = (),
        where: Filter | None = None,
        reread: bool = False,
        replace: bool = False,
        settings: Settings | None = None,
        progress: Callback | Callable[[Event], bool | None] | None = None,
    ) -> Preview:
        """What `update` would change, without doing it; with `reread` what `build` would, which reads all
        sources again, and with `replace` what a build with these alone would. Raises as they do.
        """
        from ketrag_fast.build.preview import preview

        patterns = (remove,) if isinstance(remove, str) else tuple(remove)
        own = settings or Settings()
        return preview(
            Path(path),
            add,
            patterns,
            own,
            where=_condition(where),
            reread=reread,
            replace=replace,
            progress=progress,
        )

    @classmethod
    @enough_memory()
    def open(cls, path: str | os.PathLike[str], *, settings: Settings | None = None) -> Index:
        """Opens a built index; its arrays are mapped and shared with other processes.

        Raises IndexMissing, IndexDamaged (checksums are compared unless `settings.verify` is "sizes"),
        IndexIncompatible.
        """
        return cls(Path(path), settings if settings is not None else Settings(), None)

    @enough_memory()
    def refresh(self) -> bool:
        """Takes up the generation published since, or the index that was put in this one's place; True if
        there was one.
        """
        layout, before, opened = Layout(self.path), self._whole, self._opened
        number = current_number(layout)
        if number is not None and (number, stamp_of(layout.generation(number))) == before:
            return False
        self._parts = {}
        self._now = self._load(opened)
        return self._whole != before

    def close(self) -> None:
        """Lets go of the mapped files and of the model. Using the index afterwards is an InputError."""
        now, self._now = self._now, None
        self._parts = {}
        if now is not None and not self._lent:
            now.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _opened(self) -> Opened:
        now = self._now
        if now is None:
            raise InputError("the index is closed", hint="open it again with Index.open")
        return now

    @enough_memory()
    def allowed(self, allow: Filter, *, progress: Callback | None = None) -> Index:
        """This index for somebody who may see no other documents than those that `allow` fits.

        What it answers, lists, counts and says of itself is what an index of these documents alone would.
        That index is made when its documents are first asked for, in the folder of this one, and kept until
        the next generation; no model is asked. It cannot be changed, and serves as long as this one is open.
        Modes whose tables would need chunks that nobody has read are ModeUnavailable. Raises InputError where
        `allow` makes no sense, IndexLocked where the documents have changed since, ReadOnly, Cancelled.
        """
        from ketrag_fast.index.allowed import restrict

        key = repr(allow_condition(allow))
        known = self._parts.pop(key, None)
        if known is None:
            known = Index.__new__(Index)
            known.path, known.report, known._given = self.path, None, self._given
            known._allows, known._parts, known._lent = (*self._allows, allow), {}, True
            known._whole = self._whole
            known._now, known._folder = restrict(self._folder, self._opened, allow, self._given, progress)
        self._parts[key] = known
        while len(self._parts) > _OPEN_PARTS:
            self._parts.pop(list(self._parts)[0], None)  # noqa: RUF015 - one step, beside other threads
        return known
