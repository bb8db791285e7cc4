"""An opened generation: its arrays, searcher and settings, and the models that queries use."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast import _core
from ketrag_fast._core import expect_few_queries as expect_few_queries
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ExtensionError, IndexDamaged, KetragError, ModeUnavailable
from ketrag_fast.models.llms.registry import Models
from ketrag_fast.query.modes import UNREAD, missing_of, reads
from ketrag_fast.query.passage_sources import DocumentMetadata, Places, descriptions, metadata_rows
from ketrag_fast.records import dataclass, field
from ketrag_fast.storage.checksum import text_digest
from ketrag_fast.storage.generation import Generation, open_current, open_generation
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.index_settings import reading_settings
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.stage import resolve
from ketrag_fast.systems.spec.system import Inspector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.base.filters import Check, ColumnReader, Columns, Condition
    from ketrag_fast.models.ann import StoredGraph
    from ketrag_fast.models.cross_encoders import CrossEncoder, Extractors
    from ketrag_fast.models.embedders.query_vectors import QueryEmbedder
    from ketrag_fast.models.endpoint_trust import Trust
    from ketrag_fast.models.lru import LruCache
    from ketrag_fast.query.document_texts import DocumentTexts
    from ketrag_fast.query.graph_view import Drawings
    from ketrag_fast.query.themes.clusters import FoundThemes

_MOST_MASKS = 32
"""Number of filters whose masks are cached."""
_MOST_THEMES = 4
"""Number of filters whose themes are cached."""
"""Number of combinations with other indexes that are kept as one collection, for each first index."""
_NO_MODEL = "none"


@dataclass(frozen=True, slots=True)
class FilterMask:
    """Units that pass a filter: one byte per unit, their count, and the mask in the form the core takes."""

    mask: bytes
    """1 for each unit that passes, 0 for the others."""
    units: int
    core: _core.Mask | None
    """None if all units pass."""

    @property
    def fits(self) -> NDArray[np.bool_]:
        """The mask as a boolean array."""
        import numpy as np

        return np.frombuffer(self.mask, np.bool_)


def mask_of(mask: bytes) -> FilterMask:
    """Return the filter mask of one byte per unit."""
    units = mask.count(1)
    return FilterMask(mask, units, None if units == len(mask) else _core.Mask(mask))


@dataclass(frozen=True)
class Opened:
    """One opened generation. `Index.refresh` replaces it as a whole."""

    generation: Generation
    searcher: _core.Searcher
    settings: Settings
    questions: QueryEmbedder | None
    """Model that embeds queries; None if the core embeds them in the fitted space."""
    writer: AnswerModel | None
    """Model that writes answers; None without a language model."""
    models: Models
    """The language models of this index. `refresh` reuses the open ones."""
    graphs: Mapping[str, StoredGraph]
    """HNSW graphs of hnswlib by list of vectors: `units`, `keywords`, `entities`."""
    find_trust: Callable[[], Trust]
    """Function that returns the endpoints that texts may be sent to."""
    pending: int = 0
    """Number of chunks not yet read by an LLM, in an index of allowed documents."""
    given: Settings | None = None
    """The settings of the caller, from which `settings` follow with those of the generation."""
    finding_themes: threading.RLock = field(default_factory=threading.RLock)
    """Held while themes are computed."""

    @cached_property
    def inspectors(self) -> list[Inspector]:
        """The inspectors of the systems whose graphs this generation contains."""
        found: list[Inspector] = []
        for system in registry().systems:
            held = any(stage.name in self.generation.stages for stage in system.stages)
            if system.inspect is None or not held:
                continue
            try:
                cls: Any = resolve(system.inspect)
                if cls.STAGE in self.generation.stages:
                    found.append(cls(self.generation))
            except KetragError:
                raise
            except Exception as error:
                raise ExtensionError(
                    f"the system {system.name} cannot show its graph: {type(error).__name__}: {error}"
                ) from error
        return found

    @property
    def trust(self) -> Trust:
        """The endpoints that texts may be sent to."""
        return self.find_trust()

    @cached_property
    def drawings(self) -> Drawings:
        """The graphs of this generation, for pictures."""
        from ketrag_fast.query.graph_view import Drawings

        return Drawings(self.generation)

    @cached_property
    def themes(self) -> LruCache[FoundThemes]:
        """Cache of themes by condition (`query/themes/describe.py`)."""
        from ketrag_fast.models.lru import LruCache

        return LruCache(_MOST_THEMES)

    @cached_property
    def totals(self) -> tuple[int, int, int, dict[int, int]]:
        """Units, documents, keywords of all units and units of each language."""
        return _core.Shard(self.searcher).totals()

    def close(self) -> None:
        """Close the models."""
        if self.questions is not None:
            self.questions.close()
        self.models.close()

    @cached_property
    def reranker(self) -> CrossEncoder | None:
        """The reranker of the settings, loaded by the first query."""
        spec = self.settings.rerank
        if spec is None or spec == "none":
            return None
        from ketrag_fast.models.cross_encoders import CrossEncoder

        return CrossEncoder(spec, precision=self.settings.precision, threads=self.settings.threads)

    @cached_property
    def extractors(self) -> Extractors:
        """The extractive models for answers, each loaded by the first query that needs it."""
        from ketrag_fast.models.cross_encoders import Extractors

        return Extractors(precision=self.settings.precision, threads=self.settings.threads)

    @property
    def answering(self) -> str | None:
        """Spec of the model that answers under these settings: an extractive model, the writer, or None."""
        spec = self.settings.answer_llm
        if spec is not None:
            from ketrag_fast.models.cross_encoders import is_extractive

            if is_extractive(spec):
                return spec
        return None if self.writer is None else self.writer.spec

    @cached_property
    def places(self) -> Places:
        """Locations of passages in their sources."""
        return Places(self.generation.stages["units"])

    @cached_property
    def texts(self) -> DocumentTexts:
        """The texts of the documents."""
        from ketrag_fast.query.document_texts import DocumentTexts

        return DocumentTexts(self.searcher)

    @property
    def threads(self) -> int:
        """The number of threads for parallel work."""
        return self.settings.threads or os.cpu_count() or 1

    @cached_property
    def document_metadata(self) -> DocumentMetadata:
        """The metadata of the documents."""
        return DocumentMetadata(self.generation.stages)

    @cached_property
    def unit_kind(self) -> str:
        """What a unit is: a chunk, or a part of one."""
        return "subchunk" if self.generation.manifest.settings.get("split_level", 0) else "chunk"

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, in the index's encoding."""
        from ketrag_fast.kernels.text import pack

        encoding = str(self.generation.manifest.settings["encoding"])
        counts: list[int] = _core.count_tokens(pack(list(texts)), encoding, 1).tolist()
        return counts

    def descriptions(self, write: Callable[[Any], bytes]) -> _core.Descriptions | None:
        """Return an object that writes metadata and locations of passages as JSON; None if there are none.

        `write` returns a value as JSON, and is the same for all calls.
        """
        # The object must not refer to this generation, because this generation refers to it.
        own = vars(self)
        if "_descriptions" not in own:
            own["_descriptions"] = descriptions(self.places, self.document_metadata, write)
        found: _core.Descriptions | None = own["_descriptions"]
        return found

    @cached_property
    def _metadata(self) -> ColumnReader:
        from ketrag_fast.base.filters import ColumnReader

        return ColumnReader(lambda: iter(metadata_rows(self.generation.stages)))

    def columns(self, check: Check = lambda: None) -> Columns:
        """Return the documents' metadata, read on first use.

        `check` is called repeatedly and may raise to stop.
        """
        try:
            return self._metadata.columns(check)
        except KetragError:
            raise
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise IndexDamaged(f"the metadata of a document cannot be read: {error}") from error

    @cached_property
    def default_condition(self) -> Condition | None:
        """The filter of the settings, parsed."""
        if self.settings.filter is None:
            return None
        from ketrag_fast.base.filters import filter_condition

        return filter_condition(self.settings.filter)

    def filtered(self, condition: Condition | None, check: Check = lambda: None) -> FilterMask | None:
        """Return a mask of the units of documents that match a condition; None without a condition.

        `check` is called at every step of the evaluation, and raises to stop it. Raises InputError for a
        field that no document has.
        """
        if condition is None:
            return None
        key = text_digest([repr(condition)])  # as keys of a dict, True and 1 are equal
        mask = self._masks.known([key]).get(key)
        if mask is None:
            matches = self.columns(check).fitting(condition, check=check)
            mask = mask_of(matches[self.generation.stages["units"]["unit_document"]].tobytes())
            self._masks.add({key: mask})
        return mask

    @cached_property
    def _masks(self) -> LruCache[FilterMask]:
        from ketrag_fast.models.lru import LruCache

        return LruCache(_MOST_MASKS)

    @cached_property
    def cautions(self) -> dict[str, str]:
        """Warnings about this generation by channel, which contexts report."""
        cautions = {}
        stages = self.generation.stages
        for name, channel in registry().channels.items():
            if channel.caution is None or not set(channel.needed(self.settings)) <= stages.keys():
                continue
            caution = resolve(channel.caution)(stages)
            if caution is not None:
                cautions[name] = str(caution)
        return cautions

    @cached_property
    def missing(self) -> dict[str, str | None]:
        """The missing part of each mode in this generation; None for a mode that can be used."""
        core = self.searcher.missing()
        found = missing_of(self.generation, self.settings, core)
        if self.pending:
            found |= {mode: UNREAD for mode in found if reads(mode, self.settings)}
        return found


def load(path: Path, given: Settings, before: Opened | None = None, trust: Trust | None = None) -> Opened:
    """Open the current generation of an index, or a given generation.

    Args:
        path: Folder of an index or of a generation.
        given: Settings given by the caller.
        before: An open generation; models that are still the same are reused.
        trust: Trusted endpoints; without it they follow from `given` and `path`.

    Raises:
        IndexMissing, IndexDamaged, IndexIncompatible: The index cannot be read.
    """
    layout = Layout(path)
    whole = open_generation(path, given.verify) if layout.is_generation() else None
    generation = whole or open_current(layout, given.verify, None if before is None else before.generation)
    known = before is not None and before.given is given and _are_built_alike(before.generation, generation)
    settings = before.settings if before is not None and known else reading_settings(given, generation)
    files = {
        f"{stage}.{name}": file
        for stage, arrays in generation.stages.items()
        for name, file in arrays.mapped()
    }
    built = generation.manifest.settings
    if not {"encoding", "language"} <= built.keys():
        raise IndexDamaged(
            f"the manifest of {generation.folder} has no encoding or language",
            hint="build it again: ketrag index --rebuild",
        )
    by_blocks = given.verify == "blocks"
    searcher = _core.Searcher(files, str(built["encoding"]), str(built["language"]), by_blocks=by_blocks)
    models = Models(settings) if before is None else before.models

    @cache
    def find_trust() -> Trust:  # most queries need no endpoint
        from ketrag_fast.models.endpoint_trust import Trust

        return Trust.of(layout, given) if trust is None else trust

    opened = Opened(
        generation,
        searcher,
        settings,
        _questions(generation, settings, models, before, find_trust),
        answer_model_of(settings, models, lambda spec: find_trust().require("llm", spec, what="the query")),
        models,
        _graphs(generation),
        find_trust,
        given=given,
    )
    for name in ("reranker", "extractors"):  # loaded once
        same = before is not None and (name != "reranker" or before.settings.rerank == settings.rerank)
        if same and name in vars(before):
            vars(opened)[name] = vars(before)[name]
    return opened


def _are_built_alike(one: Generation, other: Generation) -> bool:
    """Return whether two generations of an index were built with the same settings and models."""
    first, second = one.manifest, other.manifest
    return (first.settings, first.models) == (second.settings, second.models)


def _questions(
    generation: Generation,
    settings: Settings,
    models: Models,
    before: Opened | None,
    find_trust: Callable[[], Trust],
) -> QueryEmbedder | None:
    """Return the query embedder, reused from `before` if the model is the same; None without a model."""
    stored = generation.manifest.models.get("embedder")
    old = None if before is None else before.questions
    if before is not None and old is not None:
        same = before.generation.manifest.models.get("embedder") == stored
        if same and before.settings.embedder == settings.embedder:
            return old
        old.close()
    if stored is None and settings.embedder == "builtin":
        return None
    from ketrag_fast.models.embedders.query_vectors import QueryEmbedder

    def permit() -> None:
        find_trust().require("embedder", settings.embedder, "the query")

    return QueryEmbedder(stored, settings, models.limit, permit)


def _graphs(generation: Generation) -> dict[str, StoredGraph]:
    """Return the HNSW graphs of hnswlib by list of vectors."""
    found: dict[str, StoredGraph] = {}
    for stage in registry().stages:
        arrays = generation.stages.get(stage.name)
        if stage.proposes is None or arrays is None or not len(arrays):
            continue
        from ketrag_fast.models.ann import GRAPH, StoredGraph, record_of
        from ketrag_fast.systems.shared.hnsw_proposals import listed_shape

        record = record_of(arrays)
        if record is not None:
            listed, of, array = stage.proposes
            shape = listed_shape(generation.stages[of], array)
            found[listed] = StoredGraph(partial(arrays.named, GRAPH), record, shape)
    return found


class AnswerModel:
    """The model that a spec names; the first answer opens it."""

    def __init__(self, spec: str, models: Models, permit: Callable[[], None] | None = None) -> None:
        """Raise ModeUnavailable if the spec does not name a model.

        `permit` is called before the model is used, and raises if texts must not be sent to the model.
        """
        from ketrag_fast.models.llms.registry import is_model

        if not is_model(spec):
            raise ModeUnavailable(
                f"writing text needs a language model, got {spec!r}",
                hint="name one: --llm llama-cpp:PATH.gguf or openai:MODEL@URL",
            )
        self.spec = spec
        self._models = models
        self._permit = permit

    def require_permission(self) -> None:
        """Raise EndpointNotConfirmed if the model is an endpoint that only the index names, not the user."""
        if self._permit is not None:
            self._permit()

    def open(self) -> None:
        """Open a model file, to detect an invalid file early. Loads no weights and contacts no endpoint.

        Raises BackendMissing, BackendError or ConfigError.
        """
        from ketrag_fast.models.llms.registry import parse_spec

        if parse_spec(self.spec)[0] != "openai":
            with self._models.lend(self.spec):
                pass


def answer_model_of(settings: Settings, models: Models, permit: Callable[[str], None]) -> AnswerModel | None:
    """Return the language model that answers, or None.

    It is the setting `answer_llm`, else `llm` if that is a language model; "none" means no model. An
    extractive `answer_llm` cannot write, so `llm` is used instead. `permit` raises if texts must not be sent
    to a model that only the index names.
    """
    spec = settings.answer_llm
    if spec == _NO_MODEL:
        return None
    if spec is not None:
        from ketrag_fast.models.cross_encoders import is_extractive

        if not is_extractive(spec):
            return AnswerModel(spec, models)
    if settings.llm == _NO_MODEL:
        return None
    from ketrag_fast.models.llms.registry import is_model

    spec = settings.llm
    return AnswerModel(spec, models, partial(permit, spec)) if is_model(spec) else None
