"""`native:FOLDER`: local models that read a question together with a text.

The folder is saved by transformers. A cross-encoder scores passages: BERT with a pooler and a classifier with
one label (`num_labels` 1), such as the ms-marco-MiniLM models. An extractor quotes the span of a text that
answers a question: `BertForQuestionAnswering`, or the same for RoBERTa, XLM-RoBERTa, CamemBERT and MPNet,
such as deepset/minilm-uncased-squad2.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.errors import BackendError, ConfigError, IndexDamaged, InputError
from ketrag_fast.kernels.encoder import KERNEL_VARIABLE
from ketrag_fast.kernels.text import pack
from ketrag_fast.records import dataclass

FORM: Final = "native:"
_PRECISIONS: Final = {"auto": "auto", "fp32": "f32", "bf16": "bf16", "int8": "int8"}
_BYTES_ALONE: Final = ("avx-vnni", "avx512-vnni")
"""Kernels for int8 only."""


class _NativeModel:
    """A model loaded from a folder. Thread-safe."""

    _model: _core.Classifier | _core.Extractor
    _core_class: type[_core.Classifier | _core.Extractor]
    setting: str
    """The setting that has the spec, for messages."""
    kind: str
    supported: str

    def __init__(self, spec: str, *, precision: str = "auto", threads: int = 0) -> None:
        """Load the model of a spec.

        `precision` auto is the fastest measured on this machine: f32, or bf16 if its scores stay close. int8
        is used only if it is requested. A kernel set in the environment is used if it supports these.

        Raises:
            ConfigError: the spec has another form.
            BackendError: the folder does not contain such a model.
        """
        folder = spec.removeprefix(FORM)
        if folder == spec or not folder.strip():
            raise ConfigError(f"{self.setting} must be native:FOLDER or none, got {spec!r}")
        path = Path(folder).expanduser()
        if not path.is_dir():
            raise BackendError(f"{spec}: no such folder: {path}", hint=f"give the folder of {self.kind}")
        forced = os.environ.get(KERNEL_VARIABLE) or "auto"
        kernel = "auto" if forced in _BYTES_ALONE and precision != "int8" else forced
        self.spec, self._threads = spec, threads
        try:
            self._model = self._core_class.open(
                path, precision=_PRECISIONS.get(precision, "auto"), kernel=kernel, threads=threads
            )
        except (IndexDamaged, InputError) as error:
            reason = error.message.removesuffix("; `sentence-transformers:` serves it")
            raise BackendError(f"{spec} cannot be loaded: {reason}", hint=self.supported) from error

    def _failed(self, error: IndexDamaged) -> BackendError:
        return BackendError(f"{self.spec} failed: {error.message}")

    @property
    def precision(self) -> str:
        """The precision in use, "f32", "bf16" or "int8"."""
        return self._model.precision

    @property
    def kernel(self) -> str:
        """The kernel (instruction set) in use."""
        return self._model.kernel

    @property
    def timings(self) -> list[tuple[str, str, float]]:
        """Measured (kernel, precision, microseconds per token and layer), fastest first."""
        return self._model.timings


class CrossEncoder(_NativeModel):
    """A loaded cross-encoder. Thread-safe."""

    _model: _core.Classifier
    _core_class = _core.Classifier
    setting = "rerank"
    kind = "a cross-encoder"
    supported = "cross-encoders of BERT with one label (ms-marco-MiniLM) are built in"

    def scores(
        self, question: str, texts: Sequence[str], *, threads: int | None = None, seconds: float | None = None
    ) -> NDArray[np.float32]:
        """Return the score (logit) of each text, higher is better: float32[texts].

        Raises DeadlineExceeded after `seconds`, BackendError if scores are not finite.
        """
        workers = self._threads if threads is None else threads
        try:
            return self._model.scores(question, *pack(_clean(texts)), threads=workers, seconds=seconds)
        except IndexDamaged as error:
            raise self._failed(error) from error


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


class Extractor(_NativeModel):
    """A loaded model for extractive question answering. Thread-safe."""

    _model: _core.Extractor
    _core_class = _core.Extractor
    setting = "answer_llm"
    kind = "a model for extractive question answering"
    supported = "those of BERT, RoBERTa, XLM-RoBERTa, CamemBERT and MPNet are built in"

    def __init__(self, spec: str, *, precision: str = "auto", threads: int = 0) -> None:
        """Load the model of a spec; `precision` is f32 unless bf16 is requested."""
        super().__init__(spec, precision="auto" if precision == "int8" else precision, threads=threads)

    def spans(
        self, question: str, texts: Sequence[str], *, threads: int | None = None, seconds: float | None = None
    ) -> SpanScores:
        """Return the span of each text that answers the question best.

        Raises DeadlineExceeded after `seconds`, BackendError if scores are not finite.
        """
        own, *clean = _clean([question, *texts])
        workers = self._threads if threads is None else threads
        try:
            return SpanScores(*self._model.spans(own, *pack(clean), threads=workers, seconds=seconds))
        except IndexDamaged as error:
            raise self._failed(error) from error

    def identity(self) -> dict[str, Any]:
        """Return the spec, the kind, the precision and a digest of the files, for the record of an answer."""
        return {
            "spec": self.spec,
            "kind": "extractive",
            "precision": self.precision,
            "fingerprint": self._model.fingerprint(),
        }


def _clean(texts: Sequence[str]) -> list[str]:
    """Replace lone surrogates, which no tokenizer takes."""
    return [text.encode("utf-8", "replace").decode("utf-8") for text in texts]


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
