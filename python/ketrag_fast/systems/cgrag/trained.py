"""Mode cg-rag-trained: a graph transformer over the candidates of a question, with trained weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.config import Settings
from ketrag_fast.declarations.system import Query
from ketrag_fast.stages.rows import F32, Arrays
from ketrag_fast.systems.cgrag.candidates import Candidates, candidates, free_scores
from ketrag_fast.systems.cgrag.settings import CgRagSettings
from ketrag_fast.systems.cgrag.weights import Weights, check, read

LAYERS: Final = 2
_KEPT: Final = 2
_lock = Lock()
_loaded: dict[tuple[str, int, int], Weights] = {}
_weighed: dict[tuple[str, int], tuple[object, F32]] = {}
"""By weights and graph, which is kept alive so that its number stays its own."""


def lacks(settings: Settings) -> str | None:
    """What the mode needs beside the index."""
    given = settings.of(CgRagSettings).lesegr_weights
    return (
        None if given is not None else "trained weights (--lesegr-weights FILE, made by `ketrag train cgrag`)"
    )


def rank(query: Query, arrays: Mapping[str, Arrays]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The candidates, best first: what LeSeGR without training gives them, and what was learned to add."""
    assert query.vector is not None  # noqa: S101 - the channel asks for it
    if not query.vector.any():
        return np.zeros(0, np.int64), np.zeros(0)
    weights, alphas = prepared(query.settings, arrays)
    about = weights.about
    found = candidates(
        query.question,
        query.vector,
        arrays,
        wanted=int(about["wanted"]),
        kinds=int(about["kinds"]),
        epsilon=float(about["epsilon"]),
        layers=LAYERS,
    )
    scores = scored(found, query.vector, arrays, weights, alphas)
    own = np.flatnonzero(found.ranked)
    order = own[np.lexsort((found.units[own], -scores[own]))]
    return found.units[order], scores[order]


def scored(
    found: Candidates, vector: F32, arrays: Mapping[str, Arrays], weights: Weights, alphas: F32
) -> NDArray[np.float64]:
    """By candidate; those that are not ranked have a score that means nothing."""
    heads = int(weights.about["heads"])
    edges = (found.indptr, found.indices)
    factors = alphas[found.places] * found.weights[found.indices]
    h = np.ascontiguousarray(arrays["vectors"]["unit_vectors"][found.units])
    for number in range(1, LAYERS + 1):
        relu = number < LAYERS
        layer = weights.layer(number)
        h = _core.graph_layer(h, edges, factors, found.weights, layer, heads=heads, relu=relu)
    free = free_scores(
        found,
        arrays["citation_graph"]["edge_alpha"][found.places],
        float(weights.about["share"]),
        LAYERS,
    )
    return free + (h @ vector).astype(np.float64)


def prepared(settings: Settings, arrays: Mapping[str, Arrays]) -> tuple[Weights, F32]:
    """The weights that the settings name, checked, and what they say of every edge; made once."""
    path = Path(settings.of(CgRagSettings).lesegr_weights or "").expanduser()
    try:
        about = path.stat()
        key = (str(path), about.st_mtime_ns, about.st_size)
    except OSError:
        key = (str(path), 0, 0)
    with _lock:
        weights = _loaded.get(key)
        if weights is None:
            weights = read(path)
            _keep(_loaded, key, weights)
        check(weights, path, arrays)
        graph = arrays["citation_graph"]["edges_indices"]
        at = (str(weights.about["digest"]), id(graph))
        held = _weighed.get(at)
        if held is None or held[0] is not graph:
            rows = (arrays["citation_graph"]["edges_indptr"], graph)
            made = _core.weigh_edges(rows, arrays["vectors"]["unit_vectors"], weights.network)
            held = (graph, made)
            _keep(_weighed, at, held)
        return weights, held[1]


def _keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    kept[key] = value
    while len(kept) > _KEPT:
        kept.pop(next(iter(kept)))
