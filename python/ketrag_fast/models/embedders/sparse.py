"""Learned sparse encoders (SPLADE and similar): texts in, weights of a vocabulary's terms out.

The spec is NAME_OR_PATH of a folder with a masked language model: BERT, DistilBERT, RoBERTa, XLM-RoBERTa
or MPNet. If the folder says so, the terms of a query are its tokens with the weights of a table, so that a
query needs no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.errors import BackendError, IndexDamaged, InputError
from ketrag_fast.kernels.arrays import Report, callback, pack_texts
from ketrag_fast.models.embedders.batching import whole
from ketrag_fast.models.embedders.discovery import is_name, resolve

Rows = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float32]]
"""Compressed rows (CSR): row ends, ascending term ids, and their positive weights."""
Terms = tuple[NDArray[np.uint32], NDArray[np.float32]]
"""The terms of one text, ascending, and their weights."""

_lock = Lock()
_opened: list[SparseModel] = []
"""The most recently used encoder, because a process usually serves indexes of one model."""


def folder_of(spec: str) -> Path:
    """Return the folder of a sparse encoder. Raises BackendError if it is not on this machine."""
    path = resolve(spec)
    if path is None:
        what = f"the model {spec} is not on this machine" if is_name(spec) else f"no such folder: {spec}"
        raise BackendError(what, hint="docs/how-to/sparse.md names sparse encoders and how to get one")
    return path


def fingerprint(spec: str) -> str:
    """Return the fingerprint of a model without loading it; it does not depend on the location."""
    path = folder_of(spec)
    try:
        return _core.term_encoder_fingerprint(path)
    except (IndexDamaged, InputError, OSError) as error:
        raise _unreadable(path, error) from error


def open_model(spec: str) -> SparseModel:
    """Return the loaded model of a spec. Raises BackendError if it cannot be loaded."""
    with _lock:
        if not _opened or _opened[0].spec != spec:
            _opened[:] = [SparseModel(spec)]
        return _opened[0]


def close_models() -> None:
    """Release the loaded model; the next use reads its files again."""
    with _lock:
        _opened.clear()


class SparseModel:
    """A loaded sparse encoder. Several threads may use it at once."""

    def __init__(self, spec: str, *, precision: str = "auto", kernel: str = "auto", threads: int = 0) -> None:
        path = folder_of(spec)
        self.spec, self.fingerprint = spec, fingerprint(spec)
        try:
            self._core = _core.TermEncoder.open(path, precision=precision, kernel=kernel, threads=threads)
        except (IndexDamaged, InputError, OSError) as error:
            raise _unreadable(path, error) from error
        self.terms = self._core.terms
        self.precision = self._core.precision

    def rows(self, texts: Sequence[str], *, threads: int = 0, report: Report = None) -> Rows:
        """Return the weights of the terms of documents. `report(done, total)` counts tokens.

        Raises BackendError if the model returns values that are not finite, Cancelled if `report` returns
        False.
        """
        packed = pack_texts([whole(text) for text in texts], "texts")
        try:
            return self._core.rows(*packed, threads=threads, report=callback(report))
        except IndexDamaged as error:
            raise BackendError(f"{self.spec} failed: {error.message}", hint="copy the model again") from error

    def queries(self, texts: Sequence[str], *, threads: int = 0, seconds: float | None = None) -> list[Terms]:
        """Return the terms of each query, within `seconds`.

        Raises BackendError as `rows` does, DeadlineExceeded if time is over.
        """
        packed = pack_texts([whole(text) for text in texts], "texts")
        try:
            ends, ids, weights = self._core.queries(*packed, threads=threads, seconds=seconds)
        except IndexDamaged as error:
            raise BackendError(f"{self.spec} failed: {error.message}", hint="copy the model again") from error
        cuts = ends[1:-1].astype(np.int64)
        return list(zip(np.split(ids, cuts), np.split(weights, cuts), strict=True)) if len(texts) else []


def _unreadable(path: Path, error: IndexDamaged | InputError | OSError) -> BackendError:
    what = getattr(error, "message", error)
    return BackendError(
        f"the sparse encoder in {path} cannot be loaded: {what}",
        hint="docs/how-to/sparse.md names sparse encoders that are supported",
    )
