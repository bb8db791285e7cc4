"""From decompositions to a graph of units, names and relations (spec 30, section 3.3)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.oracles.noderag.switches import OURS, Switches

Key = tuple[str, ...]
Repair = Callable[[list[str]], Sequence[str | None] | None]


class Unit(NamedTuple):
    """One event of a chunk: a line of its decomposition. A relationship is "A, rel, B" or its three parts."""

    text: str
    entities: Sequence[str] = ()
    relationships: Sequence[str | Sequence[str]] = ()


@dataclass
class Node:
    """A node: its kind is one of S, N, R, A, H, O, T (3.1)."""

    kind: str
    text: str
    weight: int = 1
    origins: list[int] = field(default_factory=list)
    attributes: list[Key] = field(default_factory=list)
    related: list[Key] = field(default_factory=list)

    def seen_in(self, chunks: Iterable[int]) -> None:
        """Adds chunks of origin."""
        self.origins = sorted({*self.origins, *chunks})


class Graph:
    """Nodes in the order of their ids, which is that in which they were first seen, and undirected edges."""

    def __init__(self) -> None:
        self.nodes: dict[Key, Node] = {}
        self.adjacent: dict[Key, dict[Key, float]] = {}

    def put(self, key: Key, kind: str, text: str) -> Node:
        """A node of weight 1. A known one becomes this one and keeps edges and attributes."""
        old = self.nodes.get(key)
        self.nodes[key] = Node(kind, text)
        self.adjacent.setdefault(key, {})
        if old is not None:
            self.nodes[key].attributes = old.attributes
            self.nodes[key].origins = old.origins
        return self.nodes[key]

    def edge(self, one: Key, other: Key) -> float:
        """The weight of an edge, 0 where there is none."""
        return self.adjacent[one].get(other, 0)

    def join(self, one: Key, other: Key, *, again: float = 1) -> None:
        """An edge of weight 1; one that is there becomes heavier by `again`."""
        weight = self.adjacent[one].get(other)
        weight = 1 if weight is None else weight + again
        self.adjacent[one][other] = self.adjacent[other][one] = weight

    def ids(self) -> dict[Key, int]:
        """The number of each node."""
        return {key: number for number, key in enumerate(self.nodes)}

    def edges(self) -> dict[tuple[int, int], float]:
        """Each edge once, by the numbers of its ends, the smaller first."""
        ids = self.ids()
        return {
            (ids[one], ids[other]): weight
            for one, row in self.adjacent.items()
            for other, weight in row.items()
            if ids[one] <= ids[other]
        }

    def part(self, kinds: str) -> Graph:
        """The nodes of some kinds and the edges among them."""
        part = Graph()
        for key, node in self.nodes.items():
            if node.kind in kinds:
                part.nodes[key] = node
                part.adjacent[key] = {}
        for key in part.nodes:
            row = self.adjacent[key].items()
            part.adjacent[key] = {other: weight for other, weight in row if other in part.nodes}
        return part

    @classmethod
    def of_rows(
        cls,
        indptr: Sequence[int],
        indices: Sequence[int],
        weights: Sequence[float] | None = None,
        kinds: Sequence[str] | None = None,
    ) -> Graph:
        """A graph from compressed rows, each edge both ways. Node k has the key (its kind or "", "k")."""
        graph = cls()
        keys = [(kinds[k] if kinds else "", str(k)) for k in range(len(indptr) - 1)]
        for key in keys:
            graph.put(key, key[0] or "N", key[1])
        for k, key in enumerate(keys):
            for place in range(int(indptr[k]), int(indptr[k + 1])):
                weight = 1.0 if weights is None else float(weights[place])
                graph.adjacent[key][keys[int(indices[place])]] = weight
        return graph

    def reordered(self, order: Sequence[Key]) -> Graph:
        """The same graph with other numbers; `order` holds every key."""
        other = Graph()
        other.nodes = {key: self.nodes[key] for key in order}
        other.adjacent = {key: self.adjacent[key] for key in order}
        return other


def fold(name: str) -> str:
    """A name as it is compared: NFKC, one blank between words, capitals (3.3 step 2)."""
    return " ".join(unicodedata.normalize("NFKC", name).split()).upper()


def key_of(kind: str, text: str, switches: Switches = OURS) -> Key:
    """The key of a node that is no relation."""
    return (kind if switches.typed_keys else "", text)


def relation_key(source: str, target: str) -> Key:
    """The key of a relation: the unordered pair of its names."""
    return ("R", *sorted((source, target)))


@dataclass
class Built:
    """The graph, and how many entities and relationships were dropped."""

    graph: Graph
    dropped_entities: int = 0
    dropped_relationships: int = 0


def build(chunks: Sequence[Sequence[Unit]], repair: Repair, switches: Switches = OURS) -> Built:
    """Chunks in order, units in order (3.3). `repair` is given the parts of a malformed relationship."""
    built = Built(Graph())
    for chunk, units in enumerate(chunks):
        for unit in units:
            key = _unit(built.graph, unit.text, chunk, switches)
            listed = _entities(built, unit.entities, chunk, switches)
            _relationships(built, unit, listed, chunk, repair, switches)
            for name in listed:
                built.graph.join(key, name)
    return built


def _unit(graph: Graph, text: str, chunk: int, switches: Switches) -> Key:
    """Step 1."""
    key = key_of("S", text, switches)
    if key in graph.nodes:
        graph.nodes[key].weight += 1
        if switches.every_origin:
            graph.nodes[key].seen_in([chunk])
    else:
        graph.put(key, "S", text).seen_in([chunk])
    return key


def _entities(built: Built, names: Sequence[str], chunk: int, switches: Switches) -> list[Key]:
    """Step 2: the keys of the names in order, with repetitions."""
    listed = []
    for name in names:
        text = fold(name) if switches.fold_names else name
        if switches.drop_empty and not text:
            built.dropped_entities += 1
            continue
        key = key_of("N", text, switches)
        if key in built.graph.nodes:
            built.graph.nodes[key].weight += 1
        else:
            built.graph.put(key, "N", text)
        built.graph.nodes[key].seen_in([chunk])
        listed.append(key)
    return listed


def parts_of(
    relationship: str | Sequence[str], listed: Sequence[Key], repair: Repair, switches: Switches
) -> list[str] | None:
    """Step 3: source, relation and target; None where no three parts can be made of it."""
    written = relationship.split(",") if isinstance(relationship, str) else relationship
    parts: Sequence[str | None] | None = [part.strip() for part in written]
    if len(written) != 3:
        trimmed = [part.strip() for part in written]
        ends = [
            key_of("N", fold(end) if switches.fold_names else end, switches)
            for end in (*trimmed[:1], *trimmed[-1:])
        ]
        if switches.join_middle and len(trimmed) >= 4 and all(end in listed for end in ends):
            parts = [trimmed[0], ", ".join(trimmed[1:-1]), trimmed[-1]]
        else:
            parts = repair(trimmed)
    if parts is None or len(parts) != 3:
        return None
    whole = ["" if part is None else part for part in parts]
    if switches.drop_empty:
        whole = [part.strip() for part in whole]
        if not all(fold(part) for part in whole):
            return None
    return whole


def _relationships(
    built: Built, unit: Unit, listed: list[Key], chunk: int, repair: Repair, switches: Switches
) -> None:
    """Step 3: names that the unit does not list yet are added to `listed`."""
    graph = built.graph
    named = list(listed)
    for relationship in unit.relationships:
        parts = parts_of(relationship, named, repair, switches)
        if parts is None:
            built.dropped_relationships += 1
            continue
        source, target = (fold(end) if switches.fold_names else end for end in (parts[0], parts[2]))
        ends = [key_of("N", source, switches), key_of("N", target, switches)]
        key, text = relation_key(source, target), " ".join(parts)
        if key in graph.nodes:
            graph.nodes[key].text += "\t" + (text if switches.plain_repeats else " ".join(text))
            graph.nodes[key].seen_in([chunk])
            if switches.count_repeats:
                graph.nodes[key].weight += 1
                listed.extend(end for end in dict.fromkeys(ends) if end not in listed)
            continue
        for end, name in zip(ends, (source, target), strict=True):
            if end not in graph.nodes:
                graph.put(end, "N", name).seen_in([chunk])
                listed.append(end)
        graph.put(key, "R", text).seen_in([chunk])
        for end in ends:
            graph.join(end, key, again=0 if switches.single_self_edge else 1)
