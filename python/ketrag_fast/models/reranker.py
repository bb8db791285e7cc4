"""`native:FOLDER`: a cross-encoder of the user's own that scores passages together with a question.

A folder as transformers saves it: BERT with a pooler and a classifier of one label (`num_labels` 1), which is
the form of the ms-marco-MiniLM models.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.errors import BackendError, ConfigError, IndexDamaged, InputError
from ketrag_fast.kernels.encoder import KERNEL_VARIABLE
from ketrag_fast.kernels.text import pack

_FORM: Final = "native:"
_PRECISIONS: Final = {"auto": "auto", "fp32": "f32", "bf16": "bf16"}

_BYTES_ALONE: Final = ("avx-vnni", "avx512-vnni")
"""Kernels of int8 alone, which was not measured for pairs."""


class CrossEncoder:
    """A loaded model. Safe for many threads."""

    def __init__(self, spec: str, *, precision: str = "auto", threads: int = 0) -> None:
        """`precision` auto is the fastest measured here: f32, or bf16 where its numbers stay close. The
        environment's kernel counts where it computes in these. Raises ConfigError for a spec of another
        form, BackendError where the folder holds no such model.
        """
        path = path_of(spec)
        forced = os.environ.get(KERNEL_VARIABLE) or "auto"
        kernel = "auto" if forced in _BYTES_ALONE else forced
        self.spec = spec
        self._threads = threads
        if not path.is_dir():
            raise BackendError(
                f"{spec}: there is no folder {path}", hint="give the folder of a cross-encoder"
            )
        try:
            self._model = _core.Classifier.open(
                path, precision=_PRECISIONS.get(precision, "auto"), kernel=kernel, threads=threads
            )
        except (IndexDamaged, InputError) as error:
            reason = error.message.removesuffix("; `sentence-transformers:` serves it")
            raise BackendError(
                f"{spec} cannot be loaded: {reason}",
                hint="cross-encoders of BERT with one label (ms-marco-MiniLM) are built in",
            ) from error

    def scores(
        self, question: str, texts: Sequence[str], *, threads: int | None = None, seconds: float | None = None
    ) -> NDArray[np.float32]:
        """The model's number for each text, the higher the better: float32[texts], before any sigmoid.

        Raises DeadlineExceeded after `seconds`, BackendError where the weights make no finite numbers.
        """
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        workers = self._threads if threads is None else threads
        try:
            return self._model.scores(question, *pack(clean), threads=workers, seconds=seconds)
        except IndexDamaged as error:
            raise BackendError(f"{self.spec} failed: {error.message}") from error

    @property
    def precision(self) -> str:
        """ "f32" or "bf16"."""
        return self._model.precision

    @property
    def kernel(self) -> str:
        """The instructions in use."""
        return self._model.kernel

    @property
    def timings(self) -> list[tuple[str, str, float]]:
        """(kernel, precision, microseconds of a token in one layer) of what was timed, the fastest first."""
        return self._model.timings


def path_of(spec: str) -> Path:
    """The folder of a spec; ConfigError where it has another form."""
    folder = spec.removeprefix(_FORM)
    if folder == spec or not folder.strip():
        raise ConfigError(f"rerank {spec!r} is not native:FOLDER or none")
    return Path(folder).expanduser()
