"""`native:FOLDER` as the model that answers: quote the span of a text that answers a question.

The folder is saved by transformers: `BertForQuestionAnswering`, or the same for RoBERTa, XLM-RoBERTa,
CamemBERT and MPNet, such as deepset/minilm-uncased-squad2.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.errors import BackendError, IndexDamaged
from ketrag_fast.kernels.text import pack
from ketrag_fast.models.native_folder import FORM, NativeModel, open_folder

_SETTING: Final = "answer_llm"


def is_extractive(spec: str) -> bool:
    """Return whether a spec of the setting `answer_llm` names a model that quotes instead of writing."""
    return spec.startswith(FORM)


@dataclass(frozen=True, slots=True)
class SpanScores:
    """The best span of each text as offsets in characters, its score, and the score of "no answer" (logits).

    `is_cut` tells that the question was longer than the model reads.
    """

    starts: NDArray[np.uint64]
    ends: NDArray[np.uint64]
    scores: NDArray[np.float32]
    none: NDArray[np.float32]
    is_cut: bool

    @property
    def margins(self) -> NDArray[np.float64]:
        """How far each span scores above "no answer"; -inf for a text without a span."""
        margins = self.scores.astype(np.float64) - self.none
        return np.where(self.ends > self.starts, margins, -np.inf)


class Extractor(NativeModel):
    """A loaded model for extractive question answering. Thread-safe."""

    _model: _core.Extractor

    def __init__(self, spec: str, *, precision: str = "auto", threads: int = 0) -> None:
        """Load the model of a spec; `precision` is f32 unless bf16 is requested.

        Raises:
            ConfigError: the spec has another form.
            BackendError: the folder does not contain such a model.
        """
        self.spec = spec
        self._threads = threads
        self._model = open_folder(
            spec,
            _SETTING,
            _core.Extractor.open,
            precision="auto" if precision == "int8" else precision,
            threads=threads,
            what="a model for extractive question answering",
            hint="those of BERT, RoBERTa, XLM-RoBERTa, CamemBERT and MPNet are built in",
        )

    def spans(
        self, question: str, texts: Sequence[str], *, threads: int | None = None, seconds: float | None = None
    ) -> SpanScores:
        """Return the span of each text that answers the question best.

        Raises DeadlineExceeded after `seconds`, BackendError if scores are not finite.
        """
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in (question, *texts)]
        workers = self._threads if threads is None else threads
        try:
            return SpanScores(
                *self._model.spans(clean[0], *pack(clean[1:]), threads=workers, seconds=seconds)
            )
        except IndexDamaged as error:
            raise BackendError(f"{self.spec} failed: {error.message}") from error

    def identity(self) -> dict[str, Any]:
        """Return the spec, the kind, the precision and a digest of the files, for the record of an answer."""
        return {
            "spec": self.spec,
            "kind": "extractive",
            "precision": self.precision,
            "fingerprint": self._model.fingerprint(),
        }


class Extractors:
    """The extractive models of an open index, each loaded on first use. Thread-safe."""

    def __init__(self, *, precision: str, threads: int) -> None:
        self._precision, self._threads = precision, threads
        self._lock = threading.Lock()
        self._opened: dict[str, tuple[Extractor, dict[str, Any]]] = {}

    def find(self, spec: str) -> tuple[Extractor, dict[str, Any]]:
        """Return the model of a spec and its identity. Raises what opening it raises."""
        with self._lock:
            if spec not in self._opened:
                model = Extractor(spec, precision=self._precision, threads=self._threads)
                self._opened[spec] = model, model.identity()
            return self._opened[spec]
