"""`index.inspect.graph`: pictures of every graph, around names and questions, without hidden documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import ConfigError, InputError, ModeUnavailable
from ketrag_fast.types import GraphView

EVERY = ("skeleton", "concepts", "noderag", "citations", "walk", "keyword", "knn")
HOSTILE = "<script>alert(1)</script>\u202eeman"
TEXTS = {
    "fram": "The Fram was built by Colin Archer. Fridtjof Nansen sailed the Fram across the Polar Basin.",
    "gjoa": "The Gjøa of Roald Amundsen sailed the Northwest Passage. Roald Amundsen also led the Fram.",
    "maud": "The Maud was a ship of Roald Amundsen. Colin Archer did not build the Maud.",
    "secret": "Agent Quibble met Roald Amundsen in Vladivostok. Agent Quibble hid the Fram.",
}


def documents() -> list[Document]:
    return [
        Document(
            f"{name}.md",
            text,
            HOSTILE if name == "maud" else name.title(),
            {
                "group": "closed" if name == "secret" else "open",
                "cites": ["fram.md"] if name != "fram" else [],
            },
        )
        for name, text in TEXTS.items()
    ]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    settings = Settings(threads=1, llm="heuristic", modes="auto,walk,ket,knn,g2cons,cg-rag,noderag")
    with Index.build(documents(), tmp_path_factory.mktemp("drawn") / "index", settings=settings) as built:
        yield built


def titles(view: GraphView) -> str:
    return " ".join(node.title for node in view.nodes).lower()


def test_every_graph_is_drawn(index: Index) -> None:
    assert index.inspect.graphs() == EVERY
    for name in EVERY:
        view = index.inspect.graph(name, limit=100_000)
        left_out = 1 if name == "keyword" else 0  # the keyword "1" is a small number
        assert len(view.nodes) + left_out == view.total_nodes > 0
        assert view.truncated == bool(left_out)
        assert len(view.edges) + left_out == view.total_edges
        assert all(-1 <= value <= 1 for node in view.nodes for value in (node.x, node.y))
        degrees = [0] * len(view.nodes)
        for edge in view.edges:
            assert edge.source != edge.target
            degrees[edge.source] += 1
            degrees[edge.target] += 1
        assert sum(node.weight for node in view.nodes) - sum(degrees) == left_out
        assert sum(view.kinds.values()) == view.total_nodes
        data = json.loads(json.dumps(view.to_json()))
        assert (data["returned"] == data["total"]) == (not left_out)
        assert len({len(column) for key, column in data["nodes"].items() if key != "seed"}) == 1


def test_around_a_name_in_any_case_and_around_a_number(index: Index) -> None:
    view = index.inspect.graph("walk", around="ROALD amundsen", limit=6)
    assert len(view.nodes) == 6
    first = view.nodes[0]
    assert (first.title, first.kind, first.seed) == ("roald amundsen", "name", True)
    assert view.truncated
    assert index.inspect.graph("walk", around=[f"#{first.id}"], limit=6) == view
    entity = index.inspect.graph("skeleton", around="roald amundsen", limit=3).nodes[0]
    assert index.inspect.node(entity.title, entity.inspects).name == "ROALD AMUNDSEN"
    passage = index.inspect.graph("walk", around="Fram", limit=50).nodes
    units = [node.unit for node in passage if node.kind == "passage"]
    assert all(unit is not None and index.inspect.around(unit) for unit in units)


@pytest.mark.parametrize("name", EVERY)
def test_around_a_question(index: Index, name: str) -> None:
    view = index.inspect.graph(name, question="Who built the Fram?", limit=10)
    assert 1 <= len(view.nodes) <= 10
    assert any(node.seed for node in view.nodes)


def test_around_units(index: Index) -> None:
    found = index.retrieve("Who built the Fram?", top=1).passages[0]
    view = index.inspect.graph("walk", units=[found.unit], limit=5)
    assert view.nodes[0].unit == found.unit
    with pytest.raises(InputError, match="unit 99 does not exist"):
        index.inspect.graph("walk", units=[99])
    with pytest.raises(InputError, match="combined"):
        index.inspect.graph("walk", units=[0], filter="group=open")


def test_titles_are_kept_as_they_are_and_long_ones_are_cut(index: Index, tmp_path: Path) -> None:
    assert any(HOSTILE in node.title for node in index.inspect.graph("citations").nodes)
    long = Document("long.md", "A ship of Norway. It sailed north.", "x" * 10_000)
    settings = Settings(threads=1, llm="heuristic", modes="walk,ket")
    with Index.build([long], tmp_path / "index", settings=settings) as built:
        title = built.retrieve("ship").passages[0].title
        assert title == "x" * 299 + "…"
        passage = next(n for n in built.inspect.graph("walk").nodes if n.kind == "passage")
        assert passage.title.startswith(f"{title} [")
        names = [n.title for n in built.inspect.graph("keyword").nodes if n.kind == "keyword"]
        assert "x" * 499 + "…" in names


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("way", ["filter", "allow"])
def test_a_hidden_document_contributes_nothing(index: Index, tmp_path: Path, name: str, way: str) -> None:
    assert "quibble" in titles(index.inspect.graph(name, limit=1000)) or name in ("knn", "citations")
    view = index.inspect.graph(name, limit=1000, **{way: "group=open"})
    assert "quibble" not in titles(view)
    assert "secret" not in titles(view)
    alone = [document for document in documents() if document.metadata["group"] == "open"]
    with Index.build(alone, tmp_path / "index", settings=index.inspect._opened.settings) as other:
        want = other.inspect.graph(name, limit=1000)
        assert (view.nodes, view.edges, view.kinds) == (want.nodes, want.edges, want.kinds)
        assert (view.total_nodes, view.total_edges) == (want.total_nodes, want.total_edges)
    with pytest.raises(InputError):
        index.inspect.graph("walk", around="agent quibble", **{way: "group=open"})


def test_a_filter_that_every_document_passes_hides_nothing_and_such_an_allow_is_refused(index: Index) -> None:
    whole = index.inspect.graph("walk")
    assert index.inspect.graph("walk", filter="{}") == whole
    with pytest.raises(InputError, match="allow"):
        index.inspect.graph("walk", allow="{}")


def test_bad_requests_say_what_is_wrong(index: Index, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown graph 'wlak'") as unknown:
        index.inspect.graph("wlak")
    assert "walk" in str(unknown.value.hint)
    with pytest.raises(InputError, match="no node 'Amundsn'") as name:
        index.inspect.graph("skeleton", around="Amundsn")
    assert "AMUNDSEN" in str(name.value.hint)
    for limit in (0, -1, 200_001):
        with pytest.raises((InputError, ConfigError), match="limit"):
            index.inspect.graph("walk", limit=limit)
    with pytest.raises(InputError, match="#999999"):
        index.inspect.graph("walk", around="#999999")
    with pytest.raises(InputError, match="empty"):
        index.inspect.graph("walk", around="")
    with Index.build(documents(), tmp_path / "index", settings=Settings(threads=1, modes="bm25")) as plain:
        with pytest.raises(ModeUnavailable, match="no graph 'skeleton'") as lacking:
            plain.inspect.graph("skeleton")
        assert lacking.value.hint == "add it with `ketrag index --llm heuristic`"


def test_an_empty_index_and_one_passage(tmp_path: Path) -> None:
    settings = Settings(threads=1)
    with Index.build([], tmp_path / "none", settings=settings) as none:
        view = none.inspect.graph("walk")
        assert (view.nodes, view.edges, view.truncated) == ((), (), False)
    with Index.build([Document("a", "quiet words", "")], tmp_path / "one", settings=settings) as one:
        assert one.inspect.graph("walk").nodes[0].title == "a"


def test_a_shortest_path(index: Index) -> None:
    view = index.inspect.graph("walk", around="colin archer", to="Gjoa", limit=12)
    assert (view.nodes[0].title, view.nodes[view.path[-1]].title) == ("colin archer", "Gjoa")
    drawn = {frozenset((edge.source, edge.target)) for edge in view.edges}
    steps = list(zip(view.path, view.path[1:], strict=False))
    assert len(steps) > 1
    assert all(frozenset(step) in drawn for step in steps)
    assert view.to_json()["path"] == list(view.path)
    back = index.inspect.graph("walk", around="Gjoa", to="colin archer", limit=12)
    assert len(back.path) == len(view.path)


def test_a_path_that_cannot_be_drawn_says_why(index: Index, tmp_path: Path) -> None:
    apart = [Document("a", "Ada Lorne lives.", "Ada"), Document("b", "Bo Quist sings.", "Bo")]
    settings = Settings(threads=1)
    with (
        Index.build(apart, tmp_path / "index", settings=settings) as two,
        pytest.raises(InputError, match="no path"),
    ):
        two.inspect.graph("walk", around="ada lorne", to="bo quist")
    with pytest.raises(InputError, match="at most 2 are drawn"):
        index.inspect.graph("walk", around="colin archer", to="Gjoa", limit=2)
    with pytest.raises(InputError, match="one start"):
        index.inspect.graph("walk", to="Gjoa")
    with pytest.raises(InputError, match="one start"):
        index.inspect.graph("walk", around=["Fram", "Maud"], to="Gjoa")


def test_words_of_the_layout_are_left_out_unless_they_are_asked_for(tmp_path: Path) -> None:
    texts = [
        f"Figure {k} and Table {k} of March on Page {k} show ship{k} of Colin Archer, see Chapter {k}."
        for k in range(1, 9)
    ]
    documents = [Document(f"{k}.md", text, f"Voyage {k}") for k, text in enumerate(texts)]
    with Index.build(documents, tmp_path / "index", settings=Settings(threads=1, llm="heuristic")) as index:
        for name in index.inspect.graphs():
            for limit in (10, 1000):
                view = index.inspect.graph(name, limit=limit)
                titles = {node.title.casefold() for node in view.nodes if node.unit is None}
                assert not titles & {"march", "figure", "table", "page", "chapter", "figure 3", "1", "7"}, (
                    name
                )
                assert 2 <= len(view.nodes) <= limit
        view = index.inspect.graph("walk", around="colin archer", limit=20)
        assert view.nodes[0].title == "colin archer"
        known = index.inspect.graph("keyword", limit=1000) if "keyword" in index.inspect.graphs() else None
        assert known is None or known.total_nodes > len(known.nodes)
