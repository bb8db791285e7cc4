"""Reading and writing weights of a trained LeSeGR: a safetensors file with metadata about its use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import ConfigError, ModelMismatch, ReadOnly
from ketrag_fast.storage.durable import replace_path
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.shared.rows import Arrays

FORM: Final = "ketrag/lesegr/1"
_MOST_HEADER: Final = 1 << 24
_REPAIR: Final = "train again: ketrag train cg-rag DATASET -i INDEX"
LINEAR: Final = ("first", "second", "third")
PARTS: Final = ("own", "value", "query", "key")
Matrix = tuple[NDArray[np.float32], NDArray[np.float32]]


@dataclass(frozen=True)
class GraphWeights:
    """Tensors by name (`weigh.first.weight`, `layer1.own.bias`, ...), matrices as inputs x outputs."""

    about: Mapping[str, Any]
    tensors: Mapping[str, NDArray[np.float32]]

    def matrix(self, name: str) -> Matrix:
        """Return a matrix and its bias."""
        return self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]

    @property
    def network(self) -> tuple[Matrix, Matrix, Matrix]:
        """Return the tensors of the edge-weight network."""
        first, second, third = (self.matrix(f"weigh.{name}") for name in LINEAR)
        return first, second, third

    def layer(self, number: int) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Return (own, value, query, key) of a layer, from 1."""
        own, value, query, key = (self.matrix(f"layer{number}.{name}") for name in PARTS)
        return own, value, query, key


def expected_shapes(dimension: int, hidden: int, width: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor."""
    shapes: dict[str, tuple[int, ...]] = {}
    network = zip(LINEAR, ((dimension, width), (width, width), (width, 1)), strict=True)
    for name, shape in (
        *((f"weigh.{name}", shape) for name, shape in network),
        *((f"layer1.{part}", (dimension, hidden)) for part in PARTS),
        *((f"layer2.{part}", (hidden, dimension)) for part in PARTS),
    ):
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = shape, shape[1:]
    return shapes


def embedder_of(arrays: Mapping[str, Arrays]) -> str:
    """Return the identity of an index's embedder, to which weights are bound."""
    return arrays["citation_graph"]["embedder"].tobytes().decode()


def write(path: Path, about: Mapping[str, Any], tensors: Mapping[str, NDArray[np.float32]]) -> None:
    """Write the file atomically."""
    parts, header, at = [], {}, 0
    for name in sorted(tensors):
        data = np.ascontiguousarray(tensors[name], "<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(tensors[name].shape),
            "data_offsets": [at, at + len(data)],
        }
        parts.append(data)
        at += len(data)
    blob = b"".join(parts)
    meta = {**about, "form": FORM, "digest": hashlib.sha256(blob).hexdigest()}
    told = {"__metadata__": {key: json.dumps(value) for key, value in meta.items()}, **header}
    head = json.dumps(told, sort_keys=True).encode()
    head += b" " * (-len(head) % 8)
    fresh = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(len(head).to_bytes(8, "little") + head + blob)
        replace_path(fresh, path)
    except OSError as error:
        raise ReadOnly(f"{path}: cannot be written: {error.strerror or error}") from error


def read_weights(path: Path) -> GraphWeights:
    """Return the weights in a file. Raises ConfigError if it is missing, ModelMismatch if it is invalid."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"lesegr_weights: {path}: {error.strerror or error}",
            hint="give a file written by `ketrag train cg-rag`",
        ) from None
    try:
        return _parse_weights(data)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ModelMismatch(
            f"{path} is not a file of LeSeGR weights, or is damaged: {error}", hint=_REPAIR
        ) from None


def _parse_weights(data: bytes) -> GraphWeights:
    size = int.from_bytes(data[:8], "little")
    if not 2 <= size <= min(_MOST_HEADER, len(data) - 8):
        raise ValueError("its header does not match the file")
    header = json.loads(data[8 : 8 + size])
    about = {key: json.loads(value) for key, value in header.pop("__metadata__").items()}
    if about["form"] != FORM:
        raise ValueError(f"its form is {about['form']!r:.40}, not {FORM}")
    blob = data[8 + size :]
    if hashlib.sha256(blob).hexdigest() != about["digest"]:
        raise ValueError("its checksum does not match")
    tensors = {}
    for name, entry in header.items():
        shape, (first, last) = tuple(map(int, entry["shape"])), entry["data_offsets"]
        if entry["dtype"] != "F32" or last - first != 4 * prod(shape) or not 0 <= first <= last <= len(blob):
            raise ValueError(f"the tensor {name!r:.40} does not fit")
        tensors[name] = np.frombuffer(blob, "<f4", prod(shape), first).reshape(shape).astype(np.float32)
    return GraphWeights(about, tensors)


def check(weights: GraphWeights, path: Path, arrays: Mapping[str, Arrays]) -> None:
    """Raise ModelMismatch if the weights are for another embedder, or their shapes are inconsistent."""
    about = weights.about
    dimension = StoredVectors.of(arrays["vectors"]).dimension
    try:
        shapes = expected_shapes(int(about["dimension"]), int(about["hidden"]), int(about["width"]))
        fits = {name: tensor.shape for name, tensor in weights.tensors.items()} == shapes
        fits = fits and all(bool(np.isfinite(tensor).all()) for tensor in weights.tensors.values())
        settings = (about["wanted"], about["epsilon"], about["share"], about["heads"], about["kinds"])
        fits = fits and all(isinstance(value, (int, float)) for value in settings)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelMismatch(f"{path} is damaged: {error}", hint=_REPAIR) from None
    if not fits:
        raise ModelMismatch(f"{path} is damaged: the shapes of its tensors are inconsistent", hint=_REPAIR)
    if about["dimension"] != dimension or about["embedder"] != embedder_of(arrays):
        raise ModelMismatch(
            f"{path} was trained on vectors of another model ({about['dimension']} dimensions) than this "
            f"index has ({dimension})",
            hint=_REPAIR,
        )
