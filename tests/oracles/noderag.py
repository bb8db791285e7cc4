"""NodeRAG, plainly: the graph of decompositions, important entities, and the search (Xu and others 2025)."""

from __future__ import annotations

import math
import unicodedata
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Key = tuple[str, ...]
Weights = dict[Key, dict[Key, float]]
LEAST_MENTIONS = 2


class Unit(NamedTuple):
    """One event of a chunk: a line of its decomposition, with relationships of three parts."""

    text: str
    entities: Sequence[str] = ()
    relationships: Sequence[Sequence[str]] = ()


@dataclass
class Node:
    """A node: its kind is one of S, N, R, A, H, O, T (section 3.1)."""

    kind: str
    text: str
    weight: int = 1
    origins: set[int] = field(default_factory=set)
    attributes: list[Key] = field(default_factory=list)
    related: list[Key] = field(default_factory=list)


class Graph:
    """Nodes in the order in which they were first seen, and undirected edges."""

    def __init__(self) -> None:
        self.nodes: dict[Key, Node] = {}
        self.adjacent: Weights = {}

    def put(self, key: Key, kind: str, text: str) -> Node:
        """Add a node of weight 1."""
        self.nodes[key] = Node(kind, text)
        self.adjacent[key] = {}
        return self.nodes[key]

    def edge(self, one: Key, other: Key) -> float:
        """Return the weight of an edge, 0 if there is none."""
        return self.adjacent[one].get(other, 0)

    def join(self, one: Key, other: Key, *, again: float = 1) -> None:
        """Add an edge of weight 1; an existing edge gets heavier by `again`."""
        weight = self.adjacent[one].get(other)
        weight = 1 if weight is None else weight + again
        self.adjacent[one][other] = self.adjacent[other][one] = weight

    @classmethod
    def of_rows(
        cls,
        indptr: Sequence[int],
        indices: Sequence[int],
        weights: Sequence[float] | None,
        kinds: Sequence[str],
    ) -> Graph:
        """Return a graph from compressed rows, each edge both ways. Node k has the key (its kind, "k")."""
        graph = cls()
        keys = [(kinds[k], str(k)) for k in range(len(indptr) - 1)]
        for key in keys:
            graph.put(key, *key)
        for k, key in enumerate(keys):
            for place in range(int(indptr[k]), int(indptr[k + 1])):
                weight = 1.0 if weights is None else float(weights[place])
                graph.adjacent[key][keys[int(indices[place])]] = weight
        return graph


def fold(name: str) -> str:
    """Return a name as it is compared: NFKC, one blank between words, capitals."""
    return " ".join(unicodedata.normalize("NFKC", name).split()).upper()


def build(chunks: Sequence[Sequence[Unit]], *, count_repeats: bool = True) -> Graph:
    """Return the graph of chunks in order, units in order (section 3.3).

    With `count_repeats`, a repeated relation weighs one more and links its unit to both names.
    """
    graph = Graph()
    for chunk, units in enumerate(chunks):
        for unit in units:
            key = ("S", unit.text)
            _see(graph, key, unit.text, chunk)
            listed = []
            for name in map(fold, unit.entities):
                if name:
                    _see(graph, ("N", name), name, chunk)
                    listed.append(("N", name))
            _relationships(graph, unit, listed, chunk, count_repeats)
            for entity in listed:
                graph.join(key, entity)
    return graph


def _see(graph: Graph, key: Key, text: str, chunk: int) -> None:
    """Count a unit or a name."""
    if key in graph.nodes:
        graph.nodes[key].weight += 1
    else:
        graph.put(key, key[0], text)
    graph.nodes[key].origins.add(chunk)


def _relationships(graph: Graph, unit: Unit, listed: list[Key], chunk: int, count_repeats: bool) -> None:
    """Add the relationships of a unit; names that it does not list yet are added to `listed`."""
    for first, relation, last in unit.relationships:
        source, target = fold(first), fold(last)
        ends = [("N", source), ("N", target)]
        key, text = ("R", *sorted((source, target))), f"{first} {relation} {last}"
        if key in graph.nodes:
            graph.nodes[key].text += "\t" + text
            graph.nodes[key].origins.add(chunk)
            if count_repeats:
                graph.nodes[key].weight += 1
                listed.extend(end for end in dict.fromkeys(ends) if end not in listed)
            continue
        for end, name in zip(ends, (source, target), strict=True):
            if end not in graph.nodes:
                _see(graph, end, name, chunk)
                listed.append(end)
        graph.put(key, "R", text).origins.add(chunk)
        for end in ends:
            graph.join(end, key, again=0)


def k_core(graph: Graph, k: int) -> list[Key]:
    """Return what is left when nodes with fewer than k neighbours are removed, again and again."""
    left = {key: set(row) - {key} for key, row in graph.adjacent.items()}
    while few := [key for key, row in left.items() if len(row) < k]:
        for key in few:
            for other in left.pop(key):
                if other in left:
                    left[other].discard(key)
    return [key for key in graph.nodes if key in left]


def betweenness(graph: Graph, pivots: Sequence[Key]) -> dict[Key, float]:
    """Return sums of raw dependencies on some nodes, edges without weights (Brandes 2001)."""
    total = dict.fromkeys(graph.nodes, 0.0)
    for pivot in pivots:
        distance, paths = {pivot: 0}, dict.fromkeys(graph.nodes, 0.0)
        paths[pivot] = 1.0
        order, waiting = [], deque([pivot])
        while waiting:
            key = waiting.popleft()
            order.append(key)
            for other in graph.adjacent[key]:
                if other not in distance:
                    distance[other] = distance[key] + 1
                    waiting.append(other)
                if distance[other] == distance[key] + 1:
                    paths[other] += paths[key]
        dependency = dict.fromkeys(graph.nodes, 0.0)
        for key in reversed(order):
            for other in graph.adjacent[key]:
                if distance[other] == distance[key] + 1:
                    dependency[key] += paths[key] / paths[other] * (1 + dependency[other])
            if key != pivot:
                total[key] += dependency[key]
    return total


def important(graph: Graph, pivots: Sequence[Key], *, nearest: bool) -> list[Key]:
    """Return the important entities of a graph of kinds S, N, R, in order (section 3.4).

    With `nearest`, the degree of the core and the scale of betweenness are rounded to the nearest integer,
    else down.
    """
    rounded: Callable[[float], int] = round if nearest else math.floor
    scores, count = betweenness(graph, pivots), len(graph.nodes)
    scale = rounded(math.log10(count)) if nearest else max(1, rounded(math.log10(count)))
    limit = sum(scores.values()) / count * scale
    ends = sum(len(row) + (key in row) for key, row in graph.adjacent.items())
    core = k_core(graph, rounded(math.log(count) * math.sqrt(ends / count)))
    chosen = {key for key, score in scores.items() if score > limit} | set(core)
    return [
        key
        for key, node in graph.nodes.items()
        if key in chosen and node.kind == "N" and node.weight >= LEAST_MENTIONS
    ]


def effective_weights(graph: Graph) -> Weights:
    """Return the weights of edges, each at most 1 / degree of either end (section 3.10)."""
    degree = {key: len(row) + (key in row) for key, row in graph.adjacent.items()}
    return {
        key: {other: min(weight, 1 / degree[key], 1 / degree[other]) for other, weight in row.items()}
        for key, row in graph.adjacent.items()
    }


def transition(weights: Weights) -> Weights:
    """Return for each node the probability of going to each other; a node without edges keeps its score."""
    chances: Weights = {}
    for key, row in weights.items():
        others = {other: weight for other, weight in row.items() if other != key}
        total = math.fsum(others.values())
        chances[key] = {other: weight / total for other, weight in others.items()} if row else {key: 1.0}
    return chances


def entry_weights(vector_hits: Iterable[Key], exact_hits: Iterable[Key]) -> dict[Key, float]:
    """Return the distribution over entry points; empty without entries."""
    start = list(dict.fromkeys([*vector_hits, *exact_hits]))
    return dict.fromkeys(start, 1 / len(start)) if start else {}


def walk(chances: Weights, start: Mapping[Key, float], *, lazy: bool, steps: int = 2) -> dict[Key, float]:
    """Return the score of every node after some steps; empty without entry points.

    In each step, half of the score stays (`lazy`), or returns to the entry points.
    """
    if not start:
        return {}
    scores = {key: start.get(key, 0.0) for key in chances}
    for _ in range(steps):
        came: dict[Key, list[float]] = {key: [] for key in chances}
        for key, score in scores.items():
            for other, chance in chances[key].items() if score else ():
                came[other].append(chance * score)
        rest = scores if lazy else start
        scores = {key: 0.5 * rest.get(key, 0.0) + 0.5 * math.fsum(came[key]) for key in chances}
    return scores


def named(
    question: str, graph: Graph, *, tokens: Callable[[str], Sequence[str]], stop_words: Collection[str]
) -> list[Key]:
    """Return the names and titles that are a run of the question's tokens, none inside a longer one.

    Ordered by (offset in the question, id). `tokens` keeps stop words, because names have them; a single
    stop word is not a name.
    """
    asked = list(tokens(question))
    of: dict[tuple[str, ...], list[Key]] = {}
    for key, node in graph.nodes.items():
        if node.kind in ("N", "O"):
            of.setdefault(tuple(tokens(node.text)), []).append(key)
    spans = [
        (start, start + size)
        for start in range(len(asked))
        for size in range(1, 7)
        if start + size <= len(asked)
        and tuple(asked[start : start + size]) in of
        and not (size == 1 and asked[start] in stop_words)
    ]
    widest = [
        span
        for span in spans
        if not any(other != span and other[0] <= span[0] and span[1] <= other[1] for other in spans)
    ]
    found = [key for start, end in widest for key in of[tuple(asked[start:end])]]
    return list(dict.fromkeys(found))


class Cross(NamedTuple):
    """Nodes that the walk found in addition to the vector hits, best first."""

    names: list[Key]
    titles: list[Key]
    relations: list[Key]
    others: list[Key]


def ranking(scores: Mapping[Key, float]) -> list[Key]:
    """Return the nodes with a score by (score descending, id ascending)."""
    return sorted((key for key, score in scores.items() if score > 0), key=lambda key: -scores[key])


def cross_nodes(
    graph: Graph,
    order: Iterable[Key],
    vector_hits: Iterable[Key],
    *,
    names: int,
    titles: int,
    relations: int,
    others: int,
) -> Cross:
    """Return the first nodes of each kind that are no vector hits; `others` are S, A, H, T together."""
    hits = set(vector_hits)
    cross = Cross([], [], [], [])
    lists = {"N": (cross.names, names), "O": (cross.titles, titles), "R": (cross.relations, relations)}
    for key in order:
        found, limit = lists.get(graph.nodes[key].kind, (cross.others, others))
        if key not in hits and len(found) < limit:
            found.append(key)
    return cross


def retrieved(graph: Graph, vector_hits: Iterable[Key], cross: Cross) -> list[Key]:
    """Return vector hits, cross units and texts, attributes of names, elements of titles, each once."""
    attributes = [key for name in cross.names for key in graph.nodes[name].attributes]
    elements = [key for title in cross.titles for key in graph.nodes[title].related]
    return list(dict.fromkeys([*vector_hits, *cross.others, *attributes, *elements]))


def fill(graph: Graph, order: Iterable[Key], found: Iterable[Key]) -> list[Key]:
    """Return what fills the rest of a budget: chunks in walk order, not in `found`."""
    taken = set(found)
    return [key for key in order if graph.nodes[key].kind == "T" and key not in taken]
