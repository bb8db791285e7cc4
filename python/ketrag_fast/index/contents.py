"""What an opened index tells about itself: numbers, documents, nodes of its graphs, vectors, tokens."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.memory import enough_memory
from ketrag_fast.errors import InputError, ModeUnavailable
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.preparation import question_text
from ketrag_fast.storage.layout import Layout
from ketrag_fast.types import Entity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.models.embedders.protocol import Role
    from ketrag_fast.systems.spec.system import Node, OnEpoch, Trained
    from ketrag_fast.types import Listed, Span


class Contents(ABC):
    """The part of `Index` that asks no question. An index gives it a path and what is opened."""

    path: Path
    _folder: Path
    """Where what is opened lies: `path`, or in it the index of what may be seen."""

    @property
    @abstractmethod
    def _opened(self) -> Opened:
        """What is open at this moment."""

    @abstractmethod
    def allowed(self, allow: str | Mapping[str, Any]) -> Contents:
        """The documents that fit alone."""

    @property
    def filter(self) -> str | None:
        """The filter of the settings."""
        return self._opened.settings.filter

    @property
    def generation(self) -> int:
        """The number of the generation that answers."""
        return self._opened.generation.number

    @property
    def digest(self) -> str:
        """A hash of the index's content, equal for equal builds."""
        return self._opened.generation.manifest.digest

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that this index can serve."""
        return tuple(mode for mode, missing in self._opened.missing.items() if missing is None)

    @enough_memory()
    def stats(self) -> dict[str, Any]:
        """What the index holds, as `ketrag stats --json` prints it."""
        from ketrag_fast.index.statistics import statistics

        return statistics(self._opened.generation, self._folder, self.modes, self._opened.trust)

    @enough_memory()
    def files(self, documents: Iterable[str]) -> dict[str, Path]:
        """The files that documents are from, as far as they are still there."""
        from ketrag_fast.readers.files import place_of
        from ketrag_fast.storage.tables import Tables

        tables = Layout(self._folder).tables
        if not tables.is_file():
            return {}
        with Tables(tables, read_only=True) as opened:
            specs = opened.origins(dict.fromkeys(documents))
        found = {name: place_of(spec, name) for name, spec in specs.items()}
        return {name: path for name, path in found.items() if path is not None}

    @property
    def kinds(self) -> tuple[str, ...]:
        """What the index's graphs name: entities of a skeleton, concepts, ..."""
        return tuple(one.WHAT for one in self._opened.inspectors)

    @enough_memory()
    def node(
        self,
        name: str,
        kind: str | None = None,
        *,
        filter: str | Mapping[str, Any] | None = None,  # noqa: A002 - as in `retrieve`
    ) -> Node:
        """What the index's graphs know under a name (an entity of the skeleton, ...). Case does not matter.

        The first of `kinds` that has the name answers, or `kind` alone. With a `filter` it is what the graphs
        of the documents that fit would know (see `Index.allowed`). Raises InputError with near
        names where there is none, ModeUnavailable where no graph (of this kind) is there.
        """
        if filter is not None:
            self._opened.filtered(filter)  # here an unknown field may be answered with those that there are
            return self.allowed(filter).node(name, kind)
        inspectors = self._opened.inspectors
        if not inspectors:
            raise ModeUnavailable(
                "this index has no graph of named things",
                hint="build a skeleton with `ketrag index --llm SPEC` (heuristic needs no model), or "
                "concepts with `--modes auto,concepts`",
            )
        if kind is not None:
            inspectors = [one for one in inspectors if kind == one.WHAT]
            if not inspectors:
                raise ModeUnavailable(
                    f"no graph of this index has nodes of kind {kind!r}",
                    hint=f"it has: {', '.join(self.kinds)}",
                )
        found = next((node for one in inspectors if (node := one.find(name)) is not None), None)
        if found is not None:
            return found
        near = dict.fromkeys(other for one in inspectors for other in one.near(name))
        what = " or ".join(one.WHAT for one in inspectors)
        hint = f"did you mean {', '.join(near)}?" if near else "and none has a name that is near"
        raise InputError(f"there is no {what} {name!r}", hint=hint)

    def entity(self, name: str) -> Entity:
        """An entity of the skeleton with its relations and the sentences that they come from; as `node`."""
        found = self.node(name, "entity")
        if not isinstance(found, Entity):
            raise InputError(f"{name!r} is no entity of a skeleton")
        return found

    @enough_memory()
    def arrays(self) -> dict[str, Mapping[str, NDArray[Any]]]:
        """The arrays of each stage, mapped and read-only, for those who look at graphs themselves."""
        return dict(self._opened.generation.stages)

    @enough_memory()
    def documents(self, first: int = 0, count: int = 1_000_000, containing: str = "") -> list[Listed]:
        """The documents in the order of the index, from the one numbered `first` on, `count` at most; of
        those whose id or title contains a text, whatever its case.
        """
        from ketrag_fast.query.inspect import documents

        return documents(self._opened, first, count, containing)

    @property
    def document_count(self) -> int:
        """How many documents the index holds."""
        from ketrag_fast.query.inspect import document_count

        return document_count(self._opened)

    @enough_memory()
    def around(self, unit: int, before: int = 1, after: int = 1) -> list[tuple[int, Span]]:
        """A unit (`Passage.unit`) and its neighbours in its document, each with its number.

        Raises InputError where there is no such unit.
        """
        from ketrag_fast.query.inspect import neighbouring_units

        return neighbouring_units(self._opened, unit, before, after)

    @enough_memory()
    def metadata(self, unit: int) -> dict[str, Any]:
        """Return the metadata of the document that a unit (`Passage.unit`) is from.

        Raises InputError for an unknown unit.
        """
        from ketrag_fast.query.inspect import metadata_of_unit

        return metadata_of_unit(self._opened, unit)

    @enough_memory()
    def vectors(
        self, texts: Sequence[str], role: Role = "query", *, seconds: float | None = None
    ) -> NDArray[np.float32]:
        """The vectors of some texts in the index's own space (its model, or the space fitted on its corpus),
        as rows of length 1. Raises ModeUnavailable where the index has no vectors, DeadlineExceeded.
        """
        from ketrag_fast.query.inspect import vectors

        return vectors(
            self._opened, [question_text(text, at) for at, text in enumerate(texts)], role, seconds
        )

    def tokens(self, texts: Sequence[str]) -> int:
        """How many tokens some texts have together, as this index counts."""
        from ketrag_fast.query.inspect import tokens

        return tokens(self._opened, texts)

    def embeds(self, mode: str | None = None) -> bool:
        """Whether an embedding model makes the vectors of questions in a mode (else the settings' one)."""
        from ketrag_fast.query.inspect import embeds

        return embeds(self._opened, mode, self.path)

    @enough_memory()
    def warm(self) -> None:
        """Loads the model of questions now, if there is one, and not with the first question."""
        questions = self._opened.questions
        if questions is not None:
            questions.load()

    @enough_memory()
    def train(
        self,
        system: str,
        questions: Sequence[tuple[str, Collection[str]]],
        out: str | os.PathLike[str],
        *,
        share: float = 1.0,
        on_epoch: OnEpoch | None = None,
        **options: Any,
    ) -> Trained:
        """Trains a system on (question, ids of the documents that answer it), and writes weights to `out`.

        The index stays as it is. `share` of the questions are drawn by `seed`; `on_epoch` is called after
        each epoch with (epoch, of, loss, Hit@1 of those kept apart) and stops it by returning False. Other
        options are the system's own (of cg-rag: epochs, rate, hidden, heads, ...). Raises ConfigError,
        InputError, ModeUnavailable, BackendMissing, Cancelled.
        """
        from ketrag_fast.query.training_data import train

        return train(self._opened, system, questions, Path(out), share, on_epoch, options)

    @property
    def has_answer_llm(self) -> bool:
        """Whether a language model answers questions (settings `answer_llm` and `llm`)."""
        return self._opened.writer is not None

    def hyde_model(self) -> dict[str, Any] | None:
        """Return spec and fingerprint of the model that mode hyde uses, and the hash of its prompt."""
        writer = self._opened.writer
        return None if writer is None else writer.about()
