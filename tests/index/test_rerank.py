"""Passages in the order of a cross-encoder: which ones, what stays, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import BackendError, ConfigError, DeadlineExceeded
from ketrag_fast.models.cross_encoders import CrossEncoder
from ketrag_fast.query.ranking import DEPTH
from tests import cross_encoder, small_model

QUESTION = "w1 w2 w3"


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`index` of 60 texts, and the folder `model`."""
    folder = tmp_path_factory.mktemp("rerank")
    rng = np.random.default_rng(3)
    texts = folder / "texts"
    texts.mkdir()
    for i in range(60):
        words = rng.integers(0, small_model.WORDS, 20)
        (texts / f"{i:02}.txt").write_text("w1 w2 " + " ".join(f"w{w}" for w in words))
    Index.build(str(texts), folder / "index", settings=Settings(modes="auto,text,fused")).close()
    cross_encoder.save(folder / "model", max_position_embeddings=80)
    return folder


def opened(where: Path, **settings: object) -> Index:
    return Index.open(where / "index", settings=Settings(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["bm25", "text", "fused"])
def test_the_first_stand_in_the_models_order_and_the_rest_where_they_were(where: Path, mode: str) -> None:
    spec = f"native:{where / 'model'}"
    with opened(where, mode=mode) as plain, opened(where, mode=mode, rerank=spec) as index:
        before = plain.retrieve(QUESTION, budget=100_000).passages
        after = index.retrieve(QUESTION, budget=100_000).passages
        assert len(before) > DEPTH
        head = [(p.unit, p.text) for p in before[:DEPTH]]
        scores = CrossEncoder(spec).scores(QUESTION, [text for _, text in head])
        order = np.argsort(-scores, kind="stable")
        assert [p.unit for p in after[:DEPTH]] == [head[i][0] for i in order]
        # Each opening times the kernels and takes the fastest, so that the last bits may differ.
        assert [p.score for p in after[:DEPTH]] == pytest.approx([float(scores[i]) for i in order], rel=1e-5)
        assert [p.unit for p in after[DEPTH:]] == [p.unit for p in before[DEPTH:]]
        assert [p.unit for p in after] != [p.unit for p in before], "the order changed"
        # A small budget and a `top` have the best of the new order, alone and among many.
        few = index.retrieve(QUESTION, budget=100).passages
        assert [p.unit for p in few] == [p.unit for p in after[: len(few)]]
        assert 0 < len(few) < DEPTH
        many = index.retrieve_many([QUESTION, "w7 w8"], budgets=[100, 100_000], threads=2)
        assert [p.unit for p in many[0][0].passages] == [p.unit for p in few]
        assert [p.unit for p in many[0][1].passages] == [p.unit for p in after]
        assert len(index.retrieve(QUESTION, top=3).passages) == 3


def test_questions_that_match_nothing_and_deadlines(where: Path) -> None:
    with opened(where, mode="bm25", rerank=f"native:{where / 'model'}") as index:
        none = index.retrieve("absent")
        assert (none.text, len(none.passages)) == ("", 0)
        assert none.reason == "no_match"
        with pytest.raises(DeadlineExceeded):
            index.retrieve(QUESTION, deadline=0.0)
        index.retrieve(QUESTION, deadline=60.0)
    model = CrossEncoder(f"native:{where / 'model'}")
    with pytest.raises(DeadlineExceeded):
        model.scores(QUESTION, ["w1"] * 30, seconds=0.0)
    assert model.scores(QUESTION, []).shape == (0,)


def test_what_is_no_cross_encoder_is_refused(where: Path, tmp_path: Path) -> None:
    def ask(spec: str) -> None:
        with opened(where, mode="bm25", rerank=spec) as index:
            index.retrieve(QUESTION)

    for spec in ("", "native:", "sentence-transformers:x", "x"):
        with pytest.raises(ConfigError, match="rerank"):
            ask(spec)
    with pytest.raises(BackendError, match="no such folder"):
        ask(f"native:{tmp_path / 'absent'}")
    two = cross_encoder.save(tmp_path / "two", labels=2)
    with pytest.raises(BackendError, match="label"):
        ask(f"native:{two}")
    plain = small_model.save(tmp_path / "plain", small_model.config())
    with pytest.raises(BackendError, match="classifier"):
        ask(f"native:{plain}")
    mpnet = small_model.save(tmp_path / "mpnet", small_model.config("mpnet"))
    with pytest.raises(BackendError, match="BERT"):
        ask(f"native:{mpnet}")
    damaged = cross_encoder.save(tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes((damaged / "model.safetensors").read_bytes()[:2000])
    with pytest.raises(BackendError, match="cannot be loaded"):
        ask(f"native:{damaged}")


def test_a_folder_whose_parts_do_not_fit_is_refused(where: Path, tmp_path: Path) -> None:
    """Another vocabulary or layout of files, turned matrices, weights that are NaN or too large."""

    def refuse(folder: Path, reason: str) -> None:
        with (
            opened(where, mode="bm25", rerank=f"native:{folder}") as index,
            pytest.raises(BackendError, match=reason) as caught,
        ):
            index.retrieve(QUESTION)
        assert str(folder) in str(caught.value)

    small = cross_encoder.save(tmp_path / "vocabulary")
    config = json.loads((small / "config.json").read_text())
    (small / "config.json").write_text(json.dumps(config | {"vocab_size": 20}))
    refuse(small, "has no row in the model's table of 20")
    refuse(cross_encoder.save(tmp_path / "large", vocab_size=500), "belongs to another model")
    for missing in ("config.json", "model.safetensors", "tokenizer.json"):
        folder = cross_encoder.save(tmp_path / missing)
        (folder / missing).rename(folder / "pytorch_model.bin")
        refuse(folder, missing)
    sizes = small_model.config()
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    for kind, reason in (("turned", "has shape"), ("nan", "NaN or an infinity"), ("huge", "not finite")):
        folder = cross_encoder.save(tmp_path / kind)
        weights = {f"bert.{key}": rows for key, rows in small_model.tensors(sizes).items()}
        hidden = sizes["hidden_size"]
        weights["bert.pooler.dense.weight"] = np.eye(hidden)
        weights["bert.pooler.dense.bias"] = np.zeros(hidden)
        weights["classifier.weight"] = np.ones((1, hidden))
        weights["classifier.bias"] = np.zeros(1)
        if kind == "turned":
            weights[name] = np.ascontiguousarray(weights[name].T)
        else:
            weights[name] = np.full_like(weights[name], np.nan if kind == "nan" else 3e38)
        small_model.write_safetensors(folder / "model.safetensors", weights)
        refuse(folder, reason)


def test_passages_of_ten_thousand_words_and_very_long_questions(where: Path) -> None:
    model = CrossEncoder(f"native:{where / 'model'}", precision="fp32")
    long = "w1 w2 w3 w4 " * 2_500
    texts = [long, "", "\0 \n", "\ud800 w2", "w1"]
    scores = model.scores(QUESTION, texts)
    assert np.isfinite(scores).all()
    assert np.array_equal(model.scores(QUESTION, [long, long + "w9"]), scores[[0, 0]]), "both are cut"
    asked = model.scores("w1 " * 2_000, texts)
    assert np.isfinite(asked).all() and not np.array_equal(asked, scores)
    assert np.isfinite(model.scores("", ["", long])).all()
    with opened(where, mode="bm25", rerank=f"native:{where / 'model'}") as index:
        assert index.retrieve("w1 w7 " * 1_000, budget=100_000).passages


def test_the_command_takes_it(where: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["retrieve", "-i", str(where / "index"), "--mode", "bm25", "--json", QUESTION]
    assert main(line) == 0
    plain = [p["unit"] for p in json.loads(capsys.readouterr().out)["passages"]]
    assert main([*line, "--rerank", f"native:{where / 'model'}"]) == 0
    assert [p["unit"] for p in json.loads(capsys.readouterr().out)["passages"]] != plain
