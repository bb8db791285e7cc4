"""The slow NodeRAG on examples made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.oracles import noderag as oracle
from tests.oracles.noderag import PUBLISHED, Graph, Key, Unit


def no_repair(parts: list[str]) -> None:
    """No reply."""


def key(kind: str, text: str) -> Key:
    return oracle.key_of(kind, text)


def build(*chunks: Sequence[Unit]) -> Graph:
    return oracle.build(chunks, no_repair).graph


def line(*pairs: str) -> Graph:
    """A graph of names, an edge for each pair of letters."""
    graph = Graph()
    for pair in pairs:
        for letter in pair:
            if key("N", letter) not in graph.nodes:
                graph.put(key("N", letter), "N", letter).weight = 2
        graph.join(*(key("N", letter) for letter in pair))
    return graph


def by_letter(values: dict[Key, float]) -> dict[str, float]:
    return {name[1]: value for name, value in values.items()}


# 3.3


def test_names_are_folded_and_counted() -> None:
    graph = build([Unit("u", ["Fram", " fram ", "ＦＲＡＭ", "Tom  Crean"])])
    assert graph.nodes[key("N", "FRAM")].weight == 3
    assert key("N", "TOM CREAN") in graph.nodes
    assert graph.edge(key("S", "u"), key("N", "FRAM")) == 3


def test_a_unit_in_two_chunks_belongs_to_both() -> None:
    graph = build([Unit("u", ["A"])], [Unit("u", ["B"])])
    unit = graph.nodes[key("S", "u")]
    assert (unit.weight, unit.origins) == (2, [0, 1])
    oracle.insert_texts(graph, ["one", "two"])
    assert graph.edge(key("S", "u"), key("T", "one")) == graph.edge(key("S", "u"), key("T", "two")) == 1


def test_a_relation_joins_both_names_whatever_its_direction() -> None:
    graph = build([Unit("u", ["A", "B"], ["A, saw, B", "B, heard, A"])])
    relation = oracle.relation_key("A", "B")
    node = graph.nodes[relation]
    assert (node.text, node.weight) == ("A saw B\tB heard A", 2)
    assert [graph.edge(relation, key("N", name)) for name in "AB"] == [1, 1]


def test_names_that_only_a_relation_has_become_nodes_of_the_unit() -> None:
    graph = build([Unit("u", [], [["A", "saw", "B, C"]])])
    assert graph.edge(key("S", "u"), key("N", "B, C")) == 1
    assert graph.nodes[key("N", "A")].weight == 1


def test_a_relation_to_itself_has_one_edge() -> None:
    graph = build([Unit("u", ["A"], ["A, is, A"])])
    assert graph.edge(key("N", "A"), oracle.relation_key("A", "A")) == 1


@pytest.mark.parametrize("written", ["A", "A, B", "A, , B", " , saw, B", "A, saw, ", "A, saw, B, too", ""])
def test_what_cannot_be_repaired_is_dropped_and_counted(written: str) -> None:
    built = oracle.build([[Unit("u", ["A", "B", " "], [written])]], no_repair)
    assert (built.dropped_relationships, built.dropped_entities) == (1, 1)
    assert not built.graph.part("R").nodes


def test_the_middle_between_two_names_is_joined_before_anyone_is_asked() -> None:
    graph = build([Unit("u", ["A", "b"], ["a, saw, so they say, B"])])
    assert graph.nodes[oracle.relation_key("A", "B")].text == "a saw, so they say B"


def test_a_reply_repairs_the_others() -> None:
    seen = []

    def repair(parts: list[str]) -> list[str | None]:
        seen.append(parts)
        return ["A", None, "B"] if len(parts) == 1 else ["A", "saw", "B"]

    built = oracle.build([[Unit("u", [], ["A saw B", "A, saw B"])]], repair)
    assert seen == [["A saw B"], ["A", "saw B"]]
    assert built.dropped_relationships == 1
    assert built.graph.nodes[oracle.relation_key("A", "B")].text == "A saw B"


# 3.4


def test_k_core_is_peeled() -> None:
    graph = line("ab", "bc", "ca", "ad", "de", "df")  # a triangle with a tail
    assert [name[1] for name in oracle.k_core(graph, 2)] == ["a", "b", "c"]
    assert by_letter(oracle.core_numbers(graph)) == {"a": 2, "b": 2, "c": 2, "d": 1, "e": 1, "f": 1}


def test_betweenness_of_a_path_and_a_square() -> None:
    path = line("ab", "bc", "cd")
    assert by_letter(oracle.betweenness(path, list(path.nodes))) == {"a": 0, "b": 4, "c": 4, "d": 0}
    square = line("ab", "bc", "cd", "da")
    assert by_letter(oracle.betweenness(square, [key("N", "a")])) == {"a": 0, "b": 0.5, "c": 0, "d": 0.5}


def test_important_are_bridges_that_are_mentioned_twice() -> None:
    graph = line(
        "xa", "xb", "xc", "xd", "xe", "xf", "xg", "xh", "xi", "xj", "xk"
    )  # x: k0 is 3, nothing in its core
    assert oracle.default_core(graph) == 3
    assert [name[1] for name in oracle.important(graph, list(graph.nodes))] == ["x"]
    graph.nodes[key("N", "x")].weight = 1
    assert oracle.important(graph, list(graph.nodes)) == []
    assert oracle.important(Graph(), []) == []


def test_scales_are_rounded_down_to_one_at_least() -> None:
    assert [oracle.scale_of(n) for n in (0, 1, 9, 99, 100)] == [1, 1, 1, 1, 2]
    assert [oracle.scale_of(n, PUBLISHED) for n in (1, 3, 4, 99)] == [0, 0, 1, 2]


# 3.5 to 3.9


def described() -> tuple[Graph, oracle.HighLevel]:
    graph = build([Unit("u", ["A"]), Unit("v", ["A"])])
    communities = [[key("S", "u"), key("N", "A")], [key("S", "v")], [key("N", "A")]]
    elements = [[("T", "one")], [("T", "two"), ("U", "one")], [("V", "none")]]
    return graph, oracle.add_high_level(graph, communities, elements)


def test_an_attribute_hangs_on_its_entity_and_cites_its_chunks() -> None:
    graph = build([Unit("u", ["A", "B"], ["A, saw, B"])], [Unit("v", ["A"])], [Unit("w", ["B"])])
    units, relations = oracle.evidence(graph, key("N", "A"))
    assert (units, relations) == ([key("S", "u"), key("S", "v")], [oracle.relation_key("A", "B")])
    assert oracle.by_neighbourhood(graph, units) == [key("S", "u"), key("S", "v")]
    [attribute] = oracle.add_attributes(graph, [(key("N", "A"), "All about A.")])
    assert graph.nodes[attribute].origins == [0, 1]
    assert graph.nodes[key("N", "A")].attributes == [attribute]
    assert graph.edge(attribute, key("N", "A")) == 1


def test_repeated_titles_and_descriptions() -> None:
    graph, high = described()
    assert graph.nodes[key("O", "T")].related == [key("H", "one"), key("H", "two")]
    assert (graph.nodes[key("H", "one")].weight, graph.nodes[key("O", "T")].weight) == (2, 2)
    assert key("O", "V") not in graph.nodes  # a community without units
    assert high.members[key("H", "one")] == [key("S", "u"), key("S", "v")]
    assert oracle.match(graph, high) == 3
    assert graph.edge(key("S", "v"), key("H", "two")) == 1


def test_with_clusters_only_members_of_the_same_one_are_joined() -> None:
    graph, high = described()
    labels = {key("S", "u"): 0, key("S", "v"): 1, key("H", "one"): 1, key("H", "two"): 0}
    assert oracle.match(graph, high, labels, always=True) == 1
    assert graph.edge(key("S", "v"), key("H", "one")) == 1
    assert (oracle.centres(1560), oracle.centres(1561), oracle.centres(0)) == (None, 40, None)


def test_chunks_of_one_text_are_one_node_and_bare_ones_stay() -> None:
    graph = build([Unit("u", [])], [Unit("u", [])], [])
    oracle.insert_texts(graph, ["one", "one", "bare"])
    assert graph.nodes[key("T", "one")].weight == 2
    assert graph.edge(key("S", "u"), key("T", "one")) == 1
    assert graph.nodes[key("T", "bare")].origins == [2]


def test_semantic_edges_add_to_what_is_there() -> None:
    graph = line("ab", "bc")
    a, b, c = (key("N", letter) for letter in "abc")
    oracle.add_semantic_edges(graph, [(a, b), (b, a), (a, a), (a, c)])
    assert (graph.edge(a, b), graph.edge(a, c), graph.edge(a, a)) == (2, 1, 0)


# 3.10, 3.11


def test_every_edge_weighs_one_part_of_its_fuller_end() -> None:
    graph = line("ab", "ac", "ad", "cd")
    graph.join(key("N", "a"), key("N", "b"))
    weights = oracle.effective_weights(graph)
    a, b, c, d = (key("N", letter) for letter in "abcd")
    assert (weights[a][b], weights[b][a], weights[c][d]) == (1 / 3, 1 / 3, 1 / 2)
    chances = oracle.transition(weights)
    assert chances[c] == pytest.approx({a: 0.4, d: 0.6})
    assert oracle.effective_weights(graph, unbalance_adjust=False)[a][b] == 2


def test_two_steps_of_both_walks() -> None:
    graph = line("ab", "bc")
    start = {key("N", "a"): 1.0}
    chances = oracle.transition(oracle.effective_weights(graph))
    ours = by_letter(oracle.walk(chances, start))
    assert ours == {"a": 0.5 + 0.125, "b": 0.25, "c": 0.125}
    published = by_letter(oracle.walk(chances, start, switches=PUBLISHED))
    assert published == {"a": 0.25 + 0.125, "b": 0.5, "c": 0.125}
    assert oracle.walk(chances, {}) == {}


def test_an_entry_counts_once() -> None:
    a, b = key("S", "a"), key("N", "b")
    assert oracle.entry_weights([a, a], [b], accuracy_weight=3) == {a: 0.25, b: 0.75}
    assert oracle.entry_weights([], []) == {}


def names_of(*names: str) -> Graph:
    graph = Graph()
    for name in names:
        graph.put(key("N", name), "N", name)
    return graph


def test_terms_inside_names() -> None:
    graph = names_of("HARRY POTTER", "POTTER'S HOUSE", "HARRY", "南極点", "...")

    def found(*terms: str) -> list[str]:
        return [name[1] for name in oracle.contained(terms, graph)]

    assert found("harry") == ["HARRY POTTER", "HARRY"]
    assert found("Potter", "Harry") == ["HARRY POTTER", "HARRY"]
    assert found("harry  potter") == ["HARRY POTTER"]
    assert found("arry", "", "...") == []
    assert found("南極") == ["南極点"]
    published = oracle.contained(["potter", ""], graph, switches=PUBLISHED)
    assert [name[1] for name in published][:2] == ["HARRY POTTER", "POTTER'S HOUSE"]
    assert len(published) == 4


def test_names_in_a_question() -> None:
    graph = names_of("SOUTH POLE", "SOUTH POLE INN", "THE INN", "A B C D E F", "A B C D E F G")

    def found(question: str) -> list[str]:
        return [name[1] for name in oracle.named(question, graph)]

    assert found("Who opened the South Pole Inn?") == ["SOUTH POLE INN"]
    assert found("From the inn to the south pole") == ["THE INN", "SOUTH POLE"]
    assert found("a b c d e f g") == ["A B C D E F"]
    assert found("") == []


def test_a_single_stop_word_is_not_a_name() -> None:
    graph = names_of("IT", "THE WHO", "HOUSE OF LORDS")

    def found(question: str) -> list[str]:
        return [
            name[1] for name in oracle.named(question, graph, stop_words={"is", "it", "the", "who", "of"})
        ]

    assert found("Is it the who or the House of Lords?") == ["THE WHO", "HOUSE OF LORDS"]
    assert found("it") == []


def test_cross_nodes_and_the_retrieved_list() -> None:
    graph = build([Unit("u", ["A", "B"], ["A, saw, B"]), Unit("v", ["B"]), Unit("w", [])])
    oracle.add_attributes(graph, [(key("N", "A"), "about A")])
    oracle.match(graph, oracle.add_high_level(graph, [[key("S", "u")]], [[("T", "insight")]]))
    oracle.insert_texts(graph, ["the chunk"])
    order = list(graph.nodes)
    cross = oracle.cross_nodes(graph, order, [key("S", "u")], others=2)
    assert [name[1] for name in cross.names] == ["A", "B"]
    assert cross.others == [key("S", "v"), key("S", "w")]
    listed = oracle.retrieved(graph, [key("S", "u")], cross)
    assert [name[1] for name in listed] == ["u", "v", "w", "about A", "insight"]
    text = oracle.sections(graph, [*listed, key("N", "A")], cross.relations)
    assert text.startswith(
        "------------high_level_element-------------\n1. insight\n\n\n------------attribute"
    )
    assert text.index("semantic_unit") < text.index("------------relationship-------------\n1. A saw B\n")
    assert "entity" not in text


def test_scores_of_zero_are_not_ranked() -> None:
    scores = {key("S", "a"): 0.0, key("S", "b"): 0.2, key("S", "c"): 0.2, key("S", "d"): 0.6}
    assert [name[1] for name in oracle.ranking(scores)] == ["d", "b", "c"]


def test_nothing_at_all() -> None:
    graph = build()
    oracle.insert_texts(graph, [])
    assert oracle.transition(oracle.effective_weights(graph)) == {}
    assert oracle.default_core(graph) == 0
    assert oracle.retrieved(graph, [], oracle.cross_nodes(graph, [], [])) == []
    assert oracle.sections(graph, [], []) == ""


def test_compressed_rows_become_a_graph() -> None:
    graph = Graph.of_rows([0, 2, 3, 4], [1, 2, 0, 0], [2.0, 1.0, 2.0, 1.0], "SNN")
    assert graph.edges() == {(0, 1): 2, (0, 2): 1}
    assert [node.kind for node in graph.nodes.values()] == ["S", "N", "N"]


def test_other_numbers_change_only_ties() -> None:
    graph = line("ab", "bc")
    other = graph.reordered(list(reversed(graph.nodes)))
    assert other.ids() == {key("N", "c"): 0, key("N", "b"): 1, key("N", "a"): 2}
    assert other.edges() == {(0, 1): 1, (1, 2): 1}
