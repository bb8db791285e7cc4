"""`native:FOLDER`: open a local model that reads a question together with a text."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from ketrag_fast import _core
from ketrag_fast.errors import BackendError, ConfigError, IndexDamaged, InputError
from ketrag_fast.kernels.encoder import KERNEL_VARIABLE

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
