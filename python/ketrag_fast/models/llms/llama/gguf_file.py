"""Validate the header of a GGUF file before llama.cpp maps the rest.

A truncated file loads silently and fails, or crashes, on first use, so the tensor table is compared with the
file size first. The header is untrusted: counts and lengths are limited by the file size. Format:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from ketrag_fast.errors import BackendError

_SCALARS: Final = dict(enumerate(("<B", "<b", "<H", "<h", "<I", "<i", "<f", "<?"))) | {
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9
_KEPT_ARRAY: Final = 4096  # longer arrays are vocabularies: counted, not kept
_LONGEST_TEXT: Final = 1 << 24

# Elements and bytes of a block, by tensor type (ggml.h). Unknown types are left to llama.cpp.
_BLOCKS: Final = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 40),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110),
    22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8),
    29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GgufFile:
    """The header of a file. `lengths` has the sizes of arrays; long ones are not kept."""

    path: Path
    size: int
    facts: Mapping[str, Any] = field(hash=False)
    lengths: Mapping[str, int] = field(hash=False)

    @property
    def architecture(self) -> str:
        """The architecture: llama, qwen2, gemma3, ..."""
        return str(self.facts.get("general.architecture", ""))

    @property
    def context(self) -> int | None:
        """The context size of the training in tokens, or None."""
        return self._number("context_length")

    @property
    def template(self) -> str | None:
        """The chat template (Jinja), or None."""
        found = self.facts.get("tokenizer.chat_template")
        return found if isinstance(found, str) and found.strip() else None

    @property
    def vocabulary(self) -> int:
        """The size of the vocabulary."""
        return self.lengths.get("tokenizer.ggml.tokens", 0)

    @property
    def width(self) -> int:
        """The width of the residual stream."""
        return self._number("embedding_length") or 4096

    @property
    def heads(self) -> int:
        """The number of attention heads."""
        return self._number("attention.head_count") or 32

    def cell_bytes(self) -> int:
        """Return the context memory per token: keys and values of all layers in 16 bits.

        An upper bound: layers with a window, a compressed cache or no cache count in full.
        """
        layers = self._number("block_count") or 32
        heads = self.heads
        groups = self.facts.get(f"{self.architecture}.attention.head_count_kv", heads)
        total = sum(groups) if isinstance(groups, list) and groups else layers * (_positive(groups) or heads)
        usual = max(1, self.width // heads)
        key = self._number("attention.key_length") or usual
        value = self._number("attention.value_length") or usual
        return 2 * total * (key + value)

    def _number(self, name: str) -> int | None:
        found = self.facts.get(f"{self.architecture}.{name}")
        if isinstance(found, list) and found:
            found = max(found)
        return _positive(found)


def read_gguf(path: Path) -> GgufFile:
    """Read and check a header. Raises BackendError: missing, not GGUF, truncated or split."""
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise BackendError(f"{path} is a folder", hint="give the .gguf file in it")
        with path.open("rb") as file:
            return _Head(path, file, size).read()
    except FileNotFoundError as error:
        raise BackendError(f"no such file: {path}", hint="give the path of a GGUF model") from error
    except OSError as error:
        raise BackendError(f"cannot read {path}: {error.strerror}") from error


class _Head:
    def __init__(self, path: Path, file: BinaryIO, size: int) -> None:
        self.path, self.file, self.size = path, file, size

    def read(self) -> GgufFile:
        if self.file.read(4) != b"GGUF":
            raise BackendError(
                f"{self.path} is not a GGUF file",
                hint="llama.cpp only reads GGUF; convert a model folder with its convert_hf_to_gguf.py",
            )
        version = self.one("<I")
        if version not in (2, 3):
            raise BackendError(f"{self.path} has GGUF version {version}; supported are 2 and 3")
        tensors, pairs = self.one("<Q"), self.one("<Q")
        if tensors > self.size or pairs > self.size:
            raise self.damaged("its header counts more entries than the file has bytes")
        facts: dict[str, Any] = {}
        lengths: dict[str, int] = {}
        for _ in range(pairs):
            name = self.text()
            facts[name] = self.value(self.one("<I"), name, lengths)
        if (_positive(facts.get("split.count")) or 1) > 1:
            raise BackendError(
                f"{self.path} is one of several parts of a model",
                hint="merge them: llama-gguf-split --merge FIRST.gguf WHOLE.gguf",
            )
        self.compare(tensors, _positive(facts.get("general.alignment")) or 32)
        return GgufFile(self.path, self.size, facts, lengths)

    def compare(self, count: int, alignment: int) -> None:
        """Raise BackendError if a tensor ends after the end of the file."""
        end = 0
        for _ in range(count):
            self.text()
            dimensions = self.one("<I")
            if dimensions > 8:
                raise self.damaged("a tensor has too many dimensions")
            shape = [self.one("<Q") for _ in range(dimensions)]
            kind, offset = self.one("<I"), self.one("<Q")
            block = _BLOCKS.get(kind)
            size = 0 if block is None else math.prod(shape) // block[0] * block[1]
            end = max(end, offset + size)
        start = -(-self.file.tell() // alignment) * alignment
        if start + end > self.size:
            raise self.damaged(f"its header needs {start + end:,} bytes, but it has {self.size:,}")

    def damaged(self, why: str) -> BackendError:
        return BackendError(
            f"{self.path} is truncated or damaged: {why}", hint="copy or download the model again"
        )

    def bytes(self, count: int) -> bytes:
        if count > self.size - self.file.tell():
            raise self.damaged("it ends within its header")
        return self.file.read(count)

    def one(self, form: str) -> Any:
        return struct.unpack(form, self.bytes(struct.calcsize(form)))[0]

    def text(self) -> str:
        length = self.one("<Q")
        if length > _LONGEST_TEXT:
            raise self.damaged(f"a string in its header has {length:,} bytes")
        return self.bytes(length).decode("utf-8", "replace")

    def value(self, kind: int, name: str, lengths: dict[str, int]) -> Any:
        if kind in _SCALARS:
            return self.one(_SCALARS[kind])
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            raise self.damaged(f"{name!r} has the unknown type {kind}")
        inner, count = self.one("<I"), self.one("<Q")
        if count > self.size:
            raise self.damaged(f"{name!r} has {count:,} entries")
        lengths[name] = count
        keep = count <= _KEPT_ARRAY
        if inner in _SCALARS:
            width = struct.calcsize(_SCALARS[inner])
            data = self.bytes(count * width)
            return [v for (v,) in struct.iter_unpack(_SCALARS[inner], data)] if keep else None
        if inner != _STRING:
            raise self.damaged(f"{name!r} is an array of the unknown type {inner}")
        texts = []
        for _ in range(count):
            text = self.text()
            if keep:
                texts.append(text)
        return texts if keep else None


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
