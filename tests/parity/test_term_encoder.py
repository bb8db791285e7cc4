"""The sparse encoder against its oracle on small random models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests import small_model, small_terms
from tests.oracles.term_weights import term_weights

from ketrag_fast.errors import BackendError, Cancelled, DeadlineExceeded
from ketrag_fast.kernels.encoder import kernels
from ketrag_fast.models.embedders.sparse import Rows, SparseModel, fingerprint

IN_BYTES = [name for name in kernels() if name != "avx512-bf16"]
IN_FLOATS = [name for name in kernels() if name not in ("avx512-bf16", "amx", "avx-vnni", "avx512-vnni")]
SPECIAL = range(len(small_model.SPECIAL))
WORDS = small_model.WORDS + len(SPECIAL)
TEXTS = ["w1", "w7 w3 w7", "", "w1 w2 unknown w30 w31 w32 w9", " ".join(f"w{i % 40}" for i in range(30))]


def ids(text: str) -> list[int]:
    return [int(word[1:]) + len(SPECIAL) if word != "unknown" else 3 for word in text.split()]


def dense(rows: Rows, words: int = WORDS) -> NDArray[Any]:
    """The rows with a column for each term."""
    ends, terms, weights = rows
    out = np.zeros((len(ends) - 1, words))
    out[np.repeat(np.arange(len(out)), np.diff(ends.astype(np.int64))), terms] = weights
    return out


def expected(sizes: dict[str, Any], weights: Any, *, damped: bool = False) -> NDArray[Any]:
    windows = [[[0, *ids(text), 2]] if text else [] for text in TEXTS]
    return np.array([term_weights(sizes, weights, own, SPECIAL, damped=damped) for own in windows])


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta", "mpnet"])
@pytest.mark.parametrize("damped", [False, True])
def test_families(tmp_path: Path, family: str, damped: bool) -> None:
    sizes, weights = small_terms.save(tmp_path, family, damped=damped, max_position_embeddings=60)
    want = expected(sizes, weights, damped=damped)
    assert 5 < (want > 0).sum(1)[-1] < small_model.WORDS
    for kernel in IN_FLOATS:
        found = dense(SparseModel(str(tmp_path), precision="f32", kernel=kernel).rows(TEXTS))
        assert np.abs(found - want).max() < 1e-5, kernel
        assert ((found > 0) == (want > 0)).all()


@pytest.mark.parametrize(
    ("hidden", "heads", "inner", "words"), [(24, 3, 40, 44), (33, 3, 13, 44), (80, 5, 70, 47)]
)
def test_int8_is_close_and_the_same_on_every_processor(
    tmp_path: Path, hidden: int, heads: int, inner: int, words: int
) -> None:
    changes = {
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "vocab_size": words,
    }
    sizes, weights = small_terms.save(tmp_path, max_position_embeddings=60, **changes)
    want = expected(sizes, weights)
    first = SparseModel(str(tmp_path), precision="int8", kernel="portable").rows(TEXTS)
    found = dense(first, words)
    for one, other in zip(found[[0, 1, 3, 4]], want[[0, 1, 3, 4]], strict=True):
        assert one @ other > 0.99 * np.linalg.norm(one) * np.linalg.norm(other)
    for kernel in IN_BYTES:
        rows = SparseModel(str(tmp_path), precision="int8", kernel=kernel).rows(TEXTS)
        for one, other in zip(rows, first, strict=True):
            assert np.array_equal(one, other), kernel


def test_a_row_depends_on_its_text_alone(tmp_path: Path) -> None:
    small_terms.save(tmp_path, max_position_embeddings=60)
    model = SparseModel(str(tmp_path))
    many = TEXTS * 20
    for threads in (1, 3):
        ends, terms, weights = model.rows(many, threads=threads)
        for number, text in enumerate(many):
            alone = model.rows([text])
            own = slice(int(ends[number]), int(ends[number + 1]))
            assert np.array_equal(terms[own], alone[1]) and np.array_equal(weights[own], alone[2])
            assert (np.diff(alone[1].astype(np.int64)) > 0).all() and (alone[2] > 0).all()


def test_a_long_text_has_the_greatest_weights_of_its_windows(tmp_path: Path) -> None:
    sizes, weights = small_terms.save(tmp_path, longest=12)
    text = ids(TEXTS[-1])
    windows = [[0, *text[start : start + 10], 2] for start in range(0, 30, 10)]
    want = term_weights(sizes, weights, windows, SPECIAL, damped=False)
    found = dense(SparseModel(str(tmp_path), precision="f32").rows([TEXTS[-1]]))[0]
    assert np.abs(found - want).max() < 1e-5


def test_a_query_without_the_model(tmp_path: Path) -> None:
    table = np.linspace(-1, 8, WORDS).astype(np.float32)
    sizes, weights = small_terms.save(
        tmp_path / "router", damped=True, table=table, max_position_embeddings=60
    )
    model = SparseModel(str(tmp_path / "router"), precision="f32")
    found = model.queries(TEXTS)
    for (terms, own), text in zip(found, TEXTS, strict=True):
        want = sorted({term for term in ids(text) if term not in SPECIAL and table[term] > 0})
        assert terms.tolist() == want and np.array_equal(own, table[want])
    assert np.abs(dense(model.rows(TEXTS)) - expected(sizes, weights, damped=True)).max() < 1e-5
    # A plain folder of a masked language model has the table as JSON.
    small_terms.save(tmp_path / "plain", max_position_embeddings=60)
    (tmp_path / "plain/modules.json").unlink()
    (tmp_path / "plain/idf.json").write_text(json.dumps({"w1": 2.5, "w7": 0.5, "other": 9.0}))
    (terms, own), *_ = SparseModel(str(tmp_path / "plain")).queries(["w7 w1 w2 w1"])
    assert terms.tolist() == [5, 11] and own.tolist() == [2.5, 0.5]


def test_without_a_table_a_query_is_read_like_a_document(tmp_path: Path) -> None:
    small_terms.save(tmp_path, max_position_embeddings=60)
    model = SparseModel(str(tmp_path))
    ends, terms, weights = model.rows(TEXTS)
    for number, query in enumerate(model.queries(TEXTS)):
        own = slice(int(ends[number]), int(ends[number + 1]))
        assert np.array_equal(query[0], terms[own]) and np.array_equal(query[1], weights[own])
    assert model.queries([]) == []


def test_prompts_precede_texts(tmp_path: Path) -> None:
    small_terms.save(tmp_path)
    plain = SparseModel(str(tmp_path))
    (tmp_path / "config_sentence_transformers.json").write_text(
        '{"prompts": {"query": "w5 ", "document": "w6 "}}'
    )
    model = SparseModel(str(tmp_path))
    assert model.fingerprint != plain.fingerprint
    for found, want in ((model.queries(["w1"])[0], "w5 w1"), (model.rows(["w1"])[1:], "w6 w1")):
        assert all(np.array_equal(a, b) for a, b in zip(found, plain.queries([want])[0], strict=True))


def test_the_fingerprint_is_of_contents(tmp_path: Path) -> None:
    small_terms.save(tmp_path / "a", table=np.ones(WORDS, np.float32))
    small_terms.save(tmp_path / "b", table=np.ones(WORDS, np.float32))
    assert fingerprint(str(tmp_path / "a")) == fingerprint(str(tmp_path / "b"))
    small_terms.save(tmp_path / "b", table=np.full(WORDS, 2, np.float32))
    assert fingerprint(str(tmp_path / "a")) != fingerprint(str(tmp_path / "b"))


def test_reading_can_be_stopped(tmp_path: Path) -> None:
    small_terms.save(tmp_path)
    model = SparseModel(str(tmp_path))
    with pytest.raises(Cancelled):
        model.rows(TEXTS * 2000, report=lambda done, total: False)
    with pytest.raises(DeadlineExceeded):
        model.queries(TEXTS, seconds=0.0)


def refused(folder: Path, match: str) -> None:
    with pytest.raises(BackendError, match=match):
        SparseModel(str(folder))


def test_folders_that_are_no_sparse_encoders(tmp_path: Path) -> None:
    refused(tmp_path / "none", "no such folder")
    refused(tmp_path, "No such file")
    sentences = small_model.save(tmp_path / "sentences", small_model.config())
    refused(sentences, "SpladePooling")
    (sentences / "modules.json").unlink()
    refused(sentences, "masked-language-model head")
    folder = tmp_path / "model"
    small_terms.save(folder)
    for content, match in [
        ('{"pooling_strategy": "sum"}', "sum"),
        ('{"activation_function": "tanh"}', "tanh"),
        ("{", "config.json"),
    ]:
        (folder / "1_SpladePooling/config.json").write_text(content)
        refused(folder, match)
    small_terms.save(folder)
    (folder / "model.safetensors").write_bytes(b"no weights")
    refused(folder, "model.safetensors")


def test_damaged_values(tmp_path: Path) -> None:
    small_terms.save(tmp_path, table=np.ones(WORDS - 1, np.float32))
    refused(tmp_path, "shape")
    small_terms.save(tmp_path, table=np.full(WORDS, np.nan, np.float32))
    refused(tmp_path, "NaN")
    _, weights = small_terms.save(tmp_path / "large")
    weights["encoder.layer.1.output.LayerNorm.weight"][:] = 3e38
    small_model.write_safetensors(tmp_path / "large/model.safetensors", weights)
    refused(tmp_path / "large", "finite")
    model = tmp_path / "json"
    small_terms.save(model)
    (model / "modules.json").unlink()
    for content in ("[]", '{"w1": "much"}', '{"w1": 1e999}'):
        (model / "idf.json").write_text(content)
        refused(model, "idf.json|weights")
