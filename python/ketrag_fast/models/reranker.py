"""`native:FOLDER`: score passages for a query with a local cross-encoder.

The folder is saved by transformers: BERT with a pooler and a classifier with one label (`num_labels` 1),
such as the ms-marco-MiniLM models.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.errors import BackendError, IndexDamaged
from ketrag_fast.kernels.text import pack
from ketrag_fast.models.native_folder import NativeModel, open_folder


class CrossEncoder(NativeModel):
    """A loaded cross-encoder. Thread-safe."""

    _model: _core.Classifier

    def __init__(self, spec: str, *, precision: str = "auto", threads: int = 0) -> None:
        """Load the model of a spec.

        `precision` auto is the fastest measured on this machine: f32, or bf16 if its scores stay close. int8
        is used only if it is requested. A kernel set in the environment is used if it supports these.

        Raises:
            ConfigError: the spec has another form.
            BackendError: the folder does not contain such a model.
        """
        self.spec = spec
        self._threads = threads
        self._model = open_folder(
            spec,
            "rerank",
            _core.Classifier.open,
            precision=precision,
            threads=threads,
            what="a cross-encoder",
            hint="cross-encoders of BERT with one label (ms-marco-MiniLM) are built in",
        )

    def scores(
        self, question: str, texts: Sequence[str], *, threads: int | None = None, seconds: float | None = None
    ) -> NDArray[np.float32]:
        """Return the score (logit) of each text, higher is better: float32[texts].

        Raises DeadlineExceeded after `seconds`, BackendError if scores are not finite.
        """
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        workers = self._threads if threads is None else threads
        try:
            return self._model.scores(question, *pack(clean), threads=workers, seconds=seconds)
        except IndexDamaged as error:
            raise BackendError(f"{self.spec} failed: {error.message}") from error
