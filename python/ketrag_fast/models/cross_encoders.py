"""`native:FOLDER`: local models that read a question together with a text.

The folder is saved by transformers. A cross-encoder scores passages: BERT with a pooler and a classifier with
one label (`num_labels` 1), such as the ms-marco-MiniLM models. An extractor quotes the span of a text that
answers a question: `BertForQuestionAnswering`, or the same for RoBERTa, XLM-RoBERTa, CamemBERT and MPNet,
such as deepset/minilm-uncased-squad2.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.errors import BackendError, ConfigError, IndexDamaged, InputError
from ketrag_fast.kernels.encoder import KERNEL_VARIABLE
from ketrag_fast.kernels.text import pack

FORM: Final = "native:"
_PRECISIONS: Final = {"auto": "auto", "fp32": "f32", "bf16": "bf16", "int8": "int8"}
_BYTES_ALONE: Final = ("avx-vnni", "avx512-vnni")
"""Kernels for int8 only."""
T = TypeVar("T")


def path_of(spec: str, setting: str) -> Path:
    """Return the folder of a spec. Raises ConfigError, which names the setting, if it has another form."""
    folder = spec.removeprefix(FORM)
    if folder == spec or not folder.strip():
        raise ConfigError(f"{setting} must be native:FOLDER or none, got {spec!r}")
    return Path(folder).expanduser()


def open_folder(
    spec: str, setting: str, opener: Callable[..., T], *, precision: str, threads: int, what: str, hint: str
) -> T:
    """Return the model of a spec.

    Args:
        spec: `native:FOLDER`.
        setting: The setting that has the spec, for messages.
        opener: Opens a folder with a `precision` and a `kernel`: the one that the environment names, or auto
            if that one only supports int8 and another precision is requested.
        what: The kind of model, for messages.
        hint: Which models are supported.

    Raises:
        ConfigError: The spec has another form.
        BackendError: The folder does not contain such a model.
    """
    path = path_of(spec, setting)
    forced = os.environ.get(KERNEL_VARIABLE) or "auto"
    kernel = "auto" if forced in _BYTES_ALONE and precision != "int8" else forced
    if not path.is_dir():
        raise BackendError(f"{spec}: no such folder: {path}", hint=f"give the folder of {what}")
    try:
        return opener(path, precision=_PRECISIONS.get(precision, "auto"), kernel=kernel, threads=threads)
    except (IndexDamaged, InputError) as error:
        reason = error.message.removesuffix("; `sentence-transformers:` serves it")
        raise BackendError(f"{spec} cannot be loaded: {reason}", hint=hint) from error


class NativeModel:
    """A model that reads a question together with a text, loaded from a folder. Thread-safe."""

    spec: str
    _threads: int
    _model: _core.Classifier | _core.Extractor

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
