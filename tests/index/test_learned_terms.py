"""Learned term weights in the place of BM25, with a small random encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import BackendError, ModelMismatch
from ketrag_fast.models.embedders.sparse import SparseModel, close_models
from tests import small_model, small_terms

MODES = "bm25,walk,fused"
QUESTIONS = ["w3 w17 w25", "w9", "w3 unknown"]


def documents(numbers: Sequence[int] = range(150)) -> list[Document]:
    found = []
    for number in numbers:
        words = np.random.default_rng(number).integers(0, small_model.WORDS, 6 + number % 9)
        found.append(Document(f"d{number:03}", " ".join(f"w{word}" for word in words) + "."))
    return found


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("terms")
    small_terms.save(folder, max_position_embeddings=60)
    return folder


def settings(encoder: Path, **more: Any) -> Settings:
    return Settings(**{"modes": MODES, "sparse_model": str(encoder), **more})


def built(path: Path, encoder: Path, given: Sequence[Document] | None = None, **more: Any) -> Index:
    return Index.build(given or documents(), path, settings=settings(encoder, **more))


def slow(encoder: Path, question: str, given: Sequence[Document]) -> dict[str, float]:
    """The score of each document: the product of the two rows, that of the document in steps of 1/64."""
    model = SparseModel(str(encoder))
    (ids, weights), *_ = model.queries([question])
    asked = dict(zip(ids.tolist(), weights.tolist(), strict=True))
    ends, terms, own = model.rows([document.text for document in given])
    scores: dict[str, float] = {}
    for row, document in enumerate(given):
        part = slice(int(ends[row]), int(ends[row + 1]))
        rounded = np.minimum(np.rint(own[part].astype(np.float64) * 64), 255) / 64
        found = {t: w for t, w in zip(terms[part].tolist(), rounded.tolist(), strict=True) if w > 0}
        if found.keys() & asked.keys():
            scores[document.id] = sum(
                asked[term] * found[term] for term in sorted(found.keys() & asked.keys())
            )
    return scores


@pytest.mark.parametrize("question", QUESTIONS)
def test_bm25_is_the_product_of_the_rows(tmp_path: Path, encoder: Path, question: str) -> None:
    want = slow(encoder, question, documents())
    with built(tmp_path / "ix", encoder) as index:
        passages = index.retrieve(question, mode="bm25", budget=10_000_000).passages
    assert {p.document: p.score for p in passages} == pytest.approx(want)
    order = sorted(want, key=lambda name: (-round(want[name], 9), name))
    assert [p.document for p in passages] == order


def test_every_mode_uses_them(tmp_path: Path, encoder: Path) -> None:
    with (
        built(tmp_path / "plain", encoder, sparse_model=None) as plain,
        built(tmp_path / "ix", encoder) as index,
    ):
        for mode in ("bm25", "walk", "fused"):
            words = plain.retrieve(QUESTIONS[0], mode=mode)
            terms = index.retrieve(QUESTIONS[0], mode=mode, explain=mode == "walk")
            assert terms.passages and words.text != terms.text
            alone = [index.retrieve(question, mode=mode).text for question in QUESTIONS]
            assert [context.text for context in index.retrieve_many(QUESTIONS, mode=mode)] == alone
        # No keyword of this question is in the index, but the encoder gives it terms.
        assert not plain.retrieve("unknown", mode="walk").passages
        assert index.retrieve("unknown", mode="walk").passages


def test_a_small_change_gives_the_index_of_a_fresh_build(
    tmp_path: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(tmp_path / "ix", encoder).close()
    changed = [*documents(range(40)), Document("d040", "w1 w2 w3."), *documents(range(41, 160))]
    encoded: list[int] = []
    rows = SparseModel.rows

    def counted(self: SparseModel, texts: Sequence[str], **options: Any) -> Any:
        encoded.append(len(texts))
        return rows(self, texts, **options)

    monkeypatch.setattr(SparseModel, "rows", counted)
    with built(tmp_path / "ix", encoder, changed) as index:
        assert encoded == [11]
        digest = index.digest
    with built(tmp_path / "fresh", encoder, changed) as index:
        assert index.digest == digest


def test_a_merged_index_is_that_of_all_documents(tmp_path: Path, encoder: Path) -> None:
    built(tmp_path / "a", encoder, documents(range(70))).close()
    built(tmp_path / "b", encoder, documents(range(70, 150))).close()
    with (
        Index.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "all", settings=settings(encoder)) as merged,
        built(tmp_path / "whole", encoder) as whole,
    ):
        assert (
            merged.retrieve(QUESTIONS[0], mode="bm25").text == whole.retrieve(QUESTIONS[0], mode="bm25").text
        )


def test_the_encoder_of_the_index_is_required(tmp_path: Path, encoder: Path) -> None:
    own = tmp_path / "model"
    small_terms.save(own, max_position_embeddings=60)
    built(tmp_path / "ix", own).close()
    small_terms.save(own, seed=5, max_position_embeddings=60)
    close_models()
    with (
        Index.open(tmp_path / "ix") as index,
        pytest.raises(ModelMismatch, match="not the sparse encoder"),
    ):
        index.retrieve("w1", mode="bm25")
    with Index.open(tmp_path / "ix", settings=Settings(sparse_model=str(encoder))) as index:
        assert index.retrieve("w1", mode="bm25").passages, "the same model elsewhere"
    with pytest.raises(BackendError, match="no such folder"):
        built(tmp_path / "other", tmp_path / "none")
