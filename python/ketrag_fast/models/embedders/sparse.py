"""Learned sparse embeddings (SPLADE and similar): texts in, term weights out, by sentence-transformers.

The spec is `sentence-transformers:NAME_OR_PATH` with a folder written by
`SparseEncoder(...).save_pretrained(...)`; the lexical head of BGE-M3 works too if saved in that form. Folders
are checked like those of other models: no custom code, no pickle.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import BackendError, BackendMissing, Cancelled, ConfigError
from ketrag_fast.models.embedders.discovery import is_name, resolve
from ketrag_fast.models.embedders.fingerprint import of_folder
from ketrag_fast.models.embedders.model_folder import ModelFolder, look
from ketrag_fast.models.embedders.protocol import Role
from ketrag_fast.models.embedders.quiet_imports import import_quietly, no_bars, no_hub

EXTRA: Final = "embed"
BATCH: Final = 32
_KIND: Final = "sentence-transformers"
Rows = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float32]]
"""Compressed rows (CSR): row ends, ascending term ids, and their positive weights."""


def folder_of(spec: str) -> ModelFolder:
    """Return the checked folder of a sparse encoder. Raises ConfigError (spec) or BackendError (folder)."""
    kind, colon, rest = spec.partition(":")
    if not colon or kind not in (_KIND, "local") or not rest.strip():
        raise ConfigError(f"sparse_model must be {_KIND}:NAME_OR_PATH, got {spec!r}")
    path = resolve(rest)
    if path is None:
        what = f"the model {rest} is not on this machine" if is_name(rest) else f"no such folder: {rest}"
        raise BackendError(what, hint="`ketrag models` lists local models and how to install one")
    return look(path)


def fingerprint(spec: str) -> str:
    """Return the fingerprint of a model without loading it; it does not depend on the location."""
    return of_folder(folder_of(spec))


class SparseModel:
    """A loaded sparse encoder; calls are serialised. Raises BackendMissing for an old library."""

    def __init__(self, spec: str) -> None:
        folder = folder_of(spec)
        self.spec, self.fingerprint = spec, of_folder(folder)
        self._lock = threading.Lock()
        library = import_quietly("sentence_transformers", EXTRA)
        kind = getattr(library, "SparseEncoder", None)
        if kind is None:
            raise BackendMissing(
                f"sentence-transformers {getattr(library, '__version__', '')} has no sparse encoders",
                hint="pip install -U 'sentence-transformers>=5'",
            )
        try:
            with no_hub(), no_bars():
                self._model: Any = kind(
                    str(folder.path),
                    device="cpu",
                    local_files_only=True,
                    trust_remote_code=False,
                    model_kwargs={"use_safetensors": True},
                )
            self.terms = int(self._encode(["a trial"], "document").shape[1])
        except Exception as error:  # bad model files make the library raise anything
            raise BackendError(
                f"the sparse encoder in {folder.path} cannot be loaded: {type(error).__name__}: {error}",
                hint="give the folder that SparseEncoder(...).save_pretrained(...) wrote",
            ) from error

    def _encode(self, texts: Sequence[str], role: Role) -> Any:
        encode = self._model.encode_query if role == "query" else self._model.encode_document
        with no_bars():
            return encode(
                list(texts),
                batch_size=BATCH,
                show_progress_bar=False,
                convert_to_tensor=True,
                convert_to_sparse_tensor=True,
            ).coalesce()

    def rows(
        self, texts: Sequence[str], role: Role = "document", report: Callable[[int, int], Any] | None = None
    ) -> Rows:
        """Return the weights of each text.

        Raises BackendError for invalid weights, Cancelled if `report` returns False.
        """
        counts: list[NDArray[np.int64]] = []
        ids: list[NDArray[np.uint32]] = []
        weights: list[NDArray[np.float32]] = []
        for start in range(0, len(texts), BATCH):
            batch = list(texts[start : start + BATCH])
            with self._lock:
                matrix = self._encode(batch, role)
            row, column = matrix.indices().cpu().numpy()
            value = matrix.values().float().cpu().numpy()
            if matrix.shape != (len(batch), self.terms) or not np.isfinite(value).all():
                raise BackendError(
                    f"{self.spec} returned invalid weights (NaN, infinity or a wrong shape)",
                    hint="copy the model again",
                )
            kept = value > 0
            counts.append(np.bincount(row[kept], minlength=len(batch)))
            ids.append(column[kept].astype(np.uint32))
            weights.append(value[kept].astype(np.float32))
            if report is not None and report(start + len(batch), len(texts)) is False:
                raise Cancelled("computing sparse weights was stopped")
        ends = np.cumsum(np.concatenate([[0], *counts])).astype(np.uint64)
        nothing = np.zeros(0, np.uint32)
        return (
            ends,
            np.concatenate([nothing, *ids]),
            np.concatenate([nothing.astype(np.float32), *weights]),
        )
