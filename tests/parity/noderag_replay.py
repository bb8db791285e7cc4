"""The slow NodeRAG over recorded replies, stage by stage, beside what the published code made of them."""

from __future__ import annotations

import copy
import functools
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.oracles import noderag as oracle
from tests.oracles.noderag import Graph, Key, Switches, Unit

GOLDEN = Path(__file__).parents[1] / "golden" / "noderag.json.gz"


@functools.cache
def golden() -> Any:
    """The recorded run."""
    return json.loads(gzip.decompress(GOLDEN.read_bytes()))


def label(graph: Graph, key: Key) -> list[Any]:
    """The name of a node in the golden file, without its type."""
    return [*key[1:]] if key[0] == "R" else [key[1]]


def wanted_label(row: list[Any]) -> list[Any]:
    """The same of the golden file."""
    return [golden()["chunks"][row[1]]] if row[0] == "T" else row[1:]


def nodes(graph: Graph) -> list[Any]:
    """Names, types and weights in order."""
    return [
        [label(graph, key), node.kind, node.weight if node.kind else None]
        for key, node in graph.nodes.items()
    ]


def wanted_nodes(stage: str) -> list[Any]:
    """The same of the golden file."""
    rows = zip(golden()["labels"], golden()[stage]["nodes"], strict=False)
    return [[wanted_label(row), kind, weight] for row, (kind, weight) in rows]


def edges(graph: Graph) -> list[Any]:
    """Edges with their weights in order."""
    return sorted([one, other, weight] for (one, other), weight in graph.edges().items())


def units(output: list[Any]) -> list[Unit]:
    """One chunk's decomposition."""
    return [Unit(row["semantic_unit"], row["entities"], row["relationships"]) for row in output]


def repair(parts: list[str]) -> list[str]:
    """The recorded reply to a malformed relationship."""
    [reply, *_] = [reply for written, reply in golden()["reconstructions"] if written == parts]
    return list(reply)


def built(switches: Switches) -> Graph:
    """Stage 3.3."""
    return oracle.build([units(output) for output in golden()["decompositions"]], repair, switches).graph


def close(one: Any, other: Any, tolerance: float = 1e-12) -> bool:
    """Equal numbers, all of them."""
    return len(one) == len(other) and list(one) == pytest.approx(list(other), rel=0, abs=tolerance)


def stages(switches: Switches) -> Iterator[tuple[str, bool]]:
    """What is compared, and whether it is equal."""
    g, graph = golden(), built(switches)
    yield "graph: nodes", nodes(graph) == wanted_nodes("graph")
    yield "graph: edges", edges(graph) == g["graph"]["edges"]
    relations = {str(k): node.text for k, node in enumerate(graph.nodes.values()) if node.kind == "R"}
    yield "graph: texts of relations", relations == g["graph"]["contexts"]
    yield "end", True
    yield from _importance(graph, g, switches)
    yield "end", True
    keys = list(graph.nodes)
    yield from _attributes(graph, keys, g, switches)
    yield "end", True
    yield from _high_level(graph, keys, g, switches)
    yield "end", True
    oracle.insert_texts(graph, g["chunks"], switches)
    yield "texts: nodes", nodes(graph) == wanted_nodes("texts")
    yield "texts: edges", edges(graph) == g["texts"]["edges"]
    yield "end", True
    keys[:] = [oracle.key_of(row[0], wanted_label(row)[0], switches) if row[0] != "R" else ("R", *row[1:])
               for row in g["labels"]]  # fmt: skip
    oracle.add_semantic_edges(graph, [(keys[u], keys[v]) for u, v in g["semantic_edges"]], switches)
    yield "semantic: nodes", nodes(graph) == wanted_nodes("merged") == wanted_nodes("adjusted")
    yield "semantic: edges", edges(graph) == g["merged"]["edges"]
    weights = oracle.effective_weights(graph)
    ids = graph.ids()
    adjusted = {(ids[u], ids[v]): w for u, row in weights.items() for v, w in row.items() if ids[u] <= ids[v]}
    yield (
        "weights",
        close(
            [adjusted[u, v] for u, v, _ in g["adjusted"]["edges"]], [w for *_, w in g["adjusted"]["edges"]]
        ),
    )
    yield "end", True
    for row in g["searches"]:
        yield from _search(graph, keys, row, g["settings"][row["settings"]], switches)


def _importance(graph: Graph, g: Any, switches: Switches) -> Iterator[tuple[str, bool]]:
    wanted, keys = g["importance"], list(graph.nodes)
    ids, pivots = graph.ids(), [keys[k] for k in wanted["pivots"]]
    yield "k0", oracle.default_core(graph, switches) == wanted["k0"]
    for k, core in wanted["cores"].items():
        yield f"core {k}", [ids[key] for key in oracle.k_core(graph, int(k))] == core["nodes"]
    scores = list(oracle.betweenness(graph, pivots).values())
    parts = [score / sum(scores) for score in scores]
    yield "betweenness", close(parts, [score / sum(wanted["betweenness"]) for score in wanted["betweenness"]])
    chosen = oracle.important(graph, pivots, switches=switches)
    yield "important", [ids[key] for key in chosen] == wanted["important"]


def _attributes(graph: Graph, keys: list[Key], g: Any, switches: Switches) -> Iterator[tuple[str, bool]]:
    for row in g["attributes"]:
        near = [[graph.nodes[key].text for key in part] for part in oracle.evidence(graph, keys[row["node"]])]
        yield "evidence", [sorted(part) for part in near] == [sorted(row["units"]), sorted(row["relations"])]
    keys += oracle.add_attributes(
        graph, [(keys[row["node"]], row["text"]) for row in g["attributes"]], switches
    )


def _high_level(graph: Graph, keys: list[Key], g: Any, switches: Switches) -> Iterator[tuple[str, bool]]:
    wanted = g["communities"]
    communities = [[keys[k] for k in row] for row in wanted["members"]]
    used = [[keys[k] for k in row] for row in wanted["used"]]
    yield "members", [oracle.members(graph, community) for community in communities] == used
    high = oracle.add_high_level(graph, communities, wanted["elements"], switches)
    keys += list(graph.nodes)[len(keys) :]
    clustered = copy.deepcopy(graph)
    size = len(high.described) + len(high.members)
    yield (
        "number of clusters",
        oracle.centres(size, 2) == g["clustered"]["centres"] and oracle.centres(size) is None,
    )
    oracle.match(graph, high)
    yield "high: nodes", nodes(graph) == wanted_nodes("high")
    yield "high: edges", edges(graph) == g["high"]["edges"]
    ids = graph.ids()
    related = {str(ids[k]): [ids[h] for h in node.related] for k, node in graph.nodes.items() if node.related}
    yield "high: of titles", related == {o: [h] for o, h in g["high"]["related"].items()}
    if len(keys) == len(g["high"]["nodes"]):
        labels = dict(zip((keys[k] for k in g["clustered"]["order"]), g["clustered"]["labels"], strict=True))
        oracle.match(clustered, high, labels, threshold=2)
        yield "clustered: edges", edges(clustered) == g["clustered"]["edges"]


def _search(
    graph: Graph, keys: list[Key], row: Any, chosen: Any, switches: Switches
) -> Iterator[tuple[str, bool]]:
    ids = graph.ids()
    hits = [keys[k] for k in row["vector"]]
    exact = oracle.contained(row["terms"], graph, switches=switches)
    yield (
        "exact",
        sorted(ids[key] for key in exact) == sorted({*row["exact"]}),
    )  # there in the order of its tables
    chances = _chances(graph, chosen["unbalance_adjust"], switches)
    start = oracle.entry_weights(
        hits, (keys[k] for k in row["exact"]), accuracy_weight=chosen["accuracy_weight"]
    )
    scores = oracle.walk(chances, start, steps=chosen["ppr_max_iter"], switches=switches)
    values = list(scores.values())
    yield "scores", close([values[k] for k, _ in row["top"]], [score for _, score in row["top"]])
    if "scores" in row:
        yield "scores", close(values, row["scores"])
    best = [values[ids[key]] for key in oracle.ranking(scores, switches)]
    yield "order", close(best, [values[k] for k in row["order"]])  # equal scores may change places
    cross = oracle.cross_nodes(
        graph, [keys[k] for k in row["order"]], hits, names=chosen["Enode"], titles=chosen["Hnode"],
        relations=chosen["Rnode"], others=chosen["cross_node"],
    )  # fmt: skip
    found = [[ids[key] for key in part] for part in (cross.names, cross.titles, cross.relations)]
    yield "cross nodes", found == [row["names"], row["titles"], row["relations"]]
    listed = oracle.retrieved(graph, hits, cross)
    yield "retrieved", [ids[key] for key in listed] == list(dict.fromkeys(row["retrieved"]))
    if "sections" in row:
        yield "sections", _same_sections(oracle.sections(graph, listed, cross.relations), row["sections"])


_KEPT: dict[tuple[int, bool, Switches], Any] = {}


def _chances(graph: Graph, adjust: bool, switches: Switches) -> Any:
    key = id(graph), adjust, switches
    if key not in _KEPT:
        _KEPT.clear()
        _KEPT[key] = oracle.transition(oracle.effective_weights(graph, unbalance_adjust=adjust), switches)
    return _KEPT[key]


def _same_sections(text: str, wanted: dict[str, str]) -> bool:
    """Equal but for the order of sections, and of relations, which in the published code is that of a set."""
    found = {}
    for part in text.split("\n\n------------"):
        title, _, body = part.removeprefix("------------").partition("-------------\n")
        found[title] = body.removesuffix("\n\n").removesuffix("\n") + "\n"
    plain = [{**part, "relationship": ""} for part in (found, wanted)]
    relations = [
        sorted(line.split(". ", 1)[1] for line in part.get("relationship", "").splitlines())
        for part in (found, wanted)
    ]
    return plain[0] == plain[1] and relations[0] == relations[1]


def first_differences(switches: Switches) -> set[str]:
    """What differs in the first stage in which something does."""
    differing: set[str] = set()
    for name, equal in stages(switches):
        if name == "end" and differing:
            break
        if not equal:
            differing.add(name)
    return differing
