"""Builds the sample at two sizes in a temporary folder, and measures time, bytes and memory."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.base.config import Settings
from ketrag_fast.base.progress import Callback
from ketrag_fast.build.runner import build
from ketrag_fast.index import Index
from ketrag_fast.kernels.text import unpack
from ketrag_fast.lab.cost.disk import folder_size
from ketrag_fast.lab.cost.embedded import embedded_bytes
from ketrag_fast.systems.planning import stages_for
from ketrag_fast.types import Document

_SMALL = 3
"""The smaller sample has every n-th document."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One built sample."""

    characters: int
    documents: int
    counts: Mapping[str, int]
    seconds: Mapping[str, float]
    bytes: Mapping[str, int]
    around: float
    """Seconds for reading and publishing."""
    folder_bytes: int
    embedding_tokens: int
    memory: int | None
    dimension: int
    embedded_bytes: int
    """Bytes of all texts that are embedded, or would be by a model."""
    per_document: NDArray[np.int64]
    """Chunks of each document."""
    lengths: NDArray[np.int64]
    """Code points of each document."""
    chunks: tuple[tuple[str, str], ...]
    """(title, text) of the core chunks, the most important first."""
    chunk_tokens: tuple[int, ...]
    """Tokens of the same chunks, in the index's encoding."""


def measure(
    documents: Sequence[Document],
    settings: Settings,
    progress: Callback | None,
    whole: Settings | None = None,
) -> list[Sample]:
    """Build the samples, the smaller first; a single one if there is too little to split.

    `whole` are the settings of the estimated build if they differ from the sample's: a model embeds other
    texts than the built-in vectors need, and core chunks may be extracted from.
    """
    parts = [documents[::_SMALL], documents] if len(documents) >= 2 * _SMALL else [documents]
    return [_build_sample(part, settings, progress, whole or settings) for part in parts]


def _build_sample(
    documents: Sequence[Document], settings: Settings, progress: Callback | None, whole: Settings
) -> Sample:
    reads = whole.llm != "none"
    extra = ("core", "words") if reads else ("words",)
    with tempfile.TemporaryDirectory(prefix="ketrag-", ignore_cleanup_errors=True) as name:
        path = Path(name) / "index"
        report = build(path, list(documents), partial(stages_for, extra=extra), settings, progress=progress)
        with Index.open(path, settings=Settings(verify="sizes")) as index:
            counts = index.stats()["counts"]
            arrays = index.inspect.arrays()
            chunks, tokens = _core_chunks(arrays, documents)
            seconds = {stage.name: stage.seconds for stage in report.stages}
            return Sample(
                characters=report.usage.characters,
                documents=report.usage.documents,
                counts=counts,
                seconds=seconds,
                bytes={stage.name: stage.bytes for stage in report.stages},
                around=max(report.seconds - sum(seconds.values()), 0.0),
                folder_bytes=folder_size(path),
                embedding_tokens=report.usage.embedding_tokens,
                memory=report.usage.memory,
                dimension=int(index.stats()["backends"]["dimension"] or 0),
                embedded_bytes=embedded_bytes(arrays, {stage.name for stage in stages_for(whole, reads)}),
                per_document=_chunks_of(arrays["units"], documents),
                lengths=np.array([len(document.text) for document in documents], np.int64),
                chunks=chunks,
                chunk_tokens=tokens,
            )


def _chunks_of(units: Mapping[str, Any], documents: Sequence[Document]) -> NDArray[np.int64]:
    """Return the number of chunks of each document; one with headings is several rows of the index."""
    names = unpack(units["document_ids_blob"], units["document_ids_offsets"])
    number = {document.id: place for place, document in enumerate(documents)}
    owners = np.array([number[name] for name in names], np.int64)
    return np.bincount(owners[units["chunk_document"]], minlength=len(documents))


def _core_chunks(
    arrays: Mapping[str, Mapping[str, Any]], documents: Sequence[Document]
) -> tuple[tuple[tuple[str, str], ...], tuple[int, ...]]:
    units = arrays["units"]
    ranked = next((stage["core"] for stage in arrays.values() if "core" in stage), None)
    order = np.arange(len(units["chunk_document"])) if ranked is None else ranked
    found = []
    titles = unpack(units["document_titles_blob"], units["document_titles_offsets"])
    names = unpack(units["document_ids_blob"], units["document_ids_offsets"])
    texts = {document.id: document.text for document in documents}
    for chunk in order.tolist():
        row = int(units["chunk_document"][chunk])
        first, last = units["chunk_units"][chunk : chunk + 2].tolist()
        start, end = int(units["unit_span"][first, 0]), int(units["unit_span"][last - 1, 1])
        found.append((titles[row], texts[names[row]][start:end]))
    return tuple(found), tuple(np.asarray(units["chunk_tokens"])[order].tolist())
