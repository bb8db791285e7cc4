"""`index.inspect`: direct access to the contents of an open generation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ketrag_fast.base.filters import filter_condition
from ketrag_fast.base.filters.allow import holds_always
from ketrag_fast.base.memory import enough_memory
from ketrag_fast.base.progress import Callback
from ketrag_fast.errors import IndexLocked, IndexMissing, InputError
from ketrag_fast.index.freshness import PastBuild, past_builds
from ketrag_fast.index.querying import retrieve_many
from ketrag_fast.index.state import IndexState
from ketrag_fast.query import inspect
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.plan import plan_query
from ketrag_fast.query.query import Clock, Filter, QueryFields, as_query, check_text, core_text
from ketrag_fast.query.retrieval import run_plan
from ketrag_fast.records import dataclass, replace
from ketrag_fast.storage import read_only as reading
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import read_progress
from ketrag_fast.types import Document, Entity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.base.filters import Condition
    from ketrag_fast.index.difference import ComparedIndex, IndexDifference
    from ketrag_fast.models.embedders.protocol import Role
    from ketrag_fast.query.core_plans import Plan
    from ketrag_fast.query.outline import Outline
    from ketrag_fast.query.search import Globs
    from ketrag_fast.query.themes.clusters import FoundThemes
    from ketrag_fast.systems.spec.system import Node
    from ketrag_fast.types import GraphView, Listed, Span

_QUESTION_TOKENS = 2000
"""Token budget of the passages around which the drawing for a question is centred."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """Documents, graphs, arrays and vectors of the generation that was open when `index.inspect` was read."""

    _opened: Opened
    _state: IndexState

    @property
    def filter(self) -> str | None:
        """The setting `filter`."""
        return self._opened.settings.filter

    @property
    def document_count(self) -> int:
        """The number of documents."""
        return inspect.document_count(self._opened)

    @enough_memory()
    def outline(self, glob: Globs = None, *, filter: Filter | None = None) -> Outline:
        """Return a map of a repository: its folders, the files that others use most, and what these define.

        Arguments are those of `Index.files`. `outline.text(tokens)` prints it.

        Examples:
            >>> index.inspect.outline().folders
            (('.', 3),)
        """
        from ketrag_fast.query.outline import outline_of
        from ketrag_fast.query.search import Searcher

        state, clock = self._state, Clock(None, 1)
        condition = self._opened.default_condition if filter is None else filter_condition(filter)
        searcher = Searcher(self._opened, state.folder)
        wanted = searcher.documents(self._opened.filtered(condition, clock.left), glob)
        return outline_of(self._opened, wanted, clock.left)

    @enough_memory()
    def definitions(self, document: str, query: str, most: int = 4) -> tuple[tuple[int, str], ...]:
        """Return up to `most` definitions of a file of source code whose names share words with a query.

        Each definition has the number of its line, from 1. Returns () for a document that is not source code,
        and for an unknown one. Four names take about twenty tokens of a reply; other numbers were not tried.
        """
        from ketrag_fast.base.scopes import scope_mask
        from ketrag_fast.query.definitions import matching_definitions

        texts = self._opened.texts
        number = texts.numbers.get(document)
        if number is None or not any(scope_mask("code", [document])):
            return ()
        text = texts.text(number)
        first = int(texts.core.first_line(number, text) or 1)
        found = matching_definitions(text, query, most)
        return tuple((first + text.count("\n", 0, offset), name) for offset, name in found)

    @enough_memory()
    def documents(
        self,
        first: int = 0,
        count: int = 1_000_000,
        containing: str = "",
        filter: Filter | None = None,
        theme: str | None = None,
        progress: Callback | None = None,
    ) -> list[Listed]:
        """Return at most `count` documents in index order, starting with number `first`.

        With `containing`, only documents whose id or title contains that text (ignoring case) are counted;
        with `filter`, only documents whose metadata match; with `theme`, only those of a theme that
        `index.themes(filter=filter)` returns, given by its id.
        """
        condition = None if filter is None else filter_condition(filter)
        rows = None
        if theme is not None:
            from ketrag_fast.query.themes.describe import find_themes, rows_of_theme

            rows = rows_of_theme(self._opened, find_themes(self._opened, condition, progress), theme)
        return inspect.documents(self._opened, first, count, containing, condition, rows)

    @enough_memory()
    def summarised_themes(self, progress: Callback | None = None) -> FoundThemes | None:
        """Return the themes with their summaries and units, or None if no summary holds."""
        from ketrag_fast.query.themes.describe import find_themes
        from ketrag_fast.query.themes.summaries import latest_summaries, with_summaries

        tables = Layout(self._state.path).tables
        if "links" not in self._opened.generation.stages or not latest_summaries(tables).summaries:
            return None
        found = find_themes(self._opened, None, progress)
        themes = with_summaries(self._opened, found, tables)
        if all(theme.summary is None for theme in themes.walk()):
            return None
        return replace(found, themes=themes)

    @enough_memory()
    def files(self, documents: Iterable[str]) -> dict[str, Path]:
        """Return the existing source file of each document, by document id."""
        from ketrag_fast.storage.source_files import file_of
        from ketrag_fast.storage.tables import Tables

        tables = Layout(self._state.folder).tables
        if not tables.is_file():
            return {}
        with Tables(tables, read_only=True) as opened:
            specs = opened.origins(dict.fromkeys(documents))
        files = {name: file_of(spec, name) for name, spec in specs.items()}
        return {name: path for name, path in files.items() if path is not None}

    def check_filter(self, condition: Condition) -> None:
        """Raise InputError if no document has a field of the condition; the message lists known fields."""
        self._opened.filtered(condition)

    @enough_memory()
    def fields(self) -> tuple[str, ...]:
        """Return the names of the metadata fields that filters can use; nested names have dots."""
        return tuple(self._opened.columns().fields)

    def stored(self) -> Iterable[Document]:
        """Yield the documents with their texts, in index order; only one text at a time is in memory.

        Raises:
            IndexMissing: A single generation is open, and the texts are stored with the index.
            IndexLocked: The documents have changed since this generation was published.
        """
        from ketrag_fast.storage.tables import Tables

        tables = Layout(self._state.folder).tables
        if not tables.is_file():
            raise IndexMissing(
                f"the texts of the documents are not stored in {self._state.folder}",
                hint="open the index itself, not one of its generations",
            )
        with Tables(tables, read_only=True) as opened:
            stored = self._opened.generation.manifest.documents.get("fingerprint")
            if opened.fingerprint() != stored:
                raise IndexLocked(
                    f"the documents of {self._state.folder} have changed since the open generation was "
                    "published",
                    hint="try again when the build has finished (if it was stopped, run `ketrag index`)",
                )
            yield from opened.documents()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of nodes in the graphs of the index: entity, concept, ..."""
        return tuple(inspector.WHAT for inspector in self._opened.inspectors)

    @enough_memory()
    def node(
        self,
        name: str,
        kind: str | None = None,
        *,
        filter: Filter | None = None,
    ) -> Node:
        """Return a node of the graphs by name, ignoring case.

        Args:
            name: Name of the entity, concept, ...
            kind: One of `kinds`; None searches all kinds in order.
            filter: Use the graphs of the matching documents only (see `Index.allowed`).

        Raises:
            UnknownName: No node has this name; the hint lists similar names.
            ModeUnavailable: The index has no graph with nodes of this kind.
        """
        if filter is None:
            return inspect.find_node(self._opened, name, kind)
        self._opened.filtered(filter_condition(filter))  # names the existing fields if one is unknown
        return inspect.find_node(self._state.restricted_by(filter).opened, name, kind)

    @enough_memory()
    def graphs(self) -> tuple[str, ...]:
        """Return the names of the graphs that `graph` draws."""
        return self._opened.drawings.names

    def missing_graphs(self) -> dict[str, str]:
        """Map the graphs that the index lacks to the commands that add them."""
        return self._opened.drawings.missing

    @enough_memory()
    def graph(
        self,
        name: str,
        *,
        around: str | Sequence[str] | None = None,
        to: str | None = None,
        question: str | None = None,
        units: Sequence[int] = (),
        limit: int = 300,
        filter: Filter | None = None,
        allow: Filter | None = None,
        progress: Callable[[int, int], bool | None] | None = None,
    ) -> GraphView:
        """Return a drawing of a graph: nodes with positions and communities, and edges.

        Without `around` and `question` the whole graph is drawn if it has at most `limit` nodes, else the
        nodes with the most edges and their best neighbours.

        Args:
            name: One of `graphs()`.
            around: Names of nodes (case is ignored), or numbers such as "#12" (`GraphNode.id`).
            to: Draw the shortest path from the node `around` to this node, and its surroundings.
            question: Draw the surroundings of the passages that `Index.retrieve` finds for a question.
            units: Draw the surroundings of these units (`Passage.unit`). They are numbered as in the whole
                index and cannot be combined with `filter` or `allow`, which change the numbers.
            limit: Maximum number of nodes.
            filter: Draw the graph of the matching documents only: no other document contributes a node, an
                edge, a count or a position.
            allow: The documents that the caller may see, with the same effect; both must match.
            progress: Called with (done, total) of a step; returning False stops the call (`Cancelled`).

        Raises:
            InputError: A graph, node or field does not exist; the hint lists similar names.
            ModeUnavailable: The index lacks the graph; the hint is the command that adds it.
        """
        from ketrag_fast.query import graph_view

        state = self._restricted(filter, allow)
        opened = self._opened if state is self._state else state.opened
        drawn = graph_view.check_limit(limit)
        if len(units) and state is not self._state:
            raise InputError("units cannot be combined with filter or allow", hint="use around or question")
        graph = opened.drawings.graph(name)
        names = [around] if isinstance(around, str) else list(around or ())
        seeds = [node for text in names for node in graph.find(text)]
        path: list[int] = []
        if to is not None:
            if len(names) != 1 or len(units) or question is not None:
                raise InputError("a path needs one start", hint="give around=NAME and to=NAME, and no more")
            path, seeds = graph.path(seeds, graph.find(to), progress), []
        if len(units):
            seeds += graph_view.nodes_of_units(graph, units, len(opened.searcher))[: max(drawn // 3, 1)]
        if question is not None:
            query = as_query(question, {"explain": False, "budget": _QUESTION_TOKENS})
            found = run_plan(plan_query(opened, state.path, query), [query.text])[0][0]
            units = [passage.unit for passage in found.passages]
            seeds += graph_view.nodes_of_units(graph, units, len(opened.searcher))[: max(drawn // 3, 1)]
            if not seeds:
                raise InputError(
                    "no passage matches the question",
                    hint="ask with other words, or leave out question",
                )
        return graph.view(seeds, drawn, progress, path)

    def _restricted(self, chosen: Filter | None, allow: Filter | None) -> IndexState:
        """Return the state of the documents that match a filter and `allow`."""
        state = self._state if allow is None else self._state.restricted_by(allow)
        condition = None if chosen is None else filter_condition(chosen)
        if condition is None or holds_always(condition):
            return state
        state.opened.filtered(condition)  # names the existing fields if one is unknown
        return state.restricted(condition)

    def entity(self, name: str) -> Entity:
        """Return an entity of a graph of entities with its relations and their source sentences.

        See `node`.
        """
        node = self.node(name, "entity")
        if not isinstance(node, Entity):
            raise InputError(f"{name!r} is not an entity")
        return node

    @enough_memory()
    def arrays(self) -> dict[str, Mapping[str, NDArray[Any]]]:
        """Return the arrays of each stage, memory-mapped and read-only."""
        return dict(self._opened.generation.stages)

    @enough_memory()
    def around(self, unit: int, before: int = 1, after: int = 1) -> list[tuple[int, Span]]:
        """Return the text and number of a unit (`Passage.unit`) and of the units next to it in its document.

        Raises InputError if the unit does not exist.
        """
        return inspect.neighbouring_units(self._opened, unit, before, after)

    @enough_memory()
    def unit_at(self, document: str, at: int = 0) -> int:
        """Return the unit (`Passage.unit`) that has character `at` of a document, given by its id.

        Between two units the earlier one is returned. Raises UnknownName if the index lacks the document.

        Examples:
            >>> index.inspect.unit_at("fram", 10) == index.inspect.documents(containing="fram")[0].unit
            True
        """
        return inspect.unit_at(self._opened, document, at)

    @enough_memory()
    def vectors(
        self, texts: Sequence[str], role: Role = "query", *, seconds: float | None = None
    ) -> NDArray[np.float32]:
        """Embed texts with the index's model; returns f32[texts, dimension] with rows of length 1.

        Raises ModeUnavailable if the index has no vectors, DeadlineExceeded after `seconds`.
        """
        checked = [core_text(check_text(text, position)) for position, text in enumerate(texts)]
        return inspect.vectors(self._opened, checked, role, seconds)

    def tokens(self, texts: Sequence[str]) -> int:
        """Return the total number of tokens in texts, counted as this index does."""
        return sum(self._opened.count_tokens(texts))

    def prepared(self, write: Callable[[Any], bytes], **fields: Unpack[QueryFields]) -> Plan | None:
        """Return a query plan that answers questions with JSON in the Rust core, without Python code.

        Returns None if a context needs Python (for explanations, reranking and similar). `write` serialises a
        value to JSON; `fields` and errors are those of `Index.retrieve`.

        Examples:
            >>> import json
            >>> plan = index.inspect.prepared(lambda value: json.dumps(value).encode(), mode="bm25")
            >>> json.loads(plan.answer("Who sailed the Fram?"))["passages"][0]["document"]
            'fram'
        """
        from ketrag_fast.query.core_plans import prepare_plan

        state, query = self._state.visible(as_query("prepared", fields))
        return prepare_plan(state.opened, state.path, query, write)

    @enough_memory()
    def warm(self, go_on: Callable[[], bool] = lambda: True) -> int:
        """Load the query model and read the arrays of the modes now, rather than with the first queries.

        Returns the number of bytes read, at most the setting `memory`. Raises Cancelled once `go_on` returns
        False.
        """
        from ketrag_fast.query.core_plans import warm_up

        if self._opened.questions is not None:
            self._opened.questions.load()
        return warm_up(self._opened, self._state.path, go_on)

    @enough_memory()
    def metadata(self, unit: int) -> dict[str, Any]:
        """Return the metadata of the document of a unit (`Passage.unit`).

        Raises InputError if the unit does not exist.
        """
        return inspect.metadata_of_unit(self._opened, unit)

    def location(self, unit: int, start: int, end: int) -> dict[str, Any]:
        """Return the source location (page, heading, ...) of a span of a unit's document; {} if unknown.

        Raises InputError if the unit does not exist.
        """
        return inspect.location_in_unit(self._opened, unit, start, end)

    def examples(self) -> tuple[str, ...]:
        """Return the example questions of the index; empty if the caller may see only some documents."""
        return () if self._state.allows else tuple(reading.examples(Layout(self._state.folder)))

    def builds(self, most: int = 50) -> list[PastBuild]:
        """Return the past builds, newest first; empty if the caller may see only some documents."""
        return [] if self._state.allows else past_builds(self._state.folder, most)

    def running_build(self) -> dict[str, Any] | None:
        """Return the progress (the fields of `Event`) of a build of this index in any process.

        Returns None if no build runs, or if the caller may see only some documents.
        """
        return None if self._state.allows else read_progress(Layout(self._state.folder))

    @property
    def has_answer_llm(self) -> bool:
        """Whether a model for answers is set (settings `answer_llm` and `llm`)."""
        return self._opened.answering is not None

    def diff(self, other: ComparedIndex, questions: Sequence[str] = ()) -> IndexDifference:
        """Compare this generation with another open index or another generation of this index.

        The result covers documents, settings, models, entities, relations, and the passages for `questions`.
        A single generation is opened by its folder: `Index.open("my-index/gen-000003")`. Raises the errors
        of `retrieve_many`.

        Examples:
            >>> with Index.build(library[:2], scratch / "two") as two:
            ...     index.inspect.diff(two).same
            False
        """
        from ketrag_fast.index.difference import difference

        own = [row[0] for row in retrieve_many(self._state, questions, {}, None)] if questions else []
        theirs = other.retrieve_many(questions) if questions else []
        return difference(self._opened.generation, other.inspect._opened.generation, questions, (own, theirs))

    def open_answer_llm(self) -> None:
        """Load the model for answers; an endpoint is not contacted.

        Raises BackendMissing, BackendError or ConfigError.
        """
        opened = self._opened
        if opened.answering is None:
            return
        if opened.writer is not None and opened.answering == opened.writer.spec:
            opened.writer.open()
        else:
            opened.extractors.find(opened.answering)
