"""The class `Index`: build, open, change and query an index on disk."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from ketrag_fast.base.config import Settings, names
from ketrag_fast.base.filters import Condition, allow_condition, filter_condition
from ketrag_fast.base.memory import enough_memory
from ketrag_fast.errors import InputError
from ketrag_fast.index.inspection import Inspection
from ketrag_fast.query.limits import Clock, check_budget
from ketrag_fast.query.open_generation import Opened, load
from ketrag_fast.query.plan import plan_query
from ketrag_fast.query.query import Filter, Query, QueryBatch, QueryFields, as_query, batches_of
from ketrag_fast.query.retrieval import check_threads, retrieve_one, run_plan
from ketrag_fast.storage.generation import current_number, stamp_of
from ketrag_fast.storage.layout import Layout
from ketrag_fast.types import Context

if TYPE_CHECKING:
    from ketrag_fast.base.progress import Callback, Event
    from ketrag_fast.build.ingest import Sources
    from ketrag_fast.build.preview import Preview
    from ketrag_fast.index.difference import IndexDifference
    from ketrag_fast.models.llms.protocol import LanguageModel
    from ketrag_fast.query.answer.generation import OnText
    from ketrag_fast.types import Answer, BuildReport

    Path_ = str | os.PathLike[str]

_OPEN_PARTS = 16
"""Restricted indexes that stay open."""


class Index:
    """An index on disk, opened for queries. Safe for concurrent use by threads, and after a fork.

    An open index keeps the generation that it opened until `refresh`; builds never disturb it.

    Attributes:
        path: Folder of the index.
        report: What the build did, None for an index that was only opened.

    Example:
        >>> import tempfile
        >>> from ketrag_fast import Document, Index, Query
        >>> ships = [Document(id="fram", title="Fram", text="Nansen sailed the Fram into the ice in 1893.")]
        >>> folder = tempfile.TemporaryDirectory()
        >>> with Index.build(ships, f"{folder.name}/index") as index:
        ...     context = index.retrieve("Who sailed the Fram?", budget=200)
        ...     other = index.retrieve(Query("Who sailed the Fram?", budget=200, mode="bm25"))
        >>> [passage.document for passage in context.passages]
        ['fram']
        >>> folder.cleanup()
    """

    def __init__(self, path: Path, settings: Settings, report: BuildReport | None) -> None:
        """Open the index at `path`. Callers use `build` and `open`."""
        self.path = path
        self.report = report
        self._given = settings
        self._allows = () if settings.allow is None else (allow_condition(settings.allow),)
        self._parts: dict[str, Index] = {}
        self._lent = False
        self._whole: tuple[int, tuple[int, int]] = (0, (0, 0))
        """Number and stamp of the open generation of the whole index."""
        self._now: Opened | None = self._load(None)

    # ------------------------------------------------------------ build and change

    @classmethod
    @enough_memory()
    def build(
        cls,
        sources: Sources,
        path: Path_,
        *,
        settings: Settings | None = None,
        progress: Callback | None = None,
        replace: bool = False,
        rebuild: bool = False,
        partial: bool = False,
    ) -> Self:
        """Build the index at `path`, or bring it up to date, and open it.

        Only what has changed is computed. A build that was stopped or killed continues when it is called
        again.

        Args:
            sources: A path, a glob, an iterable of these, of `Document`s, or of both. They are added to the
                sources of the index.
            path: Folder of the index.
            settings: Settings; those left out come from the index and the environment.
            progress: Called with each `Event`; returning False stops the build.
            replace: Make these the only sources.
            rebuild: Compute everything again. Needed for other chunk settings (for another embedder use
                `reembed`).
            partial: Call no LLM, and publish what earlier calls have extracted.

        Raises:
            Cancelled: `progress` returned False.
            DocumentError, ConfigError, ModelMismatch: The sources or settings cannot be used.
            IndexLocked, StorageFull, ReadOnly: The folder cannot be written.
        """
        from ketrag_fast.build.runner import build
        from ketrag_fast.systems.planning import stages_for

        given = settings if settings is not None else Settings()
        options = {"progress": progress, "replace": replace, "rebuild": rebuild, "partial": partial}
        return cls(Path(path), given, build(path, sources, stages_for, given, **options))  # type: ignore[arg-type]

    @classmethod
    @enough_memory()
    def reembed(
        cls,
        path: Path_,
        embedder: str | None = None,
        *,
        settings: Settings | None = None,
        progress: Callback | None = None,
    ) -> Self:
        """Replace the vectors of an index by those of another model, and open it.

        The new vectors are computed from the stored documents and published at once; until then the old ones
        are used. If the call is stopped, the next one continues. Without `embedder` the index's model is used
        again, and nothing is published unless its vectors differ. Raises as `build`, and IndexMissing.
        """
        from ketrag_fast.build.reembed import reembed
        from ketrag_fast.systems.planning import stages_for

        usable = {"embedder", *names("query", "run")}
        values = {} if settings is None else settings.given
        given = Settings(**{name: value for name, value in values.items() if name in usable})
        if embedder is not None:
            given = given.having(embedder=embedder)
        return cls(Path(path), given, reembed(path, stages_for, given, progress=progress))

    @classmethod
    @enough_memory()
    def merge(
        cls,
        parts: Iterable[Path_],
        path: Path_,
        *,
        prefer: Literal["first", "last"] | None = None,
        settings: Settings | None = None,
        progress: Callback | None = None,
    ) -> Self:
        """Merge several indexes into one at `path`, and open it.

        The result equals a build over all their documents byte for byte, whatever the order of `parts`. No
        source is read, no LLM is called and nothing is embedded twice. If the call is stopped, the same call
        continues. A document that several parts contain must be equal in them unless `prefer` is given.

        Raises:
            DocumentError: Parts have different documents with one id.
            ConfigError, ModelMismatch: Their settings or models differ.
            ReadOnly: `path` exists.
            IndexMissing, IndexDamaged, IndexIncompatible, IndexLocked, StorageFull, Cancelled: As in `build`.
        """
        from ketrag_fast.build.merge import merge
        from ketrag_fast.systems.planning import stages_for

        given = settings if settings is not None else Settings()
        folders = [Path(part) for part in parts]
        report = merge(folders, Path(path), stages_for, given, prefer=prefer, progress=progress)
        return cls(Path(path), given, report)

    @enough_memory()
    def update(
        self,
        *,
        add: Sources = (),
        remove: str | Sequence[str] = (),
        where: Filter | None = None,
        purge: bool = False,
        progress: Callback | None = None,
    ) -> BuildReport:
        """Add and remove documents, publish the new generation and switch to it.

        The result equals a build over the remaining documents byte for byte. No LLM is called.

        Args:
            add: Sources as in `build`; no other source is read again.
            remove: Document ids, or patterns of them (`*` also matches `/`). They stay removed until `add`
                names them or their source. Unknown ids are reported as failures.
            where: Remove the documents whose metadata matches this filter, too.
            purge: Erase texts, vectors, replies and ids of removed documents from all files, and what is
                cached for models that are no longer used.
            progress: Called with each `Event`; returning False stops the update.

        Raises as `build`, and IndexMissing.
        """
        from ketrag_fast.build.runner import build
        from ketrag_fast.systems.planning import stages_for

        if self._allows:
            raise InputError("an index opened with allow cannot be changed", hint="open it without allow")
        Layout(self.path).require()
        report = build(
            self.path,
            add,
            stages_for,
            self._given,
            progress=progress,
            only=True,
            remove=_patterns(remove),
            purge=purge,
            where=None if where is None else filter_condition(where),
        )
        self.refresh()
        return report

    @staticmethod
    @enough_memory()
    def preview(
        path: Path_,
        *,
        add: Sources = (),
        remove: str | Sequence[str] = (),
        where: Filter | None = None,
        reread: bool = False,
        replace: bool = False,
        settings: Settings | None = None,
        progress: Callback | None = None,
    ) -> Preview:
        """Return what `update` would change, without doing it.

        With `reread`, what `build` would change, which reads all sources again; with `replace`, what a build
        with these sources alone would change. Raises as they do.
        """
        from ketrag_fast.build.preview import preview

        condition = None if where is None else filter_condition(where)
        options = {"where": condition, "reread": reread, "replace": replace, "progress": progress}
        return preview(Path(path), add, _patterns(remove), settings or Settings(), **options)  # type: ignore[arg-type]

    # ------------------------------------------------------------ open and close

    @classmethod
    @enough_memory()
    def open(cls, path: Path_, *, settings: Settings | None = None) -> Self:
        """Open a built index. Its arrays are memory-mapped and shared with other processes.

        Raises IndexMissing, IndexIncompatible, and IndexDamaged (checksums are compared unless
        `settings.verify` is "sizes").
        """
        return cls(Path(path), settings if settings is not None else Settings(), None)

    @enough_memory()
    def refresh(self) -> bool:
        """Switch to the latest generation, or to an index that replaced this one.

        Returns True if it changed.
        """
        layout, before, opened = Layout(self.path), self._whole, self._opened
        number = current_number(layout)
        if number is not None and (number, stamp_of(layout.generation(number))) == before:
            return False
        self._parts = {}
        self._now = self._load(opened)
        return self._whole != before

    def close(self) -> None:
        """Release the mapped files and the models. Later use raises InputError."""
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

    @enough_memory()
    def allowed(self, allow: Filter, *, progress: Callback | None = None) -> Index:
        """Return the index as a caller sees it who may only see the documents that match `allow`.

        Its results, lists, counts and statistics are those of an index of these documents alone. That index
        is built on first use in this index's folder without calling a model, and cached until the next
        generation. It cannot be changed, and stays usable while this index is open. Modes that need chunks
        no LLM has read raise ModeUnavailable.

        Raises:
            InputError: `allow` cannot be parsed, matches every document, or names an unknown field.
            IndexLocked, ReadOnly, Cancelled: The index of these documents cannot be built.
        """
        return self._restricted(allow_condition(allow), progress)

    # ------------------------------------------------------------ properties

    @property
    def generation(self) -> int:
        """The number of the open generation."""
        return self._opened.generation.number

    @property
    def digest(self) -> str:
        """A hash of the index's content, equal for equal builds."""
        return self._opened.generation.manifest.digest

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that this index can serve."""
        return tuple(mode for mode, lack in self._opened.missing.items() if lack is None)

    @property
    def inspect(self) -> Inspection:
        """Documents, graphs, arrays and vectors of the open generation."""
        return Inspection(self._opened, self.path, self._folder, lambda allow: self.allowed(allow).inspect)

    @enough_memory()
    def stats(self) -> dict[str, Any]:
        """Return counts, sizes, settings and failures, as `ketrag stats --json` prints them."""
        from ketrag_fast.index.statistics import statistics

        return statistics(self._opened.generation, self._folder, self.modes, self._opened.trust)

    # ------------------------------------------------------------ query

    @enough_memory()
    def retrieve(self, query: str | Query, **fields: Unpack[QueryFields]) -> Context:
        """Return the context of a query: the best passages that fit its budget.

        Args:
            query: A text, or a `Query`.
            fields: Fields of `Query` (`mode`, `budget`, `top`, `filter`, `allow`, `deadline`, `explain`) for
                a text, or to replace those of a `Query`.

        Raises:
            EmptyQuery, ConfigError, InputError: The query is not valid; see `Query`.
            ModeUnavailable: The index lacks a part of the mode.
            DeadlineExceeded: The time is over.
        """
        index, query = self._visible(as_query(query, fields))
        return retrieve_one(index._opened, index.path, query)

    async def aretrieve(self, query: str | Query, **fields: Unpack[QueryFields]) -> Context:
        """Return what `retrieve` returns, without blocking the event loop."""
        return await asyncio.to_thread(lambda: self.retrieve(query, **fields))

    @enough_memory()
    def retrieve_many(
        self, queries: Sequence[str | Query], *, threads: int | None = None, **fields: Unpack[QueryFields]
    ) -> list[Context]:
        """Return the contexts of many queries, in their order, ranked on `threads` threads (0: all cores).

        `queries` are texts, `Query` values or both; `fields` as in `retrieve`. A deadline is the time per
        query, and is shared by the queries with equal options.
        """
        return [row[0] for row in self._retrieve(queries, None, threads, fields)]

    @enough_memory()
    def retrieve_budgets(
        self,
        questions: Sequence[str | Query],
        *,
        budgets: Sequence[int],
        threads: int | None = None,
        **fields: Unpack[QueryFields],
    ) -> list[list[Context]]:
        """Return a context per budget for each query. Passages are ranked once for all budgets.

        Only `keyword` ranks for each budget, because its pool depends on it (KET-RAG, Algorithm 4).
        """
        if "budget" in fields:
            raise InputError("budget has no effect next to budgets", hint="leave out budget")
        return self._retrieve(questions, [check_budget(budget) for budget in budgets], threads, fields)

    @enough_memory()
    def ask(
        self,
        query: str | Query,
        *,
        llm: str | LanguageModel | None = None,
        tokens: int | None = None,
        seconds: float | None = None,
        on_text: OnText | None = None,
        on_context: Callable[[Context], bool | None] | None = None,
        kind: str | None = None,
        options: Sequence[str] = (),
        **fields: Unpack[QueryFields],
    ) -> Answer:
        """Return a language model's answer from the context of a query, with citations of its passages.

        Args:
            query: A text or a `Query`. A deadline covers retrieval, opening the model and its answer, which
                is cut with a warning.
            llm: Spec (`llama-cpp:PATH.gguf`, `openai:MODEL@URL`), open model, or None for the setting
                `writer`. Without a model the answer has a `reason` and the context.
            tokens: Maximum length of the answer.
            seconds: Time limit of the answer.
            on_text: Receives the answer piece by piece; False stops it.
            on_context: Receives the context before the answer; False stops it.
            kind: "free", "yes-no" (the answer has a `decision`) or "choice" (it has a `ranking`).
            options: What "choice" orders.
            fields: As in `retrieve`.

        Raises as `retrieve`, and BackendMissing, BackendError, NetworkForbidden, ConfigError.
        """
        from ketrag_fast.query.answering import answer_options, answer_query

        chosen = answer_options(
            llm=llm,
            tokens=tokens,
            seconds=seconds,
            on_text=on_text,
            on_context=on_context,
            kind=kind,
            options=options,
        )
        index, query = self._visible(as_query(query, fields))
        return answer_query(index._opened, index.path, query, chosen)

    async def aask(self, query: str | Query, **options: Any) -> Answer:
        """Return what `ask` returns, without blocking the event loop. `on_text` runs on another thread."""
        return await asyncio.to_thread(lambda: self.ask(query, **options))

    # ------------------------------------------------------------ compare and copy

    @classmethod
    @enough_memory()
    def diff(
        cls,
        before: Path_,
        after: Path_,
        *,
        questions: Sequence[str] = (),
        settings: Settings | None = None,
    ) -> IndexDifference:
        """Return the differences between two indexes, or generations of one (`my-index/gen-000003`).

        They cover documents, settings, models, entities, relations, and the passages of `questions`. Raises
        as `open` and `retrieve_many`.
        """
        from ketrag_fast.index.difference import difference

        with cls.open(before, settings=settings) as one, cls.open(after, settings=settings) as other:
            sides = (one, other) if questions else None
            return difference(one._opened.generation, other._opened.generation, sides, list(questions))

    @staticmethod
    @enough_memory()
    def bundle(path: Path_, file: Path_, *, replace: bool = False, with_model: bool = False) -> int:
        """Write the index at `path` into one file and return the file's size in bytes.

        `with_model` adds the folder of its embedding model, if it has one, so that queries elsewhere need
        nothing else.

        Raises:
            IndexMissing, IndexLocked: There is no index, or a build is running.
            ConfigError: The file exists and `replace` is False, or the model is not a folder.
            BackendError, ModelMismatch: The model is not on this machine.
            StorageFull: The disk is full.
        """
        from ketrag_fast.build.bundled_model import model_of
        from ketrag_fast.storage.bundle import bundle

        layout = Layout(Path(path))
        layout.require()
        model = model_of(layout) if with_model else None
        return bundle(layout, Path(file), replace=replace, model=model)

    @staticmethod
    @enough_memory()
    def unbundle(file: Path_, path: Path_) -> None:
        """Create the index at `path`, a new or empty folder, from a file that `bundle` wrote.

        Raises:
            ReadOnly: The folder is not empty.
            IndexDamaged: The file is not what `bundle` wrote, or its model is not the index's.
            IndexIncompatible, StorageFull: The index cannot be read or written here.
        """
        from ketrag_fast.build.bundled_model import require_model
        from ketrag_fast.storage.bundle import unbundle

        unbundle(Path(file), Layout(Path(path)), check=require_model)

    # ------------------------------------------------------------ internals

    @property
    def _opened(self) -> Opened:
        now = self._now
        if now is None:
            raise InputError("the index is closed", hint="open it again with Index.open")
        return now

    def _load(self, before: Opened | None) -> Opened:
        """Open the current generation, restricted to the documents that the settings allow."""
        opened, folder = load(self.path, self._given, before), self.path
        self._whole = (opened.generation.number, opened.generation.stamp)
        if self._allows:
            from ketrag_fast.index.allowed import restrict

            for allow in self._allows:
                opened, folder = restrict(folder, opened, allow, self._given)
        self._folder = folder
        return opened

    def _restricted(self, allow: Condition, progress: Callback | None) -> Index:
        """Return the open index of the documents that match, from the cache if it is there."""
        from ketrag_fast.index.allowed import restrict

        key = repr(allow)
        part = self._parts.pop(key, None)
        if part is None:
            part = Index.__new__(Index)
            part.path, part.report, part._given = self.path, None, self._given
            part._allows, part._parts, part._lent = (*self._allows, allow), {}, True
            part._whole = self._whole
            part._now, part._folder = restrict(self._folder, self._opened, allow, self._given, progress)
        self._parts[key] = part
        while len(self._parts) > _OPEN_PARTS:
            self._parts.pop(list(self._parts)[0], None)  # noqa: RUF015 - one step, safe next to other threads
        return part

    def _visible(self, query: Query, count: int = 1) -> tuple[Index, Query]:
        """Return the index that `query.allow` leaves, and the query for it with the time that is left."""
        if query.visible is None:
            return self, query
        clock = Clock(self._opened.settings.deadline if query.deadline is None else query.deadline, count)

        def in_time(_: Event) -> bool:
            clock.left()  # raises when the time is over
            return True

        return self._restricted(query.visible, in_time), query.without_allow(clock.each())

    def _retrieve(
        self,
        queries: Sequence[str | Query],
        budgets: Sequence[int] | None,
        threads: int | None,
        fields: QueryFields,
    ) -> list[list[Context]]:
        """Return the contexts of each query, one per budget."""
        batches: list[QueryBatch] = batches_of(queries, fields)
        workers = check_threads(self._opened.settings.threads if threads is None else threads)
        rows: list[list[Context]] = [[]] * len(queries)
        for batch in batches:
            count = len(batch.questions)
            index, query = self._visible(batch.query, count)
            plan = plan_query(index._opened, index.path, query, budgets=budgets, count=count)
            contexts = run_plan(plan, batch.questions, workers)
            for position, row in zip(batch.positions, contexts, strict=True):
                rows[position] = row
        return rows


def _patterns(remove: str | Sequence[str]) -> tuple[str, ...]:
    return (remove,) if isinstance(remove, str) else tuple(remove)
