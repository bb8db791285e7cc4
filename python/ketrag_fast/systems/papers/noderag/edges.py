"""The whole graph that queries walk over: seven types of nodes, and every edge (NodeRAG, section 3).

Nodes are numbered by type: chunks, units, attributes, elements (these have a vector, in this order), then
entities, titles, relations.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.kernels.text import count_tokens, pack, unpack
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.papers.noderag.communities import NONE
from ketrag_fast.systems.papers.noderag.graph import symmetric
from ketrag_fast.systems.shared.rows import Arrays, csr, csr_out, lengths, strings, strings_out, word_rows
from ketrag_fast.systems.shared.stored_rows import languages_of
from ketrag_fast.systems.shared.vectors import chunk_vectors
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

TEXTS = (
    ("noderag_graph", "semantic_unit"),
    ("noderag_attributes", "attribute"),
    ("noderag_elements", "element"),
)
"""Stage and name of the texts after the chunks, in row order."""


def embed_nodes(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the vectors: of chunks from their stage, the others from the model or the fitted space."""
    vectors = inputs["vectors"]
    own = chunk_vectors(inputs.get("chunk_vectors", {}), vectors)
    chunks = (StoredVectors.of(vectors) if own is None else own).decode()
    texts = [text for stage, name in TEXTS for text in unpack(*strings(inputs[stage], name))]
    if context.model is not None:
        context.report.unit = "tokens"
        found = context.model.embed(iter(texts), len(texts), sum(map(len, texts)), context.report)
    else:
        vocabulary, languages = strings(inputs["words"], "vocabulary"), languages_of(inputs["words"])
        rows = word_rows(pack(texts), vocabulary, settings.language, languages, context.threads)
        found = _core.embed_rows(vectors["basis"], *rows, threads=context.threads)
    every = np.ascontiguousarray(np.concatenate([chunks, found]), np.float32)
    codes, scale, residual = _core.quantise_vectors(every, threads=context.threads)
    return {"vectors": every, "node_codes": codes, "node_scale": scale, "node_residual": residual}


NEIGHBOURS: Final = 25
"""The number of nearest nodes by vector that each node is linked to."""
CLUSTER: Final = 39
"""The minimum average cluster size; below it, elements are linked to their whole community."""
Ids = NDArray[np.int64]
Edges = list[tuple[Ids, Ids, Ids]]
"""(one end, the other, count) of edges of one kind."""


class Blocks:
    """The first number of each type of node."""

    def __init__(self, inputs: StageInputs) -> None:
        graph = inputs["noderag_graph"]
        counts = (
            len(inputs["units"]["chunk_document"]),
            len(graph["unit_weight"]),
            len(inputs["noderag_attributes"]["attribute_entity"]),
            len(inputs["noderag_elements"]["element_offsets"]) - 1,
            len(graph["entity_weight"]),
            len(inputs["noderag_elements"]["title_offsets"]) - 1,
            len(graph["relation_weight"]),
        )
        self.ends = [0, *np.cumsum(counts).tolist()]
        self.chunk, self.unit, self.attribute, self.element, self.entity, self.title, self.relation = (
            self.ends[:7]
        )
        self.nodes = self.ends[7]


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the graph with parallel edges added up; `edge_weight` is 1 / larger degree of its ends."""
    at = Blocks(inputs)
    kinds = _text_edges(inputs, at) + _community_edges(inputs, at, settings.seed, context)
    kinds.append(_nearest_edges(inputs["noderag_vectors"]["vectors"], context))
    first, second, counts = (np.concatenate([kind[part] for kind in kinds]) for part in range(3))
    rows, weights = symmetric(first, second, counts, at.nodes)
    degrees = lengths(rows[0])
    effective = 1.0 / np.maximum(np.repeat(degrees, degrees), degrees[rows[1]])
    texts = {f"{name}_tokens": _tokens(inputs[stage], name, settings, context) for stage, name in _PRINTED}
    return {
        **csr_out("edges", rows),
        "edge_count": weights,
        "edge_weight": effective,
        **texts,
        **_names(inputs, at, context),
    }


_PRINTED = (*TEXTS, ("noderag_graph", "node_relation"))


def _text_edges(inputs: StageInputs, at: Blocks) -> Edges:
    """Return the edges from the texts: of units, entities, relations, attributes and titles."""
    graph, attributes = inputs["noderag_graph"], inputs["noderag_attributes"]
    units, entities = len(graph["unit_weight"]), len(graph["entity_weight"])
    # From the graph of units, entities and relations to that of all nodes.
    number = np.concatenate(
        [
            at.unit + np.arange(units),
            at.entity + np.arange(entities),
            at.relation + np.arange(len(graph["relation_weight"])),
        ]
    )
    owner, other = _pairs(graph, "mentions")
    once = owner < other
    unit, chunk = _pairs(graph, "unit_chunks")
    title, element = _pairs(inputs["noderag_elements"], "title_elements")
    named = attributes["attribute_entity"].astype(np.int64)
    return [
        (number[owner[once]], number[other[once]], graph["mention_count"][once].astype(np.int64)),
        _once(at.chunk + chunk, at.unit + unit),
        _once(at.entity + named, at.attribute + np.arange(len(named))),
        _once(at.title + title, at.element + element),
    ]


def _community_edges(inputs: StageInputs, at: Blocks, seed: int, context: StageContext) -> Edges:
    """Return edges from elements to units and attributes of their community, or of their cluster."""
    graph = inputs["noderag_graph"]
    community = inputs["noderag_communities"]["community"].astype(np.int64)
    nodes, units = len(graph["mentions_indptr"]) - 1, len(graph["unit_weight"])
    local = np.concatenate([np.arange(units), nodes + np.arange(len(community) - nodes)])
    number = np.concatenate([at.unit + np.arange(units), at.attribute + np.arange(len(community) - nodes)])
    inside = community[local] != NONE
    members, homes = number[inside], community[local][inside]
    element, home = _pairs(inputs["noderag_elements"], "element_communities")
    count = len(members) + (at.entity - at.element)
    clusters = math.ceil(math.sqrt(count)) if count else 0
    order = np.argsort(homes, kind="stable")
    starts = np.searchsorted(homes[order], home)
    sizes = np.searchsorted(homes[order], home, "right") - starts
    shift = np.repeat(starts - np.concatenate([[0], np.cumsum(sizes)[:-1]]) if len(sizes) else starts, sizes)
    found = members[order][shift + np.arange(len(shift))]
    owners = at.element + np.repeat(element, sizes)
    if clusters and count / clusters > CLUSTER:
        rows = np.concatenate([members, np.arange(at.element, at.entity)])
        vectors = np.ascontiguousarray(inputs["noderag_vectors"]["vectors"][rows])
        labels, _ = _core.kmeans(vectors, clusters, seed=seed, threads=context.threads, report=context.report)
        label = np.full(at.entity, -1, np.int64)
        label[rows] = labels
        same = label[found] == label[owners]
        found, owners = found[same], owners[same]
    return [_once(owners, found)]


def _nearest_edges(vectors: NDArray[np.float32], context: StageContext) -> tuple[Ids, Ids, Ids]:
    """Return the edges between each node and its nearest nodes by vector (NodeRAG, 3.9)."""
    known = np.flatnonzero(vectors.any(axis=1))
    most = min(NEIGHBOURS, max(len(known) - 1, 0))
    if not most:
        return _once(np.zeros(0, np.int64), np.zeros(0, np.int64))
    rows = np.ascontiguousarray(vectors[known])
    found, _ = _core.cosine_knn(rows, most, threads=context.threads, report=context.report)
    owner = np.repeat(np.arange(len(known)), found.shape[1])
    other = found.ravel()
    present = other != NONE
    low = np.minimum(owner[present], other[present])
    high = np.maximum(owner[present], other[present])
    unique = np.unique(low * len(known) + high)
    return _once(known[unique // len(known)], known[unique % len(known)])


def _once(first: Ids, second: Ids) -> tuple[Ids, Ids, Ids]:
    return first.astype(np.int64), second.astype(np.int64), np.ones(len(first), np.int64)


def _pairs(arrays: Arrays, name: str) -> tuple[Ids, Ids]:
    """Return rows as (owner, member)."""
    indptr, indices = csr(arrays, name)
    return np.repeat(np.arange(len(indptr) - 1), lengths(indptr)), indices.astype(np.int64)


def _tokens(arrays: Arrays, name: str, settings: Settings, context: StageContext) -> NDArray[np.uint32]:
    texts = unpack(*strings(arrays, name))
    return count_tokens(texts, settings.encoding, context.threads).astype(np.uint32)


def _names(inputs: StageInputs, at: Blocks, context: StageContext) -> Outputs:
    """Return the names of entities and titles as words, in byte order, each with its nodes."""
    every = [
        *unpack(*strings(inputs["noderag_graph"], "node_entity")),
        *unpack(*strings(inputs["noderag_elements"], "title")),
    ]
    words, _, indptr = _core.tokenise(pack(every), "none", context.threads)
    parts = unpack(*words)
    by_key: dict[bytes, list[int]] = {}
    for number, (first, last) in enumerate(pairwise(indptr.tolist())):
        if first < last:
            by_key.setdefault(" ".join(parts[first:last]).encode(), []).append(at.entity + number)
    keys = sorted(by_key)
    ends = np.cumsum([0, *(len(by_key[key]) for key in keys)], dtype=np.uint64)
    nodes = np.array([node for key in keys for node in by_key[key]], np.uint32)
    return {
        **strings_out("name", pack([key.decode() for key in keys])),
        **csr_out("name_nodes", (ends, nodes)),
    }
