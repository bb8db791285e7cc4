"""LangChain's standard suites, and what they leave out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.parts import part

part("langchain_core", "checks")
part("langchain_tests", "checks")

from langchain_core.documents import Document  # noqa: E402
from langchain_core.runnables import RunnableLambda  # noqa: E402
from langchain_ketrag import KetragEmbeddings, KetragRetriever  # noqa: E402
from langchain_tests.integration_tests import (  # noqa: E402
    EmbeddingsIntegrationTests,
    RetrieversIntegrationTests,
)

from ketrag_fast import Index  # noqa: E402
from ketrag_fast.errors import IndexMissing, InputError  # noqa: E402

QUESTION = "Who built the Fram?"


class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def where(self, polar_index: Path) -> None:
        self.path = polar_index

    @property
    def retriever_constructor(self) -> type[KetragRetriever]:
        return KetragRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"path": str(self.path)}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


class TestEmbeddings(EmbeddingsIntegrationTests):
    @pytest.fixture(autouse=True)
    def where(self, polar_index: Path) -> None:
        self.path = polar_index

    @property
    def embeddings_class(self) -> type[KetragEmbeddings]:
        return KetragEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return {"path": str(self.path)}


def test_passages_are_those_of_the_library(polar_index: Path) -> None:
    retriever = KetragRetriever(path=str(polar_index), k=4, mode="walk")
    found = retriever.invoke(QUESTION)
    with Index.open(polar_index) as index:
        wanted = index.retrieve(QUESTION, mode="walk", top=12, budget=10_000).passages[:4]
    assert [one.metadata["unit"] for one in found] == [passage.unit for passage in wanted]
    assert found[0].page_content == wanted[0].text
    assert found[0].id == f"{wanted[0].document}:{wanted[0].start}-{wanted[0].end}"
    assert asyncio.run(retriever.ainvoke(QUESTION)) == found
    few = retriever.invoke(QUESTION, budget=80)  # less than one passage: its beginning
    assert [one.metadata["unit"] for one in few] == [found[0].metadata["unit"]]
    assert found[0].page_content.startswith(few[0].page_content)
    assert retriever.invoke(QUESTION, mode="bm25", explain=True, k=1)[0].metadata["why"]
    assert retriever.batch([QUESTION, QUESTION]) == [found, found]
    assert retriever.refresh() is False
    retriever.close()
    assert retriever.invoke(QUESTION) == found


@pytest.mark.parametrize("where", ["year<1910 and lang=en", {"year": {"$lt": 1910}, "lang": "en"}])
def test_a_filter_and_the_metadata_of_documents(dated_index: Path, where: Any) -> None:
    years = {1901, 1902, 1903, 1905, 1906, 1907, 1909}
    retriever = KetragRetriever(path=str(dated_index), k=40, filter=where)
    documents = retriever.invoke("A ship in the polar basin")
    assert {document.metadata["year"] for document in documents} == years
    assert asyncio.run(retriever.ainvoke("A ship in the polar basin")) == documents
    metadata = documents[0].metadata
    assert metadata["document"] == f"d{metadata['year'] - 1900}"
    assert metadata["crew"] == [{"name": f"sailor {metadata['year'] - 1900}"}]
    assert (metadata["page"], metadata["metadata.page"]) == (None, "a page of the document")
    one = retriever.invoke("A ship", filter="year=1920")
    assert [document.metadata["lang"] for document in one] == ["de"]
    everything = retriever.invoke("A ship", filter=None)
    assert len(everything) == 40
    everything[0].metadata["crew"].clear()  # the caller's copy
    assert retriever.invoke("A ship", filter=None)[0].metadata["crew"]


def test_it_is_a_link_of_a_chain(polar_index: Path) -> None:
    def titles(documents: list[Document]) -> list[str]:
        return [document.metadata["title"] for document in documents]

    chain = KetragRetriever(path=str(polar_index), k=2) | RunnableLambda(titles)
    assert "Fram" in chain.invoke(QUESTION)


def test_what_is_wrong_is_said(polar_index: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="allow"):
        KetragRetriever(path=str(polar_index)).invoke(QUESTION, allow={"a": 1})
    with pytest.raises(InputError, match="no_such_field"):
        KetragRetriever(path=str(polar_index)).invoke(QUESTION, filter="no_such_field=1")
    with pytest.raises(ValueError, match="greater than or equal"):
        KetragRetriever(path=str(polar_index), k=-1)
    with pytest.raises(IndexMissing, match="none"):
        KetragRetriever(path=str(tmp_path / "none")).invoke(QUESTION)


def test_vectors_of_documents_and_questions(polar_index: Path) -> None:
    made = KetragEmbeddings(str(polar_index))
    assert made.embed_documents([]) == []
    (row,) = made.embed_documents(["A ship in the ice"])
    assert sum(x * x for x in row) == pytest.approx(1, abs=1e-4)
    assert made.embed_query("A ship in the ice") == pytest.approx(row)
    made.close()
