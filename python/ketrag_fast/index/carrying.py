"""What is done with whole indexes: make one of several, compare two, carry one as one file."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from ketrag_fast.base.config import Settings
from ketrag_fast.base.memory import enough_memory
from ketrag_fast.errors import ConfigError
from ketrag_fast.index.contents import Contents
from ketrag_fast.storage.layout import Layout

if TYPE_CHECKING:
    from ketrag_fast.base.progress import Callback, Event
    from ketrag_fast.index.difference import IndexDifference
    from ketrag_fast.models.endpoint_trust import Endpoint
    from ketrag_fast.types import BuildReport, Context


class Carrying(Contents):
    """The part of `Index` that is about folders of indexes."""

    @abstractmethod
    def __init__(self, path: Path, settings: Settings, report: BuildReport | None) -> None:
        """The index's own."""

    @classmethod
    @abstractmethod
    def open(cls, path: str | os.PathLike[str], *, settings: Settings | None = None) -> Self:
        """The index's own."""

    @abstractmethod
    def retrieve_many(self, questions: Sequence[str]) -> list[Context]:
        """The index's own."""

    @abstractmethod
    def __enter__(self) -> Self:
        """The index's own."""

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The index's own."""

    @classmethod
    @enough_memory()
    def merge(
        cls,
        parts: Iterable[str | os.PathLike[str]],
        path: str | os.PathLike[str],
        *,
        prefer: Literal["first", "last"] | None = None,
        settings: Settings | None = None,
        progress: Callback | Callable[[Event], bool | None] | None = None,
    ) -> Self:
        """Makes one index, at `path`, of several, and opens it; `.report` says what was done.

        It is the index that a build over all their documents gives, to the byte, in whatever order the parts
        are named: sources in the order that the parts have, else in that of their paths; documents of one
        source that several parts have by their ids, those of shards (`Settings(shard="1/4")`) as one build
        has them. No source is read and no language model is asked; what a part has embedded is not embedded
        again. Stopped or killed, the same call goes on. A document that several parts hold alike is one
        document; where they differ, `prefer` says whose counts.

        Raises DocumentError where parts hold different documents under one id, ConfigError where their
        settings differ, ModelMismatch where models do, ReadOnly where `path` is there, IndexMissing,
        IndexDamaged, IndexIncompatible, IndexLocked, StorageFull, Cancelled.
        """
        from ketrag_fast.build.merge import merge
        from ketrag_fast.systems.planning import stages_for

        asked = settings if settings is not None else Settings()
        places = [Path(part) for part in parts]
        report = merge(places, Path(path), stages_for, asked, prefer=prefer, progress=progress)
        return cls(Path(path), asked, report)

    @classmethod
    @enough_memory()
    def diff(
        cls,
        before: str | os.PathLike[str],
        after: str | os.PathLike[str],
        *,
        questions: Sequence[str] = (),
        settings: Settings | None = None,
    ) -> IndexDifference:
        """What differs between two indexes, or generations of one (`my-index/gen-000003`): documents,
        settings, models, entities, relations; and the passages of some `questions`, in the mode, budget and
        number that the settings say. Raises as `open` and `retrieve_many`.
        """
        from ketrag_fast.index.difference import difference

        with cls.open(before, settings=settings) as one, cls.open(after, settings=settings) as other:
            sides = (one, other) if questions else None
            return difference(one._opened.generation, other._opened.generation, sides, list(questions))

    @staticmethod
    @enough_memory()
    def bundle(
        path: str | os.PathLike[str],
        file: str | os.PathLike[str],
        *,
        replace: bool = False,
        with_model: bool = False,
    ) -> int:
        """Writes the index at `path` into one file; its size in bytes. `with_model` puts the folder of its
        embedding model in (where it has one), so that questions need nothing else on the other side.

        Raises IndexMissing, IndexLocked while one builds, ConfigError where the file is there or the model is
        no folder, BackendError or ModelMismatch where the model is not here, StorageFull.
        """
        from ketrag_fast.build.bundled_model import model_of
        from ketrag_fast.storage.bundle import bundle

        layout = Layout(Path(path))
        layout.require()
        model = model_of(layout) if with_model else None
        return bundle(layout, Path(file), replace=replace, model=model)

    @staticmethod
    @enough_memory()
    def unbundle(file: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
        """Makes an index at `path`, a folder that is not there or empty, of what `bundle` wrote. A model that
        is in it lies in the index's folder from then on, and is found there.

        Raises ReadOnly where the folder holds something, IndexDamaged where the file is not what `bundle`
        wrote or its model not the index's, IndexIncompatible, StorageFull.
        """
        from ketrag_fast.build.bundled_model import require_model
        from ketrag_fast.storage.bundle import unbundle

        unbundle(Path(file), Layout(Path(path)), check=require_model)

    @staticmethod
    def endpoints(path: str | os.PathLike[str], *, settings: Settings | None = None) -> list[Endpoint]:
        """Return the endpoints that the index at `path` names, and whether each is trusted.

        An endpoint that `settings` name too is trusted. Nothing is sent to any other. Opens no model.
        Raises IndexMissing, IndexDamaged, IndexIncompatible.
        """
        from ketrag_fast.models.endpoint_trust import Trust, endpoints_of
        from ketrag_fast.systems.index_settings import stored_settings

        layout = Layout(Path(path))
        layout.require()
        trust = Trust.of(layout, settings if settings is not None else Settings())
        return endpoints_of(stored_settings(layout.root) or {}, trust)

    @staticmethod
    def trust(path: str | os.PathLike[str], address: str, *, confirmed: bool = True) -> None:
        """Confirm that queries, and the API key, may be sent to an endpoint that the index at `path` names.

        The confirmation is stored in the user's state folder, for this path, index and address; a copy of the
        index has none. With `confirmed=False` it is taken back. Raises ConfigError if the index does not name
        the address, IndexMissing, ReadOnly.
        """
        from ketrag_fast.models.http.openai_endpoint import normalised
        from ketrag_fast.storage.confirmations import confirm, forget

        wanted = normalised(address)
        listed = [endpoint.address for endpoint in Carrying.endpoints(path)]
        if not confirmed:
            forget(Layout(Path(path)), wanted)
            return
        if wanted not in listed:
            there = f"it names {', '.join(dict.fromkeys(listed))}" if listed else "it names no endpoint"
            raise ConfigError(f"the index {path} does not name the endpoint {wanted}", hint=there)
        confirm(Layout(Path(path)), wanted)
