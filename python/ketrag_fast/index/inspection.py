"""`index.inspect`: what an opened generation holds, read without a query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.filters import allow_condition, filter_condition
from ketrag_fast.base.memory import enough_memory
from ketrag_fast.errors import InputError
from ketrag_fast.index.state import IndexState
from ketrag_fast.query import inspect
from ketrag_fast.query.limits import check_text, core_text
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.query import Filter
from ketrag_fast.storage.layout import Layout
from ketrag_fast.types import Entity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.models.embedders.protocol import Role
    from ketrag_fast.systems.spec.system import Node
    from ketrag_fast.types import Listed, Span


@dataclass(frozen=True, slots=True)
class Inspection:
    """Documents, graphs, arrays and vectors of the generation that was open when `index.inspect` was read."""

    _opened: Opened
    _state: IndexState

    @property
    def filter(self) -> str | None:
        """The filter of the settings."""
        return self._opened.settings.filter

    @property
    def document_count(self) -> int:
        """The number of documents."""
        return inspect.document_count(self._opened)

    @enough_memory()
    def documents(self, first: int = 0, count: int = 1_000_000, containing: str = "") -> list[Listed]:
        """Return at most `count` documents in index order, starting with number `first`.

        With `containing`, only documents whose id or title contains that text in any case are counted.
        """
        return inspect.documents(self._opened, first, count, containing)

    @enough_memory()
    def files(self, documents: Iterable[str]) -> dict[str, Path]:
        """Return the files that documents were read from, by document id, if they still exist."""
        from ketrag_fast.readers.files import place_of
        from ketrag_fast.storage.tables import Tables

        tables = Layout(self._state.folder).tables
        if not tables.is_file():
            return {}
        with Tables(tables, read_only=True) as opened:
            specs = opened.origins(dict.fromkeys(documents))
        files = {name: place_of(spec, name) for name, spec in specs.items()}
        return {name: path for name, path in files.items() if path is not None}

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of nodes in the index's graphs: entity, concept, ..."""
        return tuple(inspector.WHAT for inspector in self._opened.inspectors)

    @enough_memory()
    def node(
        self,
        name: str,
        kind: str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002 - as in `Query`
    ) -> Node:
        """Return a node of the index's graphs by name, in any case.

        Args:
            name: Name of the entity, concept, ...
            kind: One of `kinds`; without it they are searched in their order.
            filter: Use the graphs of the matching documents only (see `Index.allowed`).

        Raises:
            InputError: No node has this name; the hint lists similar names.
            ModeUnavailable: The index has no graph, or none of this kind.
        """
        if filter is not None:
            self._opened.filtered(filter_condition(filter))  # names the existing fields if one is unknown
            part = self._state.restricted(allow_condition(filter))
            return inspect.find_node(part.opened, name, kind)
        return inspect.find_node(self._opened, name, kind)

    def entity(self, name: str) -> Entity:
        """Return an entity of the skeleton with its relations and their source sentences; see `node`."""
        node = self.node(name, "entity")
        if not isinstance(node, Entity):
            raise InputError(f"{name!r} is not an entity of a skeleton")
        return node

    @enough_memory()
    def arrays(self) -> dict[str, Mapping[str, NDArray[Any]]]:
        """Return the arrays of each stage, memory-mapped and read-only."""
        return dict(self._opened.generation.stages)

    @enough_memory()
    def around(self, unit: int, before: int = 1, after: int = 1) -> list[tuple[int, Span]]:
        """Return a unit (`Passage.unit`) and its neighbours in its document, each with its number.

        Raises InputError if the unit does not exist.
        """
        return inspect.neighbouring_units(self._opened, unit, before, after)

    @enough_memory()
    def vectors(
        self, texts: Sequence[str], role: Role = "query", *, seconds: float | None = None
    ) -> NDArray[np.float32]:
        """Return the vectors of texts in the index's space, f32[texts, dimension], rows of length 1.

        Raises ModeUnavailable if the index has no vectors, DeadlineExceeded after `seconds`.
        """
        checked = [core_text(check_text(text, position)) for position, text in enumerate(texts)]
        return inspect.vectors(self._opened, checked, role, seconds)

    def tokens(self, texts: Sequence[str]) -> int:
        """Return the total number of tokens of some texts, as this index counts."""
        return inspect.tokens(self._opened, texts)

    def embeds(self, mode: str | None = None) -> bool:
        """Return whether an embedding model computes the vectors of queries in a mode."""
        return inspect.embeds(self._opened, mode, self._state.path)

    @enough_memory()
    def warm(self) -> None:
        """Load the embedding model of queries now instead of with the first query."""
        if self._opened.questions is not None:
            self._opened.questions.load()

    @enough_memory()
    def metadata(self, unit: int) -> dict[str, Any]:
        """Return the metadata of the document that a unit (`Passage.unit`) is from.

        Raises InputError if the unit does not exist.
        """
        return inspect.metadata_of_unit(self._opened, unit)

    @property
    def has_answer_llm(self) -> bool:
        """Whether a language model answers questions (settings `answer_llm` and `llm`)."""
        return self._opened.writer is not None

    def hyde_model(self) -> dict[str, Any] | None:
        """Return the spec, fingerprint and prompt hash of the model that writes passages for mode hyde."""
        writer = self._opened.writer
        return None if writer is None else writer.about()
