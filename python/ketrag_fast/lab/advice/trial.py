"""Builds an index without the sentences that the probes ask for, and asks it in several modes."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ketrag_fast.base.config import Settings, build_settings, resolve
from ketrag_fast.base.progress import Callback
from ketrag_fast.errors import InputError
from ketrag_fast.index import Index
from ketrag_fast.kernels import count_tokens
from ketrag_fast.lab.advice.probes import KINDS, Kind, Place, Probe, Probes, make_probes
from ketrag_fast.systems.index_settings import stored_settings
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.shared import has_model
from ketrag_fast.types import Context, Document

BUDGETS: Final = (500, 1000, 2000, 4000, 8000)
"""Sizes of the context, in tokens."""
FIRST: Final = 5
"""A probe is answered if its passage is among the first `FIRST`."""
UNIT_BUDGET: Final = 2000
"""Size of the context in which unit sizes are compared."""
_PLAIN: Final = ("bm25", "walk")
_WITH_MODEL: Final = ("text", "fused")
_ALL: Final = 1 << 30
_EDGE: Final = 4  # code points around a cut that belong to neither passage


@dataclass(frozen=True, slots=True)
class UnitSize:
    """1.0 for each direct probe whose place a context of `UNIT_BUDGET` tokens holds, 0.0 for others."""

    tokens: int
    found: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """The results of all probes, 1.0 or 0.0 each.

    Attributes:
        found: For each kind and mode: whether the probe's passage is among the first `FIRST`.
        held: For each mode and budget: whether the place of each direct probe is in the context.
        units: The same at `UNIT_BUDGET` tokens for other sizes of chunks; empty if documents are shorter.
        chunk_tokens: The size of chunks in the index.
        median_tokens: Of a document.
        model: The embedding model, or "builtin".
    """

    probes: Probes
    found: Mapping[Kind, Mapping[str, tuple[float, ...]]]
    held: Mapping[str, Mapping[int, tuple[float, ...]]]
    units: tuple[UnitSize, ...]
    chunk_tokens: int
    median_tokens: int
    model: str

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that were asked."""
        return tuple(self.held)


def run_trial(
    path: Path,
    *,
    count: int = 400,
    given: Settings | None = None,
    progress: Callback | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Trial:
    """Return the results of probes made from the documents of the index at `path`.

    The documents, without the sentences that were cut out, are indexed in a temporary folder with the
    settings of the index and those `given`; no language model is called. Raises InputError if no question
    can be made.
    """
    with Index.open(path, settings=Settings(verify="sizes")) as index:
        probes = make_probes(index.inspect.stored(), count=count)
    if not probes.probes:
        raise InputError(
            f"{path}: no question can be made from these {probes.total:,} documents",
            hint="at least some documents must have three sentences of 6 to 40 words",
        )
    settings = _settings(path, given or Settings())
    modes = (*_PLAIN, *(_WITH_MODEL if has_model(settings) else ()))
    tell(f"{len(probes.probes):,} questions from {probes.looked_at:,} of {probes.total:,} documents")
    with tempfile.TemporaryDirectory(prefix="ketrag-", ignore_cleanup_errors=True) as folder:
        build = _Builds(probes.documents, Path(folder), progress)
        with build(settings.having(modes=",".join(modes)), "own") as index:
            found = {kind: {mode: _first(index, probes.of(kind), mode) for mode in modes} for kind in KINDS}
            held = {mode: _held(index, probes.of("direct"), mode, BUDGETS) for mode in modes}
        size = settings.chunk_tokens
        median = int(statistics.median(count_tokens([d.text for d in probes.documents])))
        units = []
        if median > size and probes.of("direct"):
            for tokens in (size // 2, size * 2):
                tell(f"chunks of {tokens:,} tokens")
                other = settings.having(
                    modes="bm25", chunk_tokens=tokens, overlap=min(settings.overlap, tokens // 4)
                )
                with build(other, f"chunks-{tokens}") as index:
                    rows = _held(index, probes.of("direct"), "bm25", (UNIT_BUDGET,))
                    units.append(UnitSize(tokens, rows[UNIT_BUDGET]))
    return Trial(probes, found, held, tuple(units), size, median, settings.embedder)


@dataclass(frozen=True, slots=True)
class _Builds:
    documents: Sequence[Document]
    folder: Path
    progress: Callback | None

    def __call__(self, settings: Settings, name: str) -> Index:
        return Index.build(
            list(self.documents), self.folder / name, settings=settings, progress=self.progress
        )


def _settings(path: Path, given: Settings) -> Settings:
    """Return the settings of the index that say how texts are cut and embedded, and those given."""
    resolved = resolve(flags=given.given, index=stored_settings(path), presets=registry().table).settings
    own = {name: value for name, value in build_settings(resolved).items() if name in _KEPT}
    return Settings(**own, llm="none", on_error="skip", verify="sizes")


_KEPT: Final = (
    "embedder",
    "chunk_tokens",
    "overlap",
    "split_level",
    "cut",
    "language",
    "even_chunks",
    "encoding",
    "precision",
)


def _first(index: Index, probes: Sequence[Probe], mode: str) -> tuple[float, ...]:
    contexts = index.retrieve_many([probe.text for probe in probes], mode=mode, top=FIRST, budget=_ALL)
    return tuple(float(_has(context, probe.target)) for context, probe in zip(contexts, probes, strict=True))


def _held(
    index: Index, probes: Sequence[Probe], mode: str, budgets: Sequence[int]
) -> dict[int, tuple[float, ...]]:
    rows = index.retrieve_many([probe.text for probe in probes], mode=mode, budgets=budgets)
    return {
        budget: tuple(float(_has(row[i], probe.target)) for row, probe in zip(rows, probes, strict=True))
        for i, budget in enumerate(budgets)
    }


def _has(context: Context, place: Place) -> bool:
    """Return whether a passage of the context covers a place, or ends or begins at it."""
    return any(
        passage.document == place.document and passage.start - _EDGE <= place.offset <= passage.end + _EDGE
        for passage in context.passages
    )
