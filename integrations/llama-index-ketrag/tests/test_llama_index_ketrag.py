"""Against the real library: retriever, query engine, filters, embedding."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.parts import part

part("llama_index.core", "dev")

from llama_index.core import get_response_synthesizer  # noqa: E402
from llama_index.core.llms import MockLLM  # noqa: E402
from llama_index.core.query_engine import RetrieverQueryEngine  # noqa: E402
from llama_index.core.schema import MetadataMode, NodeRelationship  # noqa: E402
from llama_index.core.vector_stores.types import (  # noqa: E402
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)
from llama_index_ketrag import KetragEmbedding, KetragRetriever  # noqa: E402

from ketrag_fast import Index  # noqa: E402

QUESTION = "Who built the Fram?"


def test_nodes_are_the_passages_of_the_library(polar_index: Path) -> None:
    retriever = KetragRetriever(str(polar_index), similarity_top_k=4, mode="walk")
    found = retriever.retrieve(QUESTION)
    with Index.open(polar_index) as index:
        wanted = index.retrieve(QUESTION, mode="walk", top=4, budget=10_000).passages
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
    found = KetragRetriever(str(polar_index), similarity_top_k=3, filters=wanted).retrieve(QUESTION)
    assert {one.node.metadata["document"] for one in found} <= {"fram.md", "vega.md"}
    assert len(found) == 3
    none = MetadataFilters(filters=[MetadataFilter(key="document", value="no-such")])
    assert KetragRetriever(str(polar_index), filters=none).retrieve(QUESTION) == []


def test_a_query_engine_answers_from_it(polar_index: Path) -> None:
    """Its model repeats the prompt: the passages stand in it."""
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
    with pytest.raises(Exception, match="no index"):
        KetragRetriever(str(tmp_path / "none")).retrieve(QUESTION)
