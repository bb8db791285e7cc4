"""CG-RAG over the weights of a real sparse encoder: tiny, random, made here and loaded without a network."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import BackendError, ModelMismatch, ModeUnavailable
from ketrag_fast.models.embedders.sparse import SparseModel, close_models
from ketrag_fast.systems.papers.cg_rag.candidates import ADJACENT, CITED, REFERENCE
from tests.oracles import cg_rag
from tests.support.parts import part

TEXTS = {
    "1": "the fram ship built in the ice",
    "2": "colin archer drew boats in larvik",
    "3": "larvik is a town by the sea",
    "4": "the whale eats krill in the sea",
}
CITES = {"1": ["2"], "2": ["3"], "3": ["1"], "4": []}
WORDS = sorted({word for text in TEXTS.values() for word in text.split()})


def save(folder: Path, seed: int) -> Path:
    """A BERT with one layer and its masked-word head, pooled as SPLADE pools it."""
    torch, transformers = part("torch", "embed"), part("transformers", "embed")
    library = part("sentence_transformers", "embed")
    modules: Any = part("sentence_transformers.sparse_encoder.modules", "embed")
    raw = folder / "raw"
    raw.mkdir(parents=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (raw / "vocab.txt").write_text("\n".join(vocabulary))
    transformers.BertTokenizerFast(str(raw / "vocab.txt")).save_pretrained(raw)
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    transformers.BertForMaskedLM(config).save_pretrained(raw)
    first = modules.Transformer(str(raw), transformer_task="fill-mask")
    model = library.SparseEncoder(modules=[first, modules.SpladePooling("max")], device="cpu")
    model.save_pretrained(str(folder / "model"))
    return folder / "model"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("sparse"), 1)


def documents() -> list[Document]:
    return [Document(name, text, "", {"cites": CITES[name]}) for name, text in TEXTS.items()]


def built(path: Path, encoder: Path, **more: Any) -> Index:
    spec = str(encoder)
    given = {"system": "cg-rag", "modes": "text,cg-rag-sparse", "sparse_model": spec, **more}
    return Index.build(documents(), path, settings=Settings(**given))


def test_the_ranking_is_that_of_the_slow_form(tmp_path: Path, encoder: Path) -> None:
    library = part("sentence_transformers", "embed")
    question = "which ship did colin archer built"
    with built(tmp_path / "ix", encoder) as index:
        arrays = index.inspect.arrays()
        model = library.SparseEncoder(str(encoder), device="cpu", local_files_only=True)
        every = model.encode_document(list(TEXTS.values())).to_dense().numpy()
        asked = model.encode_query([question]).to_dense().numpy()[0]
        special = slice(0, 5)
        every[:, special] = asked[special] = 0
        terms = arrays["terms"]
        dense = np.zeros_like(every)
        term = np.repeat(np.arange(every.shape[1]), np.diff(terms["term_units_indptr"].astype(int)))
        dense[terms["term_units_indices"], term] = terms["term_impacts"] / 64
        assert np.allclose(dense, every, atol=1 / 64)
        every = dense
        ids, weights = SparseModel(str(encoder)).queries([question])[0]
        assert np.allclose(weights, asked[ids], atol=1 / 64)
        asked[ids] = weights
        graph = arrays["citation_graph"]
        cuts = graph["edges_indptr"][1:-1].astype(np.int64)
        parts = [np.split(graph[name], cuts) for name in ("edges_indices", "edge_kind", "edge_alpha")]
        near = {p.unit: p.score for p in index.retrieve(question, mode="text").passages}
        slow = cg_rag.messages(
            *([row.tolist() for row in rows] for rows in parts),
            cg_rag.weights((every @ asked).tolist(), 0.1),
            [near[unit] for unit in range(4)],
            layers=2,
            wanted=CITED | ADJACENT | REFERENCE,
            share=0.75,
        )
        found = {p.unit: p.score for p in index.retrieve(question, mode="cg-rag-sparse").passages}
        assert found == pytest.approx(dict(enumerate(slow)), abs=1e-5)
        relevance = graph["edge_relevance"][(graph["edge_kind"] & CITED) != 0]
        unit = every / np.linalg.norm(every, axis=1, keepdims=True)
        vectors = arrays["vectors"]["unit_vectors"]
        both = unit @ unit.T + vectors @ vectors.T
        assert relevance == pytest.approx([both[0, 1], both[1, 2], both[2, 0]], abs=1e-5)


def test_another_model_gives_another_index_and_is_refused_by_this_one(tmp_path: Path, encoder: Path) -> None:
    with built(tmp_path / "ix", encoder) as index:
        before = index.digest
    with built(tmp_path / "ix", encoder) as index:
        assert index.report is not None
        assert {stage.name: stage.how for stage in index.report.stages}["terms"] == "reused"
    moved = tmp_path / "moved"
    shutil.copytree(encoder, moved)
    with built(tmp_path / "ix", moved) as index:
        assert index.digest == before
    other = save(tmp_path / "other", 2)
    shutil.rmtree(moved)
    shutil.copytree(other, moved)
    with (
        Index.open(tmp_path / "ix") as index,
        pytest.raises(ModelMismatch, match="not the sparse encoder"),
    ):
        close_models()
        index.retrieve("ship", mode="cg-rag-sparse")
    with built(tmp_path / "ix", moved) as index:
        assert index.digest != before
        assert index.retrieve("ship", mode="cg-rag-sparse").passages


def test_without_an_encoder_the_mode_says_so(tmp_path: Path) -> None:
    modes = {"system": "cg-rag", "modes": "auto,cg-rag-sparse"}
    with (
        Index.build(documents(), tmp_path / "ix", settings=Settings(**modes)) as index,
        pytest.raises(ModeUnavailable, match="sparse encoder"),
    ):
        index.retrieve("ship", mode="cg-rag-sparse")
    assert main(["retrieve", "-i", str(tmp_path / "ix"), "--mode", "cg-rag-sparse", "ship"]) == 4


def test_what_is_no_sparse_encoder(tmp_path: Path, encoder: Path) -> None:
    with pytest.raises(BackendError, match="not on this machine"):
        built(tmp_path / "a", encoder, sparse_model="splade")
    with pytest.raises(BackendError, match="no such folder"):
        built(tmp_path / "b", tmp_path / "none")
    broken = tmp_path / "broken"
    shutil.copytree(encoder, broken)
    (broken / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(BackendError):
        built(tmp_path / "c", broken)
