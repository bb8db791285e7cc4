"""`native:FOLDER`: a cross-encoder of the user's own that scores passages together with a question.

A folder as transformers saves it: BERT with a pooler and a classifier of one label (`num_labels` 1), which is
the form of the ms-marco-MiniLM models.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.errors import BackendError, ConfigError, IndexDamaged, InputError
from ketrag_fast.kernels.text import pack

_FORM: Final = "native:"
_PRECISIONS: Final = {"auto": "auto", "fp32": "f32", "bf16": "bf16"}


class CrossEncoder:
    """A loaded model. Safe for many threads."""

    def __init__(self, spec: str, *, precision: str = "auto", threads: int = 0) -> None:
        """`precision` auto is bf16 where the processor has matrix tiles, else f32. Raises ConfigError for a
        spec of another form, BackendError where the folder holds no such model.
        """
        path = path_of(spec)
        self.spec = spec
        self._threads = threads
        if not path.is_dir():
            raise BackendError(
                f"{spec}: there is no folder {path}", hint="give the folder of a cross-encoder"
            )
        try:
            self._model = _core.Classifier.open(
                path, precision=_PRECISIONS.get(precision, "auto"), threads=threads
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


def path_of(spec: str) -> Path:
    """The folder of a spec; ConfigError where it has another form."""
    folder = spec.removeprefix(_FORM)
    if folder == spec or not folder.strip():
        raise ConfigError(f"rerank {spec!r} is not native:FOLDER or none")
    return Path(folder).expanduser()
