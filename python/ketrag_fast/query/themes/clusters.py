"""Themes as clusters of passages: a hierarchy of two or three levels over the units of an index.

Copies count once. Each unit has a vector, from a model or from latent semantic analysis of its keywords, and
is linked to its nearest neighbours. The levels are Louvain communities of this graph at rising resolutions.
Each level is a consensus of several partitions (Lancichinetti and Fortunato 2012). A smaller theme belongs
to the wider theme that has most of its units. In a large index a sample is clustered, the units with the
smallest hashes of their texts, and every other unit joins the nearest theme.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.errors import Cancelled
from ketrag_fast.records import dataclass
from ketrag_fast.systems.shared.rows import F32, U32, U64, Arrays, csr, select_rows
from ketrag_fast.types.themes import Themes

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Report = Callable[[int, int], bool | None] | None

NO_THEME: Final = -1
SAMPLE: Final = 20_000
"""Maximum number of units that are compared with each other; finding neighbours takes quadratic time."""
_NEIGHBOURS: Final = (4, 24)
"""Bounds on the number of nearest neighbours of a unit.

Between them, it is half the root of the unit count.
"""
_DIMENSIONS: Final = 128
_ROUNDS: Final = 3
_WIDEST: Final = 0.5
"""Resolution of the first level. Merging small themes instead gave levels that changed more when one percent
of the documents changed (adjusted Rand index 0.6, not 0.7) and that mixed more packages of documentation."""
_STEP: Final = 6.0
"""Ratio of the resolutions of two levels."""
_FINEST: Final = (0.16, 0.45)
"""Resolution of the last level is 0.16 * units**0.45, at least 1; with 20,000 units a theme has about 100."""
_DIVISIONS: Final = 5
"""Number of partitions from which edges are weighted (docs/concepts/themes.md#stability)."""
_LEAST: Final = 4
"""Minimum number of distinct units of a theme; units of smaller themes join the nearest theme."""
_MOST: Final = 512
"""Maximum number of themes on the last level."""
_NEAR_BITS: Final = 3
"""Maximum number of bits by which the sketches of copies differ (rust/core/src/search/copies.rs)."""
_COMPARED: Final = 4


@dataclass(frozen=True, slots=True)
class Clustering:
    """The smallest themes, and the wider themes that contain them.

    Attributes:
        leaf: the smallest theme of each unit, `NO_THEME` for units without keywords.
        nearness: the cosine similarity of each unit to the centre of its smallest theme.
        copy_of: for each unit, the first unit that equals or nearly equals it.
        levels: for each level, widest first, the theme that contains each smallest theme, numbered by size.
    """

    leaf: I64
    nearness: F64
    copy_of: I64
    levels: tuple[I64, ...]


@dataclass(frozen=True, slots=True)
class FoundThemes:
    """Themes with their units.

    Attributes:
        themes: the themes.
        units: the distinct units of each theme by theme id, central units first.
        visible: all units that were clustered, in order.
    """

    themes: Themes
    units: Mapping[str, U32]
    visible: U32


@dataclass(frozen=True, slots=True)
class Keywords:
    """The keywords of units as sparse rows: offsets, ids and counts.

    `digits` are the keywords with a digit.
    """

    indptr: U64
    indices: U32
    repeats: U32
    count: int
    digits: I64

    def taken(self, units: I64) -> Keywords:
        """Return the rows of some units."""
        indptr, indices = select_rows((self.indptr, self.indices), units)
        repeats = select_rows((self.indptr, self.repeats), units)[1]
        return Keywords(indptr, indices, repeats, self.count, self.digits)


def keywords_of(links: Arrays) -> Keywords:
    """Return the keywords of all units of an index."""
    blob, ends = np.asarray(links["keywords_blob"]), np.asarray(links["keywords_offsets"]).astype(np.int64)
    digits = np.flatnonzero((blob >= ord("0")) & (blob <= ord("9")))
    having = np.unique(np.searchsorted(ends, digits, side="right") - 1)
    indptr, indices = csr(links, "unit_keywords")
    return Keywords(
        np.asarray(indptr), np.asarray(indices), np.asarray(links["unit_keywords_tf"]), len(ends) - 1, having
    )


def cluster(
    keys: U64,
    keywords: Keywords,
    vectors: F32 | None,
    *,
    seed: int,
    threads: int = 0,
    report: Report = None,
) -> Clustering:
    """Return the themes of some units.

    Args:
        keys: two hashes of each unit, u64[units, 2].
        keywords: their keywords.
        vectors: their vectors from a model, or None.
        seed: random seed of the space that is fitted if there is no model.
        threads: number of threads, 0 for all cores; does not affect the result.
        report: called with (done, total); returning False stops the work.
    """
    count = len(keys)
    if report is not None and report(0, count) is False:
        raise Cancelled("stopped during themes")
    copy_of = find_copies(keys, keywords)
    distinct = np.flatnonzero(copy_of == np.arange(count))
    chosen = _sampled(keys, distinct)
    every: F32 = _fit(keywords, chosen, seed, threads, report) if vectors is None else vectors
    usable = _nonzero(every)
    chosen = chosen[usable[chosen]]
    if not len(chosen):
        return Clustering(np.full(count, NO_THEME, np.int64), np.zeros(count), copy_of, ())
    own: F32 = np.ascontiguousarray(every[chosen], np.float32)
    levels = _communities(own, _hashes(keys[chosen]), threads, report)
    labels, centres = _without_small(own, levels[-1], threads)
    leaf, nearness = np.full(count, NO_THEME, np.int64), np.zeros(count)
    others = np.setdiff1d(distinct[usable[distinct]], chosen)
    if len(others):
        leaf[others], nearness[others] = _nearest(every[others], centres, threads)
    leaf[chosen] = labels
    nearness[chosen] = (own.astype(np.float64) * centres[labels]).sum(axis=1)
    return Clustering(leaf[copy_of], nearness[copy_of], copy_of, _nest(labels, levels[:-1]))


def find_copies(keys: U64, keywords: Keywords) -> I64:
    """Return for each unit the first unit that is linked to it by a chain of nearly equal units.

    Passages are nearly equal if they have the same set of keywords, ignoring keywords with digits, or if
    both are long and their sketches differ in few bits.
    """
    same = _by_keywords(keywords)
    sketches = keys[:, 1]
    long = np.flatnonzero(sketches)  # short passages have no sketch
    pairs = [(np.arange(len(same)), same)]
    for turn in (0, 16, 32, 48):
        turned = (sketches[long] << np.uint64(turn)) | (sketches[long] >> np.uint64((64 - turn) % 64))
        order = long[np.argsort(turned, kind="stable")]
        for step in range(1, min(_COMPARED, len(long) - 1) + 1):
            a, b = order[:-step], order[step:]
            near = _bits(sketches[a] ^ sketches[b]) <= _NEAR_BITS
            pairs.append((a[near], b[near]))
    return _components(len(same), *(np.concatenate(side) for side in zip(*pairs, strict=True)))


def _by_keywords(keywords: Keywords) -> I64:
    """Return for each unit the first unit with the same keywords, ignoring keywords with digits."""
    weight = _mixed(np.arange(1, keywords.count + 1, dtype=np.uint64))
    weight[keywords.digits] = 0
    sums = np.zeros(len(keywords.indices) + 1, np.uint64)
    np.cumsum(weight[keywords.indices], out=sums[1:])
    ends = keywords.indptr.astype(np.int64)
    own = sums[ends[1:]] - sums[ends[:-1]]
    _, first, inverse = np.unique(own, return_index=True, return_inverse=True)
    found: I64 = first[inverse.ravel()]
    nothing = np.flatnonzero(own == 0)
    found[nothing] = nothing
    return found


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a hash of each value (splitmix64)."""
    mixed = values * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _bits(values: NDArray[np.uint64]) -> I64:
    """Return the number of set bits of each value."""
    ones = np.array([value.bit_count() for value in range(256)], np.int64)
    found: I64 = ones[values.view(np.uint8).reshape(-1, 8)].sum(axis=1)
    return found


def _components(count: int, a: I64, b: I64) -> I64:
    """Return for each of `count` nodes the smallest node of its component; edges link `a` to `b`."""
    first = np.arange(count)
    while True:
        before = first.copy()
        low = np.minimum(first[a], first[b])
        np.minimum.at(first, a, low)
        np.minimum.at(first, b, low)
        first = first[first]
        if np.array_equal(first, before):
            return first


def _sampled(keys: U64, distinct: I64) -> I64:
    """Return the units to compare, in order: those whose texts have the smallest hashes."""
    if len(distinct) <= SAMPLE:
        return distinct
    return np.sort(distinct[np.argsort(_hashes(keys[distinct]), kind="stable")[:SAMPLE]])


def _hashes(keys: U64) -> U64:
    """Return one hash for each pair of hashes."""
    return _mixed(keys[:, 0] ^ _mixed(keys[:, 1]))


def _fit(keywords: Keywords, chosen: I64, seed: int, threads: int, report: Report) -> F32:
    """Return the vectors of all units, projected to the space that is fitted on the chosen units."""
    fitted = keywords.taken(chosen) if len(chosen) < len(keywords.indptr) - 1 else keywords
    basis = _core.fit_embedder(
        fitted.indptr,
        fitted.indices,
        fitted.repeats,
        keywords.count,
        dims=_DIMENSIONS,
        idf_power=1,
        rounds=_ROUNDS,
        sample=SAMPLE,
        seed=seed,
        threads=threads,
        report=report,
    )
    return _core.embed_rows(
        basis, keywords.indptr, keywords.indices, keywords.repeats, threads=threads, report=report
    )


def _nonzero(vectors: F32) -> NDArray[np.bool_]:
    """Return whether each row has a value other than zero."""
    out = np.zeros(len(vectors), np.bool_)
    for start in range(0, len(vectors), SAMPLE):
        out[start : start + SAMPLE] = (vectors[start : start + SAMPLE] != 0).any(axis=1)
    return out


def _communities(vectors: F32, hashes: U64, threads: int, report: Report) -> list[I64]:
    """Return the community of each vector in the graph of nearest neighbours, for each level.

    The communities of a graph depend on the order of its nodes, and adding or removing a few documents
    changes many of them. So the graph of each level is partitioned several times, in orders by the hashes of
    the texts. The weight of an edge is the share of partitions that have both ends together; then the
    weighted graph is partitioned again.
    """
    count = len(vectors)
    if count < 2 * _LEAST:
        return [np.zeros(count, np.int64)]
    neighbours = min(max(round(count**0.5 / 2), _NEIGHBOURS[0]), _NEIGHBOURS[1])
    near, cosines = _core.cosine_knn(vectors, neighbours, threads=threads, report=report)
    sources = np.repeat(np.arange(count, dtype=np.uint32), near.shape[1])
    weights = np.maximum(cosines.ravel(), 0.0) ** 2
    linked = weights > 0
    edges = sources[linked], near.ravel()[linked], weights[linked]
    orders = [
        np.argsort(_mixed(hashes + np.uint64(number)), kind="stable") for number in range(_DIVISIONS + 1)
    ]
    levels = []
    for resolution in _resolutions(count):
        together = np.zeros(len(edges[2]))
        for order in orders[1:]:
            own = _divided(*edges, order, resolution, report)
            together += own[edges[0]] == own[edges[1]]
        levels.append(_divided(*edges[:2], edges[2] * together / _DIVISIONS, orders[0], resolution, report))
    return levels


def _divided(sources: U32, targets: U32, weights: F64, order: I64, resolution: float, report: Report) -> I64:
    """Return the community of each node of a graph; nodes are visited in the given order."""
    rank = np.empty(len(order), np.uint32)
    rank[order] = np.arange(len(order), dtype=np.uint32)
    linked = weights > 0
    graph = _core.weighted_graph(
        len(order), rank[sources[linked]], rank[targets[linked]], weights[linked], report=report
    )
    found = _core.graph_communities(*graph, resolution=resolution, report=report)
    return found[rank].astype(np.int64)


def _resolutions(count: int) -> list[float]:
    """Return the resolutions of the levels for a number of units."""
    finest = max(1.0, _FINEST[0] * count ** _FINEST[1])
    levels = [_WIDEST]
    while levels[-1] * _STEP * 2 < finest:
        levels.append(levels[-1] * _STEP)
    return [*levels, finest]


def _without_small(vectors: F32, labels: I64, threads: int) -> tuple[I64, F64]:
    """Return labels and centres after the units of very small themes have joined the nearest other theme."""
    sizes = np.bincount(labels)  # communities are numbered by size
    kept = max(int((sizes[:_MOST] >= _LEAST).sum()), 1)
    labels = labels.copy()
    small = np.flatnonzero(labels >= kept)
    if len(small):
        labels[small] = _nearest(vectors[small], _centres(vectors, labels, kept), threads)[0]
    return labels, _centres(vectors, labels, kept)


def _centres(vectors: F32, labels: I64, count: int) -> F64:
    """Return the normalised mean of the vectors of each of the first `count` labels."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(count))
    last = int(np.searchsorted(labels[order], count))
    sums = np.add.reduceat(vectors[order[:last]].astype(np.float64), starts)
    norms = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
    centres: F64 = sums / np.where(norms > 0, norms, 1.0)
    return centres


def _nearest(vectors: F32, centres: F64, threads: int) -> tuple[I64, F64]:
    """Return the nearest centre of each vector, and the cosine similarity."""
    rows = np.ascontiguousarray(vectors, np.float32)
    found, cosines = _core.vector_top_k(centres.astype(np.float32), rows, 1, threads=threads)
    return found.ravel().astype(np.int64), cosines.ravel()


def _nest(labels: I64, wider: list[I64]) -> tuple[I64, ...]:
    """Return for each level the theme of each smallest theme: the theme that most of its units are in."""
    count = int(labels.max()) + 1
    levels = [np.arange(count)]
    below = labels
    for above in reversed(wider):
        most = _majority(below, above)
        totals = np.bincount(most, weights=np.bincount(below))
        rank = np.zeros(len(totals), np.int64)
        rank[np.argsort(-totals, kind="stable")] = np.arange(len(totals))
        own = rank[most][levels[0]]
        if int(own.max()) + 1 < int(levels[0].max()) + 1:
            levels.insert(0, own)
        below = own[labels]
    return tuple(levels)


def _majority(below: I64, above: I64) -> I64:
    """Return for each label in `below` the most frequent label in `above` among its members."""
    count = int(above.max()) + 1
    cells, times = np.unique(below * count + above, return_counts=True)
    order = np.lexsort((cells, -times))
    owners = cells[order] // count
    _, first = np.unique(owners, return_index=True)
    found: I64 = cells[order][first] % count
    return found
