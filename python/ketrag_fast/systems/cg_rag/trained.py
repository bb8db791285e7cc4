"""Mode cg-rag-trained: a trained graph transformer over the candidates of a query."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.cg_rag.candidates import Candidates, candidates, free_scores, owners_of
from ketrag_fast.systems.cg_rag.settings import CgRagSettings
from ketrag_fast.systems.cg_rag.weights import GraphWeights, check, read_weights
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
        None if given is not None else "trained weights (-o lesegr_weights=FILE, from `ketrag train cg-rag`)"
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
