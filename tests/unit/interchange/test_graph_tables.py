"""The tables of each graph hold what `ketrag graph` shows of its nodes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Index
from ketrag_fast.interchange.graph_part import drawing_tables
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.drawing import GraphTables
from ketrag_fast.systems.spec.stage import resolve

GRAPHS = ("skeleton", "concepts", "noderag", "citations", "walk", "keyword", "knn")


def tables_of(index: Index, name: str) -> GraphTables:
    source = registry().graphs[name]
    if source.tables is None:
        return drawing_tables(resolve(source.read)(index.inspect.arrays()))
    found: GraphTables = resolve(source.tables)(index.inspect.arrays())
    return found


def column(table: Any, name: str, count: int) -> list[Any]:
    return list(table[name].read(np.arange(count)))


def named_edges(tables: GraphTables, *columns: str) -> list[tuple[Any, ...]]:
    names = column(tables.nodes, "name", len(tables))
    more = [column(tables.edges, name, len(tables.source)) for name in columns]
    ends = zip(tables.source.tolist(), tables.target.tolist(), *more, strict=True)
    return [(names[a], names[b], *rest) for a, b, *rest in ends]


def test_the_graphs_are_listed_with_the_default_first(index: Index) -> None:
    assert index.inspect.graphs() == GRAPHS


@pytest.mark.parametrize("name", GRAPHS)
def test_rows_are_the_same_in_any_order(index: Index, name: str) -> None:
    tables = tables_of(index, name)
    assert len(tables) > 3
    for table, count in ((tables.nodes, len(tables)), (tables.edges, len(tables.source))):
        rows = np.random.default_rng(1).permutation(count)[: count // 2]
        for one in table.values():
            every = list(one.read(np.arange(count)))
            assert len(every) == count
            assert list(one.read(rows)) == [every[row] for row in rows]
    assert len(tables.relation) == len(tables.source) == len(tables.target)
    assert tables.kind.max() < len(tables.kinds)


def test_the_skeleton_has_each_entity_and_relation(index: Index) -> None:
    tables = tables_of(index, "skeleton")
    edges = named_edges(tables, "description", "weight")
    rows = zip(*(column(tables.nodes, one, len(tables)) for one in tables.nodes), strict=True)
    for name, kind, description, units in rows:
        entity = index.inspect.entity(name)
        assert (entity.type, entity.description) == (kind, description)
        own = sorted(edge for edge in edges if name in edge[:2])
        assert own == sorted((r.source, r.target, r.description, r.weight) for r in entity.relations)
        assert {span.document for span in entity.sources} <= {_document(index, unit) for unit in units}


def test_concepts_have_each_neighbour_once(index: Index) -> None:
    tables = tables_of(index, "concepts")
    edges = named_edges(tables, "weight", "shared_chunks", "cosine")
    assert edges
    found: Counter[Any] = Counter()
    for name in column(tables.nodes, "name", len(tables)):
        for near in index.inspect.node(name, "concept").neighbours:  # type: ignore[attr-defined]
            found[tuple(sorted((name, near.name))), near.weight, near.shared, near.cosine] += 1
    assert Counter((tuple(sorted(e[:2])), *e[2:]) for e in edges) == Counter(dict.fromkeys(found, 1))
    assert set(found.values()) == {2}


def test_noderag_has_each_edge_once(index: Index) -> None:
    tables, stages = tables_of(index, "noderag"), index.inspect.arrays()
    arrays = stages["noderag_edges"]
    indptr, indices = arrays["edges_indptr"].tolist(), arrays["edges_indices"].tolist()
    wanted = {
        (row, other): int(arrays["edge_count"][at])
        for row in range(len(indptr) - 1)
        for at, other in enumerate(indices[indptr[row] : indptr[row + 1]], indptr[row])
        if row < other
    }
    ends = zip(tables.source.tolist(), tables.target.tolist(), strict=True)
    assert dict(zip(ends, column(tables.edges, "weight", len(tables.source)), strict=True)) == wanted
    names = column(tables.nodes, "name", len(tables))
    entity = index.inspect.node("Fridtjof Nansen", "node")
    place = names.index(entity.name)  # type: ignore[attr-defined]
    assert tables.kinds[tables.kind[place]] == "entity"
    assert column(tables.nodes, "weight", len(tables))[place] == entity.weight  # type: ignore[attr-defined]
    labels = tables.communities
    assert labels is not None
    assert int(labels[place]) in (entity.community, 2**32 - 1)  # type: ignore[attr-defined]


def test_citations_are_those_of_the_documents(index: Index) -> None:
    tables = tables_of(index, "citations")
    assert tables.directed
    assert named_edges(tables, "origin") == [
        ("fram", "maud", "metadata"),
        ("endurance", "fram", "metadata"),
    ]
    units = column(tables.nodes, "units", len(tables))
    assert sorted(unit for own in units for unit in own) == list(
        range(len(index.inspect.arrays()["units"]["unit_tokens"]))
    )


def test_links_lead_from_units_to_names_and_subjects(index: Index) -> None:
    tables, stages = tables_of(index, "walk"), index.inspect.arrays()
    count = len(stages["units"]["unit_tokens"])
    assert (tables.source < count).all()
    assert (tables.target >= count).all()
    texts = column(tables.nodes, "description", len(tables))
    relation = [tables.relations[number] for number in tables.relation.tolist()]
    names = column(tables.nodes, "name", len(tables))
    checked = 0
    for a, b, kind in zip(tables.source.tolist(), tables.target.tolist(), relation, strict=True):
        if kind == "names":
            checked += 1
            text = f"{index.inspect.around(a, 0, 0)[0][1].title} {texts[a]}"
            assert names[b].split()[0].casefold() in text.casefold()
        assert tables.kinds[tables.kind[b]] == ("name" if kind == "names" else "subject")
    assert checked > 4


def _document(index: Index, unit: int) -> str:
    return index.inspect.around(unit, 0, 0)[0][1].document
