"""The native sentence encoder: embeds texts with a model folder, without PyTorch or another package.

Reads folders of sentence-transformers (BERT, DistilBERT, RoBERTa, XLM-RoBERTa, CamemBERT, MPNet).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.errors import ConfigError, InputError
from ketrag_fast.kernels.arrays import Report, callback, count, pack_texts, text
from ketrag_fast.records import dataclass

"""Number format. "auto" is the fastest on this machine.

It uses bf16 and int8 only if the model tolerates them.
"""

KERNEL_VARIABLE = "KETRAG_ENCODER_KERNEL"
"""Environment variable that selects the instruction set: auto, portable, neon, avx2, avx-vnni, avx512,
avx512-vnni, avx512-bf16 or amx."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Vectors [texts, dimension], the number of tokens, and the number of extra windows of long texts."""

    vectors: NDArray[np.float32]
    tokens: int
    more: int


@dataclass(frozen=True, slots=True)
class EncodedSpans:
    """Vectors of texts [texts, dimension] and of spans [spans, dimension], and the counts as in `Encoded`."""

    vectors: NDArray[np.float32]
    spans: NDArray[np.float32]
    tokens: int
    more: int


class Encoder:
    """A loaded model. `encode` may be called from several threads at once.

    Examples:
        >>> encoder = Encoder.open(folder, precision="f32")  # a folder of sentence-transformers
        >>> vectors = encoder.encode(["one text", "another"])
        >>> vectors.shape == (2, encoder.dimension)
        True
    """

    def __init__(self, core: _core.Encoder) -> None:
        self._core = core

    @classmethod
    def open(
        cls,
        folder: str | Path,
        *,
        precision: str = "auto",
        kernel: str | None = None,
        threads: int = 0,
        report: Report = None,
    ) -> Encoder:
        """Load a model folder. If `kernel` is None, the environment variable selects it, else "auto".

        With "auto", the widest kernel of each number format that `precision` allows is timed on the model's
        shapes for a few milliseconds, and the fastest is used. avx512-bf16 computes in bf16 only, amx in
        bf16 and int8, avx-vnni and avx512-vnni in int8 only. The other kernels compute in f32 and int8; they
        emulate amx's bf16 bit for bit, more slowly than f32. int8 gives the same bits with every kernel:
        weights and activations have 8 bits and a scale for each 64 inputs, calibrated on built-in texts.

        Raises InputError for an unsupported architecture or an unknown argument value, and IndexDamaged
        for a missing or invalid file.
        """
        if kernel is None:
            kernel = os.environ.get(KERNEL_VARIABLE) or "auto"
        if not isinstance(folder, str | os.PathLike):
            raise InputError(f"folder must be a path, not a {type(folder).__name__}")
        core = _core.Encoder.open(
            folder,
            precision=text(precision, "precision"),
            kernel=text(kernel, "kernel"),
            threads=count(threads, "threads"),
            report=callback(report),
        )
        return cls(core)

    def encode(
        self,
        texts: Sequence[str],
        *,
        prompt: str = "",
        threads: int = 0,
        report: Report = None,
    ) -> NDArray[np.float32]:
        """Return a vector per text, pooled and normalised as the folder specifies: float32 [n, dimension].

        `prompt` is prepended to each text. A text longer than the model's limit is cut into windows of
        equal size (to within a token); their unit vectors are averaged, weighted by tokens, and
        normalised. An empty text has the zero vector. A row depends, to the bit, only on its text and the
        prompt, not on the other texts or the number of threads. `report(done, total)` counts tokens.
        """
        return self.encode_counted(texts, prompt=prompt, threads=threads, report=report).vectors

    def encode_counted(
        self,
        texts: Sequence[str],
        *,
        prompt: str = "",
        threads: int = 0,
        report: Report = None,
    ) -> Encoded:
        """Return what `encode` returns, with the numbers of tokens and windows."""
        result = self._core.encode(
            *pack_texts(texts, "texts"),
            prompt=text(prompt, "prompt"),
            threads=count(threads, "threads"),
            report=callback(report),
        )
        return Encoded(*result)

    def encode_spans(
        self,
        texts: Sequence[str],
        spans: Sequence[Sequence[tuple[int, int]]],
        *,
        prompt: str = "",
        threads: int = 0,
        report: Report = None,
    ) -> EncodedSpans:
        """Return the vectors of `encode`, and from the same pass a unit vector for each span of each text.

        `spans` holds, for each text, spans in bytes of its UTF-8. A span's vector is the mean of the final
        states of its tokens, which attend to the whole window ("late" pooling); the model is not run again.
        A span without tokens has the zero vector. If several windows share a span, the window with most
        of its tokens is used. Raises InputError if a span is not within its text.

        Examples:
            >>> encoder = Encoder.open(folder, precision="f32")
            >>> found = encoder.encode_spans(["One sentence. Another."], [[(0, 13), (14, 22)]])
            >>> found.spans.shape == (2, encoder.dimension)
            True
        """
        if len(spans) != len(texts):
            raise InputError(f"texts and spans must have equal length, got {len(texts)} and {len(spans)}")
        indptr = np.cumsum([0, *map(len, spans)], dtype=np.uint64)
        flat = np.array([span for own in spans for span in own], np.int64).reshape(-1, 2)
        if flat.size and (flat.min() < 0 or flat.max() >= 2**32):
            raise InputError("spans must be between 0 and 2^32 - 1 bytes")
        result = self._core.encode_spans(
            *pack_texts(texts, "texts"),
            indptr,
            flat.astype(np.uint32),
            prompt=text(prompt, "prompt"),
            threads=count(threads, "threads"),
            report=callback(report),
        )
        return EncodedSpans(*result)

    def counts(self, texts: Sequence[str], *, threads: int = 0, report: Report = None) -> NDArray[np.uint64]:
        """Return the number of tokens of each text, without truncation, special tokens and prompt."""
        return self._core.counts(
            *pack_texts(texts, "texts"), threads=count(threads, "threads"), report=callback(report)
        )

    def closeness(self, *, threads: int = 0, report: Report = None) -> float:
        """Return the lowest cosine similarity to the f32 vectors of 32 built-in texts in many languages.

        1 for f32.
        """
        return self._core.closeness(threads=count(threads, "threads"), report=callback(report))

    def lengths(
        self,
        texts: Sequence[str],
        *,
        prompt: str = "",
        threads: int = 0,
        report: Report = None,
    ) -> NDArray[np.uint64]:
        """Return the number of tokens in all windows of each text, including special tokens and prompt."""
        return self._core.lengths(
            *pack_texts(texts, "texts"),
            prompt=text(prompt, "prompt"),
            threads=count(threads, "threads"),
            report=callback(report),
        )

    @property
    def prompts(self) -> dict[str, str]:
        """The prompts of the model folder by name."""
        return dict(self._core.prompts)

    def prompt(self, name: str | None = None) -> str:
        """Return the prompt of this name, or the folder's default if `name` is None. Raises ConfigError."""
        name = self._core.default_prompt if name is None else name
        if name is None:
            return ""
        prompts = self.prompts
        if name not in prompts:
            raise ConfigError(f"the model has no prompt {name!r}", hint=f"it has: {sorted(prompts)}")
        return prompts[name]

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._core.dimension

    @property
    def longest(self) -> int:
        """Maximum input in tokens, special tokens included."""
        return self._core.longest

    @property
    def precision(self) -> str:
        """The number format in use: f32, bf16 or int8."""
        return self._core.precision

    @property
    def kernel(self) -> str:
        """The instruction set in use."""
        return self._core.kernel

    @property
    def timings(self) -> list[tuple[str, str, float]]:
        """(kernel, precision, microseconds per token and layer) of each timed kernel, the fastest first."""
        return self._core.timings

    @property
    def note(self) -> str | None:
        """Reason why a faster precision or the processor's matrix tiles are not used; None if they are."""
        return self._core.note

    def fingerprint(self, *, report: Report = None) -> str:
        """Return a digest of all files and of the precision, on which the vectors depend. Reads the files."""
        return self._core.fingerprint(report=callback(report))


def kernels() -> list[str]:
    """Return the kernels that this machine can run, the least specialised first."""
    return _core.encoder_kernels()
