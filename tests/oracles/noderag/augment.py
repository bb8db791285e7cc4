"""What is added to the graph: attributes, high-level elements, texts, semantic edges (spec 30, 3.5-3.9)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.oracles.noderag.graph import Graph, Key, key_of
from tests.oracles.noderag.switches import OURS, Switches

Elements = Sequence[tuple[str, str]]


def evidence(graph: Graph, key: Key) -> tuple[list[Key], list[Key]]:
    """Units and relations that an attribute of this entity is written from, in the order of ids (3.5)."""
    ids = graph.ids()
    near = sorted(graph.adjacent[key], key=ids.__getitem__)
    units = [other for other in near if graph.nodes[other].kind == "S"]
    return units, [other for other in near if graph.nodes[other].kind == "R"]


def by_neighbourhood(graph: Graph, keys: Iterable[Key]) -> list[Key]:
    """What a prompt keeps first that is too long: by (weight of neighbours, id) (3.5, 3.7 step 3)."""
    ids = graph.ids()

    def weight(key: Key) -> int:
        return sum(graph.nodes[other].weight for other in graph.adjacent[key])

    return sorted(keys, key=lambda key: (-weight(key), ids[key]))


def add_attributes(graph: Graph, texts: Sequence[tuple[Key, str]], switches: Switches = OURS) -> list[Key]:
    """An attribute for each entity that has a text, in order (3.5)."""
    added = []
    for entity, text in texts:
        key = key_of("A", text, switches)
        if key in graph.nodes and switches.typed_keys:
            graph.nodes[key].weight += 1
        else:
            graph.put(key, "A", text)
        for part in evidence(graph, entity):
            for other in part:
                graph.nodes[key].seen_in(graph.nodes[other].origins)
        graph.join(entity, key, again=0)
        graph.nodes[entity].attributes = [key]
        added.append(key)
    return added


def members(graph: Graph, community: Iterable[Key]) -> list[Key]:
    """The units and attributes of a community (3.7 step 2)."""
    return [key for key in community if graph.nodes[key].kind in "SA"]


@dataclass
class HighLevel:
    """High-level elements in the order in which they came, and members of the communities they describe."""

    members: dict[Key, list[Key]] = field(default_factory=dict)
    described: list[Key] = field(default_factory=list)


def add_high_level(
    graph: Graph,
    communities: Sequence[Sequence[Key]],
    elements: Sequence[Elements],
    switches: Switches = OURS,
) -> HighLevel:
    """Elements (title, description) of each community (3.7 steps 2 to 4)."""
    high = HighLevel()
    for community, described in zip(communities, elements, strict=True):
        near = members(graph, community)
        if switches.skip_empty_communities and not near:
            continue
        high.described.extend(near)
        for title, description in described:
            _element(graph, high, near, title, description, switches)
    return high


def _element(
    graph: Graph, high: HighLevel, near: list[Key], title: str, description: str, switches: Switches
) -> None:
    """Step 4 for one element."""
    h, o = key_of("H", description, switches), key_of("O", title, switches)
    repeated = h in graph.nodes
    if repeated:
        graph.nodes[h].weight += 1
        if not switches.share_repeats and o not in graph.nodes:
            return
    else:
        graph.put(h, "H", description)
    if not repeated or switches.share_repeats:
        known = high.members.setdefault(h, [])
        known.extend(key for key in near if key not in known)
        for key in near:
            graph.nodes[h].seen_in(graph.nodes[key].origins)
    if o in graph.nodes and (repeated or (switches.title_lists and graph.nodes[o].kind == "O")):
        graph.nodes[o].weight += 1
        if switches.title_lists and h not in graph.nodes[o].related:
            graph.nodes[o].related.append(h)
    else:
        graph.put(o, "O", title).related = [h]
    graph.nodes[o].seen_in(graph.nodes[h].origins)
    graph.join(h, o, again=0)


def centres(nodes: int, threshold: float = 39) -> int | None:
    """K of step 6, None where every element is joined to its whole community."""
    if nodes == 0:
        return None
    k = math.ceil(math.sqrt(nodes))
    return k if nodes / k > threshold else None


def match(
    graph: Graph,
    high: HighLevel,
    labels: Mapping[Key, int] | None = None,
    *,
    threshold: float = 39,
    always: bool = False,
) -> int:
    """Edges between elements and the members of their communities (3.7 step 6); how many there are.

    `labels`: the cluster of each element and member, read where there are enough of them or `always`.
    """
    clustered = always or centres(len(high.described) + len(high.members), threshold) is not None
    count = 0
    for h, near in high.members.items():
        for key in near:
            if clustered and (labels is None or labels[h] != labels[key]):
                continue
            graph.join(key, h, again=0)
            count += 1
    return count


def insert_texts(graph: Graph, texts: Sequence[str], switches: Switches = OURS) -> None:
    """The chunks, joined to their units (3.8). Chunks of one text are one node."""
    keys = [key_of("T", text, switches) for text in texts]
    if switches.bare_chunks:
        for chunk, key in enumerate(keys):
            if key in graph.nodes and graph.nodes[key].kind == "T":
                graph.nodes[key].weight += 1
            elif key not in graph.nodes:
                graph.put(key, "T", texts[chunk])
            graph.nodes[key].seen_in([chunk])
    for unit, node in list(graph.nodes.items()):
        if node.kind == "S":
            for chunk in node.origins:
                if keys[chunk] not in graph.nodes:
                    graph.put(keys[chunk], "T", texts[chunk])
                graph.nodes[keys[chunk]].seen_in([chunk])
                graph.join(unit, keys[chunk], again=0)


def add_semantic_edges(graph: Graph, edges: Iterable[tuple[Key, Key]], switches: Switches = OURS) -> None:
    """Edges between embedded nodes: one that is there becomes heavier by 1 (3.9 step 2).

    None from a node to itself, which a unit and a chunk of one text are where keys have no kind.
    """
    done = set()
    for one, other in edges:
        if (one == other and switches.typed_keys) or frozenset((one, other)) in done:
            continue
        done.add(frozenset((one, other)))
        for key in (one, other):
            if key not in graph.nodes:  # a chunk without units, in the published code
                graph.put(key, "", key[1])
        graph.join(one, other)
