"""One opened generation with all that a question needs: arrays, settings, the model of questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from ketrag_fast import _core
from ketrag_fast.backends.llms.models import Models
from ketrag_fast.config import Settings
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.hyde import Hyde, writer_of
from ketrag_fast.pipeline.known import reading_settings
from ketrag_fast.querying.recipes import missing_of
from ketrag_fast.storage.generation import Generation, open_current
from ketrag_fast.storage.layout import Layout

if TYPE_CHECKING:
    from ketrag_fast.backends.ann.stored import StoredGraph
    from ketrag_fast.backends.embedders.questions import Questions
    from ketrag_fast.inspection import Skeleton


@dataclass(frozen=True)
class Opened:
    """One opened generation; replaced as a whole by `Index.refresh`."""

    generation: Generation
    searcher: _core.Searcher
    settings: Settings
    missing: dict[str, str | None]
    """Each mode, and the part that it lacks here; None where the mode is served."""
    questions: Questions | None
    """Who makes questions' vectors; None where the core does so itself."""
    hyde: Hyde | None
    models: Models
    """The language models of this index; those that were opened outlive a `refresh`."""
    graphs: Mapping[str, StoredGraph]
    """Of `units`, `keywords` and `entities`, those that hnswlib made a graph of."""

    @cached_property
    def skeleton(self) -> Skeleton:
        """For looking at single entities. Raises ModeUnavailable where there is none."""
        from ketrag_fast.inspection import Skeleton

        return Skeleton(self.generation)

    def close(self) -> None:
        """Lets go of the models."""
        if self.questions is not None:
            self.questions.close()
        self.models.close()


def load(path: Path, asked: Settings, models: Models | None = None) -> Opened:
    """Opens the current generation of the index at `path`; `models` are those that are open already.

    Raises IndexMissing, IndexDamaged, IndexIncompatible.
    """
    generation = open_current(Layout(path), asked.verify)
    settings = reading_settings(asked, generation)
    files = {
        f"{stage}.{name}": file
        for stage, arrays in generation.stages.items()
        for name, file in arrays.mapped()
    }
    built = generation.manifest.settings
    if not {"encoding", "language"} <= built.keys():
        raise IndexDamaged(
            f"the manifest of {generation.folder} does not say how the index was built",
            hint="build it anew: ketrag index --rebuild",
        )
    by_blocks = asked.verify == "blocks"
    searcher = _core.Searcher(files, str(built["encoding"]), str(built["language"]), by_blocks=by_blocks)
    lent = Models(settings) if models is None else models
    return Opened(
        generation,
        searcher,
        settings,
        missing_of(searcher.missing()),
        _questions(generation, settings),
        writer_of(settings, lent),
        lent,
        _graphs(generation),
    )


def _questions(generation: Generation, settings: Settings) -> Questions | None:
    """Who makes questions' vectors: nobody but the core itself where the index has no model."""
    stored = generation.manifest.models.get("embedder")
    if stored is None and settings.embedder == "builtin":
        return None
    from ketrag_fast.backends.embedders.questions import Questions

    return Questions(stored, settings)


_GRAPHS = {
    "units": ("unit_search", "vectors", "unit_vectors"),
    "keywords": ("keyword_search", "keywords", "vectors"),
    "entities": ("entity_search", "entities", "entity_vectors"),
}


def _graphs(generation: Generation) -> dict[str, StoredGraph]:
    found: dict[str, StoredGraph] = {}
    for name, (stage, of, array) in _GRAPHS.items():
        arrays = generation.stages.get(stage)
        if arrays is None or not len(arrays):
            continue
        from ketrag_fast.backends.ann.stored import GRAPH, StoredGraph, record_of

        record = record_of(arrays)
        if record is not None:
            vectors = partial(generation.stages[of].__getitem__, array)
            found[name] = StoredGraph(partial(arrays.named, GRAPH), record, vectors)
    return found
