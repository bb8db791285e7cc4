"""The native sentence encoder: texts to vectors by a model's folder, with no other package.

A folder of sentence-transformers is read as it is (BERT, RoBERTa, XLM-RoBERTa, CamemBERT, MPNet).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.errors import ConfigError, InputError
from ketrag_fast.kernels.arrays import Report, callback, count, pack_texts, text

PRECISIONS = ("auto", "f32", "bf16", "int8")
"""auto: the fastest on this machine; bf16 and int8 only where the model bears it."""

KERNEL_VARIABLE = "KETRAG_ENCODER_KERNEL"
"""The environment's choice of instructions: auto, portable, avx2, avx-vnni, avx512, avx512-vnni, avx512-bf16
or amx."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Vectors [texts, dimension], the texts' own tokens, and windows beyond one for each text."""

    vectors: NDArray[np.float32]
    tokens: int
    more: int


class Encoder:
    """A loaded model. `encode` may be called from several threads at once."""

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
        """Loads a model's folder; `kernel` None is the environment's choice, else auto.

        With auto the kernels that serve `precision` are timed on the model's own shapes, for some
        milliseconds each, and the fastest is taken. avx512-bf16 computes in bf16 alone, amx in bf16 and
        int8, avx-vnni and avx512-vnni in int8 alone; the others in f32 and int8, and in bf16 what amx does,
        to the bit, more slowly than in f32. int8 has the same bits with every kernel: weights of 8 bits a
        channel, activations of 8 bits a token, scaled by what the built-in texts show.

        Raises InputError where the architecture is not built in or an argument is none of its
        values, and IndexDamaged where a file is missing or not what it should be.
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
        """A row for each text, pooled and normalised as the folder says: float32 (n, dimension).

        `prompt` is put before each text. A text longer than the model reads is cut into windows of
        sizes that differ by at most a token, whose unit vectors are averaged by the numbers of its
        tokens in them and normalised; an empty text has the vector zero. A row depends on its text
        and the prompt alone, to the bit: not on the other texts or the number of threads.
        `report(done, total)` counts the texts' own tokens.
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
        """As `encode`, with the numbers of tokens and of windows."""
        made = self._core.encode(
            *pack_texts(texts, "texts"),
            prompt=text(prompt, "prompt"),
            threads=count(threads, "threads"),
            report=callback(report),
        )
        return Encoded(*made)

    def counts(self, texts: Sequence[str], *, threads: int = 0, report: Report = None) -> NDArray[np.uint64]:
        """The tokens of each text alone: no special ones, no prompt, and not cut."""
        return self._core.counts(
            *pack_texts(texts, "texts"), threads=count(threads, "threads"), report=callback(report)
        )

    def closeness(self, *, threads: int = 0, report: Report = None) -> float:
        """The lowest cosine to f32 on 32 built-in texts in many languages; 1 in f32 itself."""
        return self._core.closeness(threads=count(threads, "threads"), report=callback(report))

    def lengths(
        self,
        texts: Sequence[str],
        *,
        prompt: str = "",
        threads: int = 0,
        report: Report = None,
    ) -> NDArray[np.uint64]:
        """The tokens that each text takes, in all its windows, special tokens and prompt included."""
        return self._core.lengths(
            *pack_texts(texts, "texts"),
            prompt=text(prompt, "prompt"),
            threads=count(threads, "threads"),
            report=callback(report),
        )

    @property
    def prompts(self) -> dict[str, str]:
        """The folder's prompts by name."""
        return dict(self._core.prompts)

    def prompt(self, name: str | None = None) -> str:
        """The folder's prompt of this name; without one its default, or none. Raises ConfigError."""
        name = self._core.default_prompt if name is None else name
        if name is None:
            return ""
        prompts = self.prompts
        if name not in prompts:
            raise ConfigError(f"the model has no prompt {name!r}", hint=f"it has: {sorted(prompts)}")
        return prompts[name]

    @property
    def dimension(self) -> int:
        """Values of a vector."""
        return self._core.dimension

    @property
    def longest(self) -> int:
        """Tokens that the model reads at once, special tokens included."""
        return self._core.longest

    @property
    def precision(self) -> str:
        """f32, bf16 or int8: what `auto` became."""
        return self._core.precision

    @property
    def kernel(self) -> str:
        """The instructions in use."""
        return self._core.kernel

    @property
    def timings(self) -> list[tuple[str, str, float]]:
        """(kernel, precision, microseconds of a token in one layer) of what was timed, the fastest first."""
        return self._core.timings

    @property
    def note(self) -> str | None:
        """Why a faster precision, or the processor's tiles, are not used although it has them, if so."""
        return self._core.note

    def fingerprint(self, *, report: Report = None) -> str:
        """A digest of the files and the precision that the vectors depend on. Reads the files whole."""
        return self._core.fingerprint(report=callback(report))


def kernels() -> list[str]:
    """The kernels that this machine can run, the plainest first."""
    return _core.encoder_kernels()
