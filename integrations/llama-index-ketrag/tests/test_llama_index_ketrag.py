"""Against the real library: retriever, query engine, filters, embedding."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from tests.support.parts import part

part("llama_index.core", "checks")

from llama_index.core import get_response_synthesizer  # noqa: E402
from llama_index.core.llms import MockLLM  # noqa: E402
from llama_index.core.query_engine import RetrieverQueryEngine  # noqa: E402
from llama_index.core.schema import MetadataMode, NodeRelationship  # noqa: E402
from llama_index.core.vector_stores.types import (  # noqa: E402
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn  # noqa: E402
from llama_index_ketrag import KetragEmbedding, KetragRetriever  # noqa: E402

from ketrag_fast import Document, Index, Settings  # noqa: E402
from ketrag_fast.errors import IndexMissing, InputError  # noqa: E402

QUESTION = "Who built the Fram?"


def test_nodes_are_the_passages_of_the_library(polar_index: Path) -> None:
    retriever = KetragRetriever(str(polar_index), similarity_top_k=4, mode="walk")
    found = retriever.retrieve(QUESTION)
    with Index.open(polar_index) as index:
        wanted = index.retrieve(QUESTION, mode="walk", top=12, budget=10_000).passages[:4]
    assert [one.node.metadata["unit"] for one in found] == [passage.unit for passage in wanted]
    first, passage = found[0], wanted[0]
    assert (first.score, first.node.get_content()) == (passage.score, passage.text)
    assert (first.node.start_char_idx, first.node.end_char_idx) == (passage.start, passage.end)
    assert first.node.relationships[NodeRelationship.SOURCE].node_id == passage.document
    read = first.node.get_content(MetadataMode.LLM)
    assert passage.title in read
    assert "generation" not in read
    again = asyncio.run(retriever.aretrieve(QUESTION))
    assert [one.node.node_id for one in again] == [one.node.node_id for one in found]
    assert len(KetragRetriever(str(polar_index), budget=80).retrieve(QUESTION)) == 1
    assert retriever.refresh() is False
    retriever.close()


def test_filters_hold_for_what_is_found(polar_index: Path) -> None:
    wanted = MetadataFilters(
        filters=[MetadataFilter(key="document", operator=FilterOperator.IN, value=["fram.md", "vega.md"])]
    )
    found = KetragRetriever(str(polar_index), similarity_top_k=9, filters=wanted).retrieve(QUESTION)
    # Neighbouring passages are one node.
    assert {one.node.metadata["document"] for one in found} == {"fram.md", "vega.md"}
    none = MetadataFilters(filters=[MetadataFilter(key="document", value="no-such")])
    assert KetragRetriever(str(polar_index), filters=none).retrieve(QUESTION) == []


@pytest.mark.parametrize("where", ["year<1910 and lang=en", {"year": {"$lt": 1910}, "lang": "en"}])
def test_a_filter_and_the_metadata_of_documents(dated_index: Path, where: Any) -> None:
    retriever = KetragRetriever(str(dated_index), similarity_top_k=40, filter=where, explain=True)
    results = retriever.retrieve("A ship in the polar basin")
    years = {1901, 1902, 1903, 1905, 1906, 1907, 1909}
    assert {result.node.metadata["year"] for result in results} == years
    node = results[0].node
    assert node.metadata["document"] == f"d{node.metadata['year'] - 1900}"
    assert node.metadata["crew"] == [{"name": f"sailor {node.metadata['year'] - 1900}"}]
    assert (node.metadata["page"], node.metadata["metadata.page"]) == (None, "a page of the document")
    assert node.metadata["why"]
    assert "sailor" not in node.get_content(MetadataMode.LLM)
    with pytest.raises(InputError, match="no_such_field"):
        KetragRetriever(str(dated_index), filter="no_such_field=1").retrieve("A ship")


def test_filters_of_llama_index_on_the_metadata_of_documents(dated_index: Path) -> None:
    """Every combination returns the nodes that LlamaIndex's own rules select from all of them."""
    everything = KetragRetriever(str(dated_index), similarity_top_k=40).retrieve("A ship")
    assert len(everything) == 40
    by_name = {one.node.node_id: one.node.metadata for one in everything}
    single = [
        MetadataFilter(key="year", operator=FilterOperator.GTE, value=1930),
        MetadataFilter(key="year", operator=FilterOperator.LT, value=1903),
        MetadataFilter(key="year", operator=FilterOperator.NE, value=1931),
        MetadataFilter(key="lang", value="de"),
        MetadataFilter(key="lang", operator=FilterOperator.NIN, value=["de"]),
        MetadataFilter(key="year", operator=FilterOperator.IN, value=[1904, 1905, 1906]),
        MetadataFilter(key="title", operator=FilterOperator.TEXT_MATCH, value="3"),
        MetadataFilter(key="document", operator=FilterOperator.IN, value=["d1", "d4", "d35"]),
    ]
    for condition in (FilterCondition.AND, FilterCondition.OR, FilterCondition.NOT):
        for pair in itertools.combinations(single, 2):
            filters = MetadataFilters(filters=list(pair), condition=condition)
            passes = build_metadata_filter_fn(by_name.__getitem__, filters)
            retriever = KetragRetriever(str(dated_index), similarity_top_k=40, filters=filters)
            results = {one.node.node_id for one in retriever.retrieve("A ship")}
            assert results == {name for name in by_name if passes(name)}, (condition, pair)


def test_a_match_far_down_the_ranking_is_found(tmp_path: Path) -> None:
    """The index applies the filter before it ranks: nodes below 1,000 others are found."""
    documents = [Document(f"d{n}", "A ship ship ship.", metadata={"kind": "near"}) for n in range(1100)]
    documents.append(Document("far", "A ship among very many other words.", metadata={"kind": "far"}))
    Index.build(documents, tmp_path / "index", settings=Settings(threads=1)).close()
    filters = MetadataFilters(filters=[MetadataFilter(key="kind", value="far")])
    retriever = KetragRetriever(str(tmp_path / "index"), mode="bm25", filters=filters)
    assert [one.node.metadata["document"] for one in retriever.retrieve("ship")] == ["far"]


def test_a_query_engine_answers_from_it(polar_index: Path) -> None:
    """Its model repeats the prompt, which contains the passages."""
    engine = RetrieverQueryEngine(
        KetragRetriever(str(polar_index), similarity_top_k=2), get_response_synthesizer(llm=MockLLM())
    )
    reply = engine.query(QUESTION)
    assert "Fram" in str(reply)
    assert len(reply.source_nodes) == 2


def test_the_embedding(polar_index: Path) -> None:
    made = KetragEmbedding(str(polar_index))
    row = made.get_text_embedding("A ship in the ice")
    assert sum(x * x for x in row) == pytest.approx(1, abs=1e-4)
    assert made.get_query_embedding("A ship in the ice") == pytest.approx(row)
    rows = made.get_text_embedding_batch([f"A ship {n}" for n in range(25)])
    assert len(rows) == 25
    assert asyncio.run(made.aget_query_embedding("A ship in the ice")) == pytest.approx(row)
    made.close()


def test_what_is_wrong_is_said(polar_index: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="0 or more"):
        KetragRetriever(str(polar_index), similarity_top_k=-1)
    with pytest.raises(IndexMissing, match="none"):
        KetragRetriever(str(tmp_path / "none")).retrieve(QUESTION)
