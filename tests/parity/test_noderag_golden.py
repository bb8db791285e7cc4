"""The slow NodeRAG equals the published code on recorded replies; a switch changes what it names."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from tests.oracles import noderag as oracle
from tests.oracles.noderag import OURS, PUBLISHED, Graph, Switches
from tests.parity.noderag_replay import close, first_differences, golden, stages

GRAPH = {"graph: nodes", "graph: edges"}
# What differs first where one switch is ours and all others are the published code's.
CHANGES: dict[str, set[str]] = {
    "typed_keys": GRAPH | {"graph: texts of relations"},
    "fold_names": GRAPH | {"graph: texts of relations"},
    "drop_empty": GRAPH | {"graph: texts of relations"},
    "every_origin": {"texts: nodes", "texts: edges"},
    "join_middle": {"graph: texts of relations"},
    "count_repeats": GRAPH,
    "plain_repeats": {"graph: texts of relations"},
    "single_self_edge": {"graph: edges"},
    "floor": {"important"},
    "skip_empty_communities": {"high: nodes", "high: edges", "high: of titles"},
    "title_lists": {"high: nodes", "high: of titles"},
    "share_repeats": {"high: nodes", "high: edges", "high: of titles"},
    "bare_chunks": {"texts: nodes"},
    "drop_empty_terms": {"exact"},
    "token_phrases": {"exact"},
    "teleport": {"scores", "order"},
}
# Those that thirty chunks do not show: the small graphs of the golden file do.
SMALL = {"core", "isolated_stay", "fixed_steps", "positive_only"}


def test_the_published_side_equals_the_published_code() -> None:
    differing = [name for name, equal in stages(PUBLISHED) if not equal]
    assert differing == []


def test_our_side_differs() -> None:
    assert first_differences(OURS) >= GRAPH


def test_every_switch_is_tested() -> None:
    assert {*CHANGES, *SMALL} == {f.name for f in fields(Switches)}


@pytest.mark.parametrize("switch", CHANGES)
def test_a_switch_changes_what_it_names(switch: str) -> None:
    assert first_differences(replace(PUBLISHED, **{switch: True})) == CHANGES[switch]  # type: ignore[arg-type]


def small() -> Graph:
    graph = Graph()
    kinds = {"semantic_unit": "S", "entity": "N", "relationship": "R"}
    for k, kind in enumerate(golden()["small"]["kinds"]):
        graph.put(("", str(k)), kinds[kind], str(k))
    for u, v, weight in golden()["small"]["edges"]:
        for one, other in ((u, v), (v, u)):
            graph.adjacent["", str(one)]["", str(other)] = weight
    return graph


def walked(switches: Switches, row: dict[str, list[int]]) -> tuple[list[float], list[int], list[int]]:
    graph = small()
    hits = [("", str(k)) for k in row["start"]]
    chances = oracle.transition(oracle.effective_weights(graph, unbalance_adjust=False), switches)
    scores = oracle.walk(chances, oracle.entry_weights(hits, []), steps=row["steps"], switches=switches)  # type: ignore[arg-type]
    cross = oracle.cross_nodes(graph, oracle.ranking(scores, switches), hits)
    listed = [int(key[1]) for key in oracle.retrieved(graph, hits, cross)]
    return list(scores.values()), listed, sorted(int(key[1]) for key in cross.relations)


@pytest.mark.parametrize("number", range(3))
def test_walks_on_a_small_graph(number: int) -> None:
    row = golden()["small"]["walks"][number]
    scores, listed, relations = walked(PUBLISHED, row)
    assert close(scores, row["scores"])
    assert (listed, relations) == (row["retrieved"], row["relations"])


def test_a_walk_stays_on_a_node_without_edges() -> None:
    row = golden()["small"]["walks"][1]
    scores, *_ = walked(replace(PUBLISHED, isolated_stay=True), row)
    assert scores[4] == 1.0
    assert row["scores"][4] < 0.5


def test_exactly_as_many_steps_as_there_are_to_be() -> None:
    row = golden()["small"]["walks"][2]
    scores, *_ = walked(replace(PUBLISHED, fixed_steps=True), row)
    assert not close(scores, row["scores"])
    assert close(scores, row["scores"], 1e-4)


def test_nodes_that_the_walk_does_not_reach_are_not_found() -> None:
    row = golden()["small"]["walks"][0]
    scores, listed, _ = walked(replace(PUBLISHED, positive_only=True), row)
    assert close(scores, row["scores"])
    assert {4, 5} <= set(row["retrieved"])
    assert listed == [0]


def test_the_core_that_the_published_code_fails_on() -> None:
    graph = Graph()
    for k in range(16):
        graph.put(("", str(k)), "S" if k < 8 else "N", str(k)).weight = 2
    for unit in range(8):
        for name in range(8, 16):
            graph.join(("", str(unit)), ("", str(name)))
    wanted = golden()["dense"]
    k0 = oracle.default_core(graph, PUBLISHED)
    assert k0 == wanted["k0"] == oracle.default_core(graph, OURS) + 1
    core = oracle.k_core(graph, k0)
    assert [int(key[1]) for key in core] == wanted["core"]
    assert wanted["key_error"]  # in place of entities of this core
    assert oracle.important(graph, list(graph.nodes), switches=PUBLISHED) == []
    chosen = oracle.important(graph, list(graph.nodes), switches=replace(PUBLISHED, core="kcore"))
    assert chosen == [key for key in core if graph.nodes[key].kind == "N"]
