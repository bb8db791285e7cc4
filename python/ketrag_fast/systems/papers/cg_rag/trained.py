"""Mode cg-rag-trained: a trained graph transformer over the candidates of a query, and its weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ConfigError, ModelMismatch, ReadOnly
from ketrag_fast.records import dataclass
from ketrag_fast.storage.durable import replace_path
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.papers.cg_rag import CgRagSettings
from ketrag_fast.systems.papers.cg_rag.candidates import Candidates, candidates, free_scores, owners_of
from ketrag_fast.systems.shared.rows import F32, Arrays
from ketrag_fast.systems.spec.system import ChannelQuery

LAYERS: Final = 2
_KEPT: Final = 2
_lock = Lock()
_loaded: dict[tuple[str, int, int], Network] = {}


class Network:
    """Loaded weights, packed for the core, and the edge weights computed so far.

    Edge weights do not depend on the query: they are computed when a query first has the edge among its
    candidates, and cached. Concurrent threads write the same numbers.
    """

    def __init__(self, weights: GraphWeights) -> None:
        self.weights = weights
        layers = [weights.layer(number) for number in range(1, LAYERS + 1)]
        self._packed = _core.GraphNetwork(weights.network, layers, heads=int(weights.about["heads"]))
        self._known: tuple[object, F32] = (None, np.zeros(0, np.float32))

    def alphas(self, found: Candidates, arrays: Mapping[str, Arrays], threads: int = 0) -> F32:
        """Return the weight of each edge among the candidates."""
        graph = arrays["citation_graph"]["edges_indices"]
        of, known = self._known
        if of is not graph:  # the first question, or another generation
            known = np.full(len(graph), np.nan, np.float32)
            self._known = (graph, known)
        made: F32 = known[found.places]
        lacking = np.flatnonzero(np.isnan(made))
        if len(lacking):
            made[lacking] = self._packed.weigh(
                StoredVectors.of(arrays["vectors"]).decode(found.units),
                owners_of(found)[lacking].astype(np.uint32),
                found.indices[lacking],
                threads=threads,
            )
            known[found.places[lacking]] = made[lacking]
        return made

    def scores(
        self, found: Candidates, vector: F32, arrays: Mapping[str, Arrays], threads: int = 0
    ) -> NDArray[np.float64]:
        """Return the network's score of each ranked candidate."""
        alphas = self.alphas(found, arrays, threads)
        learned = self._packed.scores(
            StoredVectors.of(arrays["vectors"]).decode(found.units),
            (found.indptr, found.indices),
            alphas * found.weights[found.indices],
            found.weights,
            np.ascontiguousarray(vector, np.float32),
            found.ranked,
            threads=threads,
        )
        own = arrays["citation_graph"]["edge_alpha"][found.places]
        free = free_scores(found, own, float(self.weights.about["share"]), LAYERS)
        return free[found.ranked] + learned


def lacks(settings: Settings) -> str | None:
    """Return what the mode needs outside the index and does not find, or None."""
    given = settings.of(CgRagSettings).lesegr_weights
    return (
        None
        if given is not None
        else "trained weights (-o lesegr_weights=FILE, of `ketrag bench train cg-rag`)"
    )


def rank(query: ChannelQuery, arrays: Mapping[str, Arrays]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the candidates, best first: the scores of LeSeGR plus those of the trained network."""
    assert query.vector is not None  # noqa: S101 - the channel asks for it
    if not query.vector.any():
        return np.zeros(0, np.int64), np.zeros(0)
    network = load_network(query.settings, arrays)
    about, threads = network.weights.about, query.settings.threads
    found = candidates(
        query.question,
        query.vector,
        arrays,
        wanted=int(about["wanted"]),
        kinds=int(about["kinds"]),
        epsilon=float(about["epsilon"]),
        layers=LAYERS,
        threads=threads,
    )
    scores = network.scores(found, query.vector, arrays, threads)
    units = found.units[found.ranked]
    order = np.lexsort((units, -scores))
    return units[order], scores[order]


def load_network(settings: Settings, arrays: Mapping[str, Arrays]) -> Network:
    """Return the network of the settings, checked and cached."""
    path = Path(settings.of(CgRagSettings).lesegr_weights or "").expanduser()
    try:
        about = path.stat()
        key = (str(path), about.st_mtime_ns, about.st_size)
    except OSError:
        key = (str(path), 0, 0)
    with _lock:
        network = _loaded.get(key)
        if network is not None:
            check(network.weights, path, arrays)
            return network
        weights = read_weights(path)
        check(weights, path, arrays)
        network = _loaded[key] = Network(weights)
        while len(_loaded) > _KEPT:
            _loaded.pop(next(iter(_loaded)))
        return network


FORM: Final = "ketrag/lesegr/1"
_MOST_HEADER: Final = 1 << 24
_REPAIR: Final = "train again: ketrag bench train cg-rag DATASET -i INDEX"
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
            hint="give a file written by `ketrag bench train cg-rag`",
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
