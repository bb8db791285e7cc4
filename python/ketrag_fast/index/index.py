"""The class `Index`: build, open, change and query an index on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, Unpack, overload

from ketrag_fast.base.config import Settings
from ketrag_fast.base.memory import enough_memory
from ketrag_fast.errors import InputError
from ketrag_fast.index import querying
from ketrag_fast.index.state import IndexState
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.query import Filter, Query, QueryFields
from ketrag_fast.types import Context

if TYPE_CHECKING:
    from ketrag_fast.base.progress import Callback
    from ketrag_fast.building.preview import Preview
    from ketrag_fast.building.sources import Sources
    from ketrag_fast.index.freshness import Freshness, Refresh
    from ketrag_fast.index.inspection import Inspection
    from ketrag_fast.models.llms.protocol import LanguageModel
    from ketrag_fast.query.answer.generation import OnText
    from ketrag_fast.types import (
        Answer,
        BuildReport,
        Document,
        Excerpt,
        Failure,
        Files,
        Hits,
        Match,
        Themes,
        ThemeSummaries,
    )

    PathText = str | os.PathLike[str]
    Globs = str | Sequence[str] | None

_FORMATS: Final = "ketrag_fast.interchange"
"""A package of a higher layer, which is imported by name on first use."""


class Index:
    """An index on disk, opened for queries. Safe for concurrent use by threads, and after a fork.

    An open index keeps the generation that it opened until `refresh`; builds never disturb it.

    Attributes:
        path: Folder of the index.
        report: Report of the build; None for an index that was only opened.

    Examples:
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

    def __init__(
        self, path: Path, settings: Settings | None, report: BuildReport | None, deadline: float | None = None
    ) -> None:
        """Open the index at `path`. Use `Index.build` and `Index.open` instead."""
        self.report = report
        self._state = IndexState(path, settings or Settings(), deadline)
        self.path = self._state.path

    # ------------------------------------------------------------ build and change

    @classmethod
    @enough_memory()
    def build(
        cls,
        sources: Sources,
        path: PathText,
        *,
        settings: Settings | None = None,
        progress: Callback | None = None,
        replace: bool = False,
        rebuild: bool = False,
        partial: bool = False,
        check: bool = False,
        examples: Sequence[str] | None = None,
    ) -> Self:
        """Build the index at `path`, or bring it up to date, and open it.

        Only changed documents are processed. A build that was stopped or killed continues when it is called
        again.

        Args:
            sources: A path, a glob, an iterable of these, of `Document`s, or of both. They are added to the
                sources of the index.
            path: Folder of the index.
            settings: Settings; omitted ones come from the index, or are defaults. Environment variables and
                settings files only affect the command line.
            progress: Called with each `Event`; returning False stops the build.
            replace: Make these the only sources.
            rebuild: Compute everything again, which other chunk settings need (another embedder: `reembed`).
            partial: Call no LLM, and publish the results of earlier extraction calls.
            check: Compare the contents of all files; else those whose size, times and inode are as they were
                are not opened.
            examples: Example questions for the web page; None keeps the earlier ones.

        Raises Cancelled; DocumentError, ConfigError, ModelMismatch if the sources or settings cannot be used;
        IndexLocked, StorageFull, ReadOnly if the folder cannot be written.

        Examples:
            >>> with Index.build(library, scratch / "ships") as ships:
            ...     ships.report.documents, ships.generation
            (3, 1)
        """
        own = settings or Settings()
        options: dict[str, Any] = {
            "replace": replace,
            "rebuild": rebuild,
            "partial": partial,
            "thorough": check,
        }
        from ketrag_fast.index import building  # imported here because queries build nothing

        report = building.build_index(sources, path, own, progress=progress, examples=examples, **options)
        return cls(Path(path), own, report)

    @classmethod
    @enough_memory()
    def merge(
        cls,
        parts: Iterable[PathText],
        path: PathText,
        *,
        prefer: Literal["first", "last"] | None = None,
        settings: Settings | None = None,
        progress: Callback | None = None,
    ) -> Self:
        """Merge several indexes into one at `path`, and open it.

        The result equals a build over all their documents byte for byte, for any order of `parts`. No
        source is read, no LLM is called and nothing is embedded twice. If the call is stopped, the same call
        continues. A document that several parts contain must be equal in them unless `prefer` is given.

        Raises as `build`, and DocumentError if parts have different documents with one id, ConfigError or
        ModelMismatch if their settings or models differ, ReadOnly if `path` exists, IndexMissing,
        IndexDamaged, IndexIncompatible.

        Examples:
            >>> Index.build(library[:1], scratch / "one").close()
            >>> Index.build(library[1:], scratch / "two").close()
            >>> with Index.merge([scratch / "one", scratch / "two"], scratch / "whole") as whole:
            ...     whole.inspect.document_count
            3
        """
        own = settings or Settings()
        from ketrag_fast.index import building

        report = building.merge_indexes(parts, path, own, prefer=prefer, progress=progress)
        return cls(Path(path), own, report)

    @enough_memory()
    def update(
        self,
        *,
        add: Sources = (),
        remove: str | Sequence[str] = (),
        where: Filter | None = None,
        purge: bool = False,
        fold: bool = False,
        progress: Callback | None = None,
    ) -> BuildReport:
        """Add and remove documents, publish the new generation and switch to it.

        Results equal those of a build over the remaining documents byte for byte. So do the files, unless
        the change is stored as a delta, which large indexes do for small changes. No LLM is called.

        Args:
            add: Sources as in `build`; no other source is read again. A document replaces one with its id.
            remove: Document ids or patterns (`*` also matches `/`). They stay removed until `add`
                names them or their source. Unknown ids are reported as failures.
            where: Also remove the documents whose metadata matches this filter. A filter that matches
                every document raises InputError; `remove="*"` removes all.
            purge: Erase texts, vectors, replies and ids of removed documents from all files, and results
                cached for models that are no longer used.
            fold: Write a delta into the files of the index.
            progress: As in `build`.

        Raises as `build`, and IndexMissing.

        Examples:
            >>> with Index.build(library, scratch / "ships") as ships:
            ...     report = ships.update(remove="maud")
            >>> report.removed, report.documents
            (1, 2)
        """
        options: dict[str, Any] = {"purge": purge, "fold": fold, "progress": progress}
        from ketrag_fast.index import building

        report = building.update_index(self._state, add, remove, where, **options)
        self.refresh()
        return report

    def add(self, *sources: Sources, progress: Callback | None = None) -> BuildReport:
        """Add documents, files or folders, as `update(add=...)` does.

        Examples:
            >>> from ketrag_fast import Document
            >>> with Index.build(library, scratch / "ships") as ships:
            ...     report = ships.add(Document("gjoa", "Amundsen sailed the Gjøa in 1903."))
            ...     len(ships)
            4
        """
        from ketrag_fast.building.sources import list_given

        return self.update(add=[item for given in sources for item in list_given(given)], progress=progress)

    def remove(
        self, *documents: str, where: Filter | None = None, progress: Callback | None = None
    ) -> BuildReport:
        """Remove documents by id, by pattern or by their metadata, as `update(remove=..., where=...)` does.

        Examples:
            >>> with Index.build(library, scratch / "ships") as ships:
            ...     report = ships.remove("maud")
            ...     "maud" in ships
            False
        """
        return self.update(remove=documents, where=where, progress=progress)

    @enough_memory()
    def reembed(self, embedder: str | None = None, *, progress: Callback | None = None) -> BuildReport:
        """Replace the vectors by those of another embedding model, and switch to them.

        The new vectors are computed from the stored documents and published together; until then the old
        ones are used. If the call is stopped, the next one continues. Without `embedder` the index's model
        is used again, and nothing is published unless its vectors differ. Raises as `build`, and
        IndexMissing.

        Examples:
            >>> with Index.build(library, scratch / "ships") as ships:
            ...     report = ships.reembed(f"native:{folder}")
            ...     ships.inspect.vectors(["ice"]).shape
            (1, 24)
        """
        from ketrag_fast.index import building

        report = building.reembed_index(self._state, embedder, progress=progress)
        self.refresh()
        return report

    @enough_memory()
    def preview(
        self,
        *,
        add: Sources = (),
        remove: str | Sequence[str] = (),
        where: Filter | None = None,
        reread: bool = False,
        replace: bool = False,
        progress: Callback | None = None,
    ) -> Preview:
        """Return the changes that `update` would make, without making them.

        With `reread`, return the changes of `build`, which reads all sources again; with `replace`, of a
        build with only these sources. Raises the same errors.

        Examples:
            >>> preview = index.preview(remove="maud")
            >>> preview.added, preview.removed
            (0, 1)
        """
        options: dict[str, Any] = {"reread": reread, "replace": replace, "progress": progress}
        from ketrag_fast.index import building

        return building.preview_update(self.path, add, remove, where, self._state.settings, **options)

    # ------------------------------------------------------------ open and close

    @classmethod
    @enough_memory()
    def open(cls, path: PathText, *, settings: Settings | None = None, deadline: float | None = None) -> Self:
        """Open a built index. Its files are memory-mapped, and vectors are shared with other processes.

        With `settings.allow` the index of the allowed documents is built, or waited for if another process
        builds it, for at most `deadline` seconds.

        `path` may be a bundle in an object store (`s3://`, `gs://`, `az://`), which is copied to the cache
        folder when it is new or has changed. The copy is not a place for builds.

        Raises IndexMissing, IndexIncompatible, DeadlineExceeded, and IndexDamaged (checksums are compared
        unless `settings.verify` is "sizes").

        Examples:
            >>> with Index.open(index.path) as opened:
            ...     opened.retrieve("Who sailed the Maud?", top=1).passages[0].document
            'maud'
        """
        return cls(_local_folder(path), settings, None, deadline)

    @enough_memory()
    def refresh(self, *, deadline: float | None = None, warm: bool = False) -> bool:
        """Switch to the latest generation, or to an index that replaced this one; return whether it changed.

        With `warm`, the files that queries need are read before the switch, so that no query waits. Raises
        DeadlineExceeded if the documents that `settings.allow` permits cannot be opened within `deadline`
        seconds; the open generation then stays in use.

        Examples:
            >>> reader = Index.build(library, scratch / "ships")
            >>> with Index.open(scratch / "ships") as writer:
            ...     report = writer.update(remove="maud")
            >>> reader.generation, reader.refresh(), reader.generation
            (1, True, 2)
            >>> reader.close()
        """
        return self._state.refresh(deadline, warm=warm)

    @enough_memory()
    def freshen(self, how: Refresh | None = None, *, every: float = 0.0) -> Freshness:
        """Compare the source files with the index, and index changes if that is quick.

        Only files whose size, times or inode differ are opened. The index is not changed if a source is
        missing, if most files are missing, or if another process is changing it; `Freshness.line` describes
        the reason. Nothing is checked for an index that came from another machine.

        Args:
            how: "auto" indexes changes unless that is predicted to take more than 2 s; "always" indexes all
                changes; "never" does nothing; None uses the setting `refresh`.
            every: For servers: seconds for which the last result is returned without a new check.

        Examples:
            >>> index.freshen().changes
            0
        """
        from ketrag_fast.index.freshness import freshen_state

        return freshen_state(self._state, how, every)

    def close(self) -> None:
        """Release the mapped files and the models. Later use raises InputError.

        Examples:
            >>> opened = Index.open(index.path)
            >>> opened.close()
        """
        self._state.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @enough_memory()
    def allowed(self, allow: Filter, *, progress: Callback | None = None) -> Index:
        """Return the index as seen by a caller that may only see the documents matching `allow`.

        Its results, lists, counts and statistics equal those of an index of these documents alone. That index
        is built on first use in this index's folder, without calling a model, and cached until the next
        generation. It is read-only, and stays usable while this index is open. Modes that need chunks
        that no LLM has read raise ModeUnavailable.

        Raises InputError if `allow` cannot be parsed, matches every document, or names an unknown field;
        IndexLocked, ReadOnly, Cancelled if the index of these documents cannot be built.

        Examples:
            >>> with Index.build(library, scratch / "ships") as ships, ships.allowed("year<1900") as old:
            ...     [document.document for document in old.inspect.documents()]
            ['fram', 'nansen']
        """
        index = Index.__new__(Index)
        index.path, index.report = self.path, None
        index._state = self._state.restricted_by(allow, progress).shared()
        return index

    # ------------------------------------------------------------ properties

    @property
    def generation(self) -> int:
        """The number of the open generation.

        Examples:
            >>> index.generation
            1
        """
        return self._opened.generation.number

    @property
    def digest(self) -> str:
        """A hash of the index's content, equal for equal builds.

        Examples:
            >>> with Index.build(library, scratch / "again", settings=index_settings) as again:
            ...     again.digest == index.digest
            True
        """
        return self._opened.generation.manifest.digest

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._opened.texts)

    def __bool__(self) -> bool:
        """Return True, also for an index without documents."""
        return True

    def __contains__(self, document: object) -> bool:
        """Return whether the index has a document with this id."""
        return document in self._opened.texts.numbers

    def __iter__(self) -> Iterator[Document]:
        """Yield the documents in index order; one text at a time is in memory."""
        from ketrag_fast.query import inspect

        opened = self._opened
        return (inspect.document(opened, number) for number in range(len(opened.texts)))

    def __repr__(self) -> str:
        """Return the folder, and the numbers of documents and generation, in one line."""
        try:
            return f"<Index {str(self.path)!r}: {len(self):,} documents, generation {self.generation}>"
        except InputError:
            return f"<Index {str(self.path)!r}: closed>"

    def get(self, document: str) -> Document | None:
        """Return the document with this id, as it is indexed; None if there is none.

        Its text is the text that is searched: of a PDF, what was read from it. `text` returns lines of it.

        Examples:
            >>> index.get("fram").title, index.get("titanic")
            ('Fram', None)
            >>> [document.id for document in index]
            ['fram', 'maud', 'nansen']
        """
        from ketrag_fast.query import inspect

        number = self._opened.texts.numbers.get(document)
        return None if number is None else inspect.document(self._opened, number)

    @enough_memory()
    def count(self, filter: Filter | None = None) -> int:
        """Return the number of documents, or of those whose metadata matches a filter.

        Raises InputError for a filter that cannot be parsed, or that names an unknown field.

        Examples:
            >>> len(index), index.count(), index.count("year<1900")
            (3, 3, 2)
        """
        return len(self) if filter is None else len(self.inspect.documents(filter=filter))

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that this index can serve.

        Examples:
            >>> "walk" in index.modes, "noderag" in index.modes
            (True, False)
        """
        return tuple(mode for mode, lack in self._opened.missing.items() if lack is None)

    @property
    def inspect(self) -> Inspection:
        """Documents, graphs, arrays and vectors of the open generation.

        Examples:
            >>> index.inspect.document_count, index.inspect.kinds
            (3, ('entity',))
        """
        from ketrag_fast.index.inspection import Inspection

        return Inspection(self._state.opened, self._state)

    @enough_memory()
    def stats(self) -> dict[str, Any]:
        """Return counts, sizes, settings and failures, as `ketrag stats --json` prints them.

        Examples:
            >>> index.stats()["counts"]["documents"]
            3
        """
        from ketrag_fast.index.statistics import statistics

        return statistics(self._opened.generation, self._state.folder, self.modes, self._opened.trust)

    # ------------------------------------------------------------ query

    @enough_memory()
    def retrieve(self, query: str | Query, **fields: Unpack[QueryFields]) -> Context:
        """Return the context of a query: the best passages that fit its budget.

        Args:
            query: A text, or a `Query`.
            fields: Fields of `Query` (`mode`, `budget`, `top`, `filter`, `allow`, `deadline`, `explain`) to
                use with a text, or to replace those of a `Query`.

        Raises:
            EmptyQuery, ConfigError, InputError: The query is not valid; see `Query`.
            ModeUnavailable: The index lacks a part that the mode needs.
            DeadlineExceeded: The deadline has passed.

        Examples:
            >>> context = index.retrieve("Who sailed the Fram?", budget=200, filter="year<1900")
            >>> context.passages[0].document, context.tokens <= 200
            ('fram', True)
        """
        return querying.retrieve(self._state, query, fields)

    async def aretrieve(self, query: str | Query, **fields: Unpack[QueryFields]) -> Context:
        """Return what `retrieve` returns, without blocking the event loop.

        Examples:
            >>> import asyncio
            >>> asyncio.run(index.aretrieve("Who sailed the Maud?", top=1)).passages[0].document
            'maud'
        """
        import asyncio  # takes a third of the import time of this module

        return await asyncio.to_thread(lambda: self.retrieve(query, **fields))

    @overload
    def retrieve_many(
        self, queries: Sequence[str | Query], *, threads: int | None = None, **fields: Unpack[QueryFields]
    ) -> list[Context]: ...

    @overload
    def retrieve_many(
        self,
        queries: Sequence[str | Query],
        *,
        budgets: Sequence[int],
        threads: int | None = None,
        **fields: Unpack[QueryFields],
    ) -> list[list[Context]]: ...

    @enough_memory()
    def retrieve_many(
        self,
        queries: Sequence[str | Query],
        *,
        budgets: Sequence[int] | None = None,
        threads: int | None = None,
        **fields: Unpack[QueryFields],
    ) -> list[Context] | list[list[Context]]:
        """Return the contexts of many queries in order, ranked on `threads` threads (0: all cores).

        `queries` are texts, `Query` values or both; `fields` as in `retrieve`. A deadline is the time per
        query; queries with equal options share the total. With `budgets`, each query gets a list with a
        context per budget; its passages are ranked once, except in mode `keyword`, whose pool depends on the
        budget (KET-RAG, Algorithm 4).

        Examples:
            >>> contexts = index.retrieve_many(["Who sailed the Fram?", "Who sailed the Maud?"], top=1)
            >>> [context.passages[0].document for context in contexts]
            ['fram', 'maud']
            >>> rows = index.retrieve_many(["Who sailed north?"], budgets=[20, 200])
            >>> [[len(context.passages) for context in row] for row in rows]
            [[1, 3]]
        """
        rows = querying.retrieve_many(self._state, queries, fields, threads, budgets)
        return [row[0] for row in rows] if budgets is None else rows

    @enough_memory()
    def search(
        self,
        query: str | Query = "",
        limit: int = 10,
        *,
        glob: Globs = None,
        grep: str | None = None,
        related: str | None = None,
        **fields: Unpack[QueryFields],
    ) -> Hits:
        """Return the best passages for a query, each with its file, its lines and a snippet.

        Args:
            query: A text, or a `Query`.
            limit: Maximum number of hits.
            glob: Only files with a matching path, such as `*.md` or `docs/**/*.md`; may be a list of globs,
                and `!PATTERN` excludes files.
            grep: Only passages with a line that matches a regular expression.
            related: Instead of a query, a place such as `src/app.py:120` or a name in source code: find what
                defines the names that the place uses, what uses or tests the names that it defines, and what
                shares its rarest words. The `relation` of each hit says which.
            fields: As in `retrieve`; `min_score` excludes hits with a lower score.

        Raises as `retrieve`, InputError for a bad glob or pattern, and UnknownName if the index has no place
        `related`.

        Examples:
            >>> [hit.document for hit in index.search("Who sailed the Fram?", limit=1)]
            ['fram']
            >>> index.search("Who sailed the Fram?", grep="Maud")[0].document
            'maud'
            >>> index.search(related="fram", limit=1)[0].relation
            'shares sailed'
        """
        return querying.search(self._state, query, limit, fields, glob=glob, grep=grep, related=related)

    @enough_memory()
    def text(
        self,
        path: PathText,
        lines: int | Sequence[int] | None = None,
        *,
        filter: Filter | None = None,
        allow: Filter | None = None,
    ) -> Excerpt:
        """Return the indexed text of a file, or a part of it. The file itself is not read.

        Args:
            path: The path of a file or the id of a document, optionally with a position: `notes.md:93-110`,
                `notes.md:93:18` (18 lines), `report.pdf:p12`, `stock.xlsx:Stock!A65`, `talk.srt:00:12:30`.
            lines: First and last line; a single number is the first of 20 lines.
            filter: Only documents whose metadata matches, as in `retrieve`.
            allow: The documents that the caller may see.

        Raises UnknownName if the index has no such file, page or line, or the caller may not see it.

        Examples:
            >>> index.text("maud", lines=(1, 1)).text[:8]
            'Amundsen'
        """
        return querying.excerpt(self._state, path, lines, filter, allow)

    @enough_memory()
    def grep(
        self,
        pattern: str,
        *,
        ignore_case: bool = False,
        words: bool = False,
        fixed: bool = False,
        glob: Globs = None,
        limit: int | None = None,
        filter: Filter | None = None,
        allow: Filter | None = None,
        only: str | None = None,
        deadline: float | None = None,
    ) -> list[Match]:
        """Return the lines of the indexed texts that match a pattern, in index order.

        Args:
            pattern: A regular expression without look-around and back-references, matched in linear time.
            ignore_case: Match letters in any case.
            words: Match whole words only.
            fixed: Treat the pattern as literal text.
            glob: As in `search`.
            limit: Maximum number of lines.
            filter, allow: As in `text`.
            only: Only "code", "docs", "config" or "tests", by the paths of files.
            deadline: Time limit in seconds.

        Raises InputError for an invalid pattern, DeadlineExceeded.

        Examples:
            >>> [match.document for match in index.grep("fram|maud", ignore_case=True)]
            ['fram', 'maud']
        """
        compiled = querying.pattern_of(pattern, ignore_case=ignore_case, words=words, fixed=fixed)
        chosen = querying.Chosen(glob, filter, allow, only)
        return querying.grep(self._state, compiled, chosen, limit=limit, deadline=deadline)

    @enough_memory()
    def grep_counts(
        self,
        pattern: str,
        *,
        ignore_case: bool = False,
        words: bool = False,
        fixed: bool = False,
        glob: Globs = None,
        filter: Filter | None = None,
        allow: Filter | None = None,
        only: str | None = None,
    ) -> dict[str, int]:
        """Return the number of matching lines of each file, by path, or by document id if there is no file.

        Examples:
            >>> index.grep_counts("Maud")
            {'maud': 1}
        """
        compiled = querying.pattern_of(pattern, ignore_case=ignore_case, words=words, fixed=fixed)
        return querying.grep_counts(self._state, compiled, querying.Chosen(glob, filter, allow, only))

    def unindexed_lines(self, query: str, limit: int = 20) -> list[Match]:
        """Return lines of changed files that are not indexed yet, with words of the query.

        Examples:
            >>> index.unindexed_lines("polar ships")
            []
        """
        return querying.unindexed_lines(self._state, query, limit)

    def unsearched(self, glob: Globs = None, *, only: str | None = None) -> list[Failure]:
        """Return the files of the sources that `grep` does not read, with the reasons.

        These are ignored and hidden files and folders, binary files without a reader, files that cannot be
        read, and pointers to Git's large file storage. `grep` reads text files that are not indexed, such as
        lock files, from the disk. A caller with restricted rights gets no names.

        Examples:
            >>> index.unsearched()
            []
        """
        return querying.unsearched(self._state, glob, only)

    @enough_memory()
    def files(
        self, glob: Globs = None, *, filter: Filter | None = None, allow: Filter | None = None
    ) -> Files:
        """Return the indexed files, and documents that a program passed. Arguments are those of `grep`.

        Examples:
            >>> index.files().paths
            ('fram', 'maud', 'nansen')
        """
        return querying.files(self._state, glob, filter, allow)

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
        quotes: int = 3,
        **fields: Unpack[QueryFields],
    ) -> Answer:
        """Answer a query with an LLM from the context of the query, citing its passages.

        Args:
            query: A text or a `Query`. A deadline covers retrieval, loading the model and its answer, which
                is cut with a warning.
            llm: Spec (`llama-cpp:PATH.gguf`, `openai:MODEL@URL`, `native:FOLDER` to quote a span), loaded
                model, or None for the setting `answer_llm`, then `llm`. Without a model the answer has a
                `reason` and the context.
            tokens: Maximum length of the answer.
            seconds: Time limit of the answer.
            on_text: Receives the answer piece by piece; False stops it.
            on_context: Receives the context before the answer; False stops it.
            kind: "free", "yes-no" (the answer has a `decision`) or "choice" (it has a `ranking`).
            options: The options that "choice" ranks.
            quotes: Maximum number of sentences to quote if there is no model.
            fields: As in `retrieve`.

        Raises as `retrieve`, and BackendMissing, BackendError, NetworkForbidden, ConfigError.

        Examples:
            >>> answer = index.ask("Who sailed the Fram?")  # no model is named, so nothing is written
            >>> answer.reason, answer.context.passages[0].document
            ('no_model', 'fram')
        """
        given: dict[str, Any] = {"llm": llm, "tokens": tokens, "seconds": seconds, "quotes": quotes}
        given |= {"on_text": on_text, "on_context": on_context, "kind": kind, "options": options}
        return querying.ask(self._state, query, fields, **given)

    async def aask(self, query: str | Query, **options: Any) -> Answer:
        """Return what `ask` returns, without blocking the event loop. `on_text` runs on another thread.

        Examples:
            >>> import asyncio
            >>> asyncio.run(index.aask("Who sailed the Fram?")).reason
            'no_model'
        """
        import asyncio

        return await asyncio.to_thread(lambda: self.ask(query, **options))

    def annotate(self, text: str | None, folder: PathText | None = None) -> None:
        """Store a description of a folder of the sources, or of the whole index; None removes it.

        It is returned with each hit in the folder (`Hit.description`), survives rebuilds of the index,
        and is bundled with it.

        Raises InputError if the text is empty or longer than 500 characters, UnknownName if the folder is
        not in the index, IndexLocked while a build runs.

        Examples:
            >>> index.annotate("Ships and their crews")
            >>> index.descriptions()
            {'': 'Ships and their crews'}
            >>> index.annotate(None)
        """
        from ketrag_fast.index.annotations import annotate

        annotate(self._state.path, text, folder)

    def descriptions(self) -> dict[str, str]:
        """Return the descriptions by folder path; the key "" has the description of the whole index.

        Examples:
            >>> index.descriptions()
            {}
        """
        from ketrag_fast.index.annotations import descriptions_of, descriptions_with

        found = descriptions_of(self._state.path)
        return descriptions_with(found, self.files().paths) if found and self._state.allows else found

    @enough_memory()
    def themes(
        self, *, filter: Filter | None = None, allow: Filter | None = None, progress: Callback | None = None
    ) -> Themes:
        """Return the themes of the documents, with labels, central sentences, documents and dates.

        No model is called. Themes are clusters of passages, in two or three levels. They depend only on the
        documents that match `filter` and `allow`, so that they reveal nothing about others. The first call
        takes seconds for tens of thousands of passages; further calls with the same filter return the same
        value.

        Raises InputError for a bad filter or an unknown field, ModeUnavailable if the index was built without
        the mode `walk`, Cancelled.

        Examples:
            >>> [(theme.id, theme.passages) for theme in index.themes(filter="year<1900").themes]
            [('1', 2)]
        """
        return querying.themes(self._state, filter, allow, progress)

    @enough_memory()
    def summarise_themes(
        self,
        *,
        filter: Filter | None = None,
        allow: Filter | None = None,
        dry_run: bool = False,
        progress: Callback | None = None,
    ) -> ThemeSummaries:
        """Have an LLM (setting `answer_llm`, else `llm`) summarise the themes; return counts and costs.

        Summaries are written bottom up, each from passages of the theme and the summaries of the narrower
        themes, and stored in the index. `themes` returns a summary as long as all passages from which it was
        written are in the index, visible to the caller and in that theme, so after a change only the
        affected summaries are written again. A call that was stopped or reached `limit_seconds` or
        `limit_usd` continues when it is repeated. With `dry_run` no model is called, and the result has the
        calls, tokens and seconds that the missing summaries need.

        Raises as `themes`, and ModeUnavailable if no language model is set, EndpointNotConfirmed if its
        endpoint is named by the index only, BackendError if it fails, IndexLocked, ReadOnly.

        Examples:
            >>> settings = Settings(answer_llm="openai:mini@http://localhost/v1")
            >>> with Index.open(index.path, settings=settings) as opened:
            ...     opened.summarise_themes(dry_run=True).calls
            1
        """
        return querying.summarise_themes(self._state, filter, allow, progress, dry_run=dry_run)

    # ------------------------------------------------------------ export, import and copy

    def export(self, format: str, target: PathText, **options: Any) -> Any:
        """Write a graph of the index as graphrag, graphml, gexf, neo4j, jsonl or html.

        Options, report and errors are those of `export_graph`.

        Examples:
            >>> report = index.export("graphml", scratch / "walk.graphml", graph="walk")
            >>> report.nodes > 0
            True
        """
        return import_module(f"{_FORMATS}.exporting").export_graph(self, format, target, **options)

    @classmethod
    def from_lightrag(cls, folder: PathText, path: PathText, **options: Any) -> Self:
        """Build the index at `path` from a working directory of LightRAG, without an LLM, and open it.

        Options and errors are those of `import_index`, which also returns a report.

        Examples:
            >>> with Index.from_lightrag(lightrag_folder, scratch / "taken") as taken:
            ...     taken.inspect.entity("Fram").type
            'ARTIFACT'
        """
        import_module(f"{_FORMATS}.importing").import_index("lightrag", folder, path, **options)
        return cls.open(path, settings=options.get("settings"))

    @classmethod
    def from_graphrag(cls, folder: PathText, path: PathText, **options: Any) -> Self:
        """Build the index at `path` from the output folder of GraphRAG, without an LLM, and open it.

        Options and errors are those of `import_index`.

        Examples:
            >>> report = index.export("graphrag", scratch / "tables")
            >>> with Index.from_graphrag(scratch / "tables", scratch / "copy") as copy:
            ...     copy.inspect.document_count
            3
        """
        import_module(f"{_FORMATS}.importing").import_index("graphrag", folder, path, **options)
        return cls.open(path, settings=options.get("settings"))

    @enough_memory()
    def bundle(self, file: PathText, *, replace: bool = False, with_model: bool = False) -> int:
        """Write the index to one file, or object (`s3://`, `gs://`, `az://`), and return its size in bytes.

        `with_model` includes the folder of its embedding model, if it has one, so that queries on other
        machines need nothing else.

        Raises IndexMissing, IndexLocked; ConfigError if the file exists and `replace` is False, or the model
        is not a folder; BackendError, ModelMismatch if the model is not on this machine; StorageFull.

        Examples:
            >>> size = index.bundle(scratch / "ships.bundle")
            >>> size == (scratch / "ships.bundle").stat().st_size
            True
        """
        from ketrag_fast.index.bundles import write_bundle
        from ketrag_fast.index.object_stores import is_object, store_bundle

        if is_object(file):
            return store_bundle(self.path, str(file), replace=replace, with_model=with_model)
        return write_bundle(self.path, Path(file), replace=replace, with_model=with_model)

    @staticmethod
    @enough_memory()
    def unbundle(file: PathText, path: PathText) -> None:
        """Create the index at `path`, a new or empty folder, from a file that `bundle` wrote.

        Raises IndexMissing if there is no such file, ReadOnly if the folder is not empty, IndexDamaged if the
        file is not a valid bundle, or its model does not match the index, IndexIncompatible, StorageFull.

        Examples:
            >>> size = index.bundle(scratch / "ships.bundle", replace=True)
            >>> Index.unbundle(scratch / "ships.bundle", scratch / "unpacked")
            >>> with Index.open(scratch / "unpacked") as unpacked:
            ...     unpacked.digest == index.digest
            True
        """
        from ketrag_fast.index.bundles import read_bundle
        from ketrag_fast.index.object_stores import is_object, restore_bundle

        if is_object(file):
            restore_bundle(str(file), Path(path))
            return
        read_bundle(Path(file), Path(path))

    @property
    def _opened(self) -> Opened:
        return self._state.opened


def _local_folder(path: PathText) -> Path:
    """Return the folder of an index; of one in an object store, that of its local copy."""
    if isinstance(path, str) and "://" in path:
        from ketrag_fast.index.object_stores import cached_index, is_object

        if is_object(path):
            return cached_index(path)
    return Path(path)
