"""The native encoder's face: what it refuses, what it reports, and how it stops."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast.errors import Cancelled, ConfigError, IndexDamaged, InputError
from ketrag_fast.kernels.encoder import KERNEL_VARIABLE, Encoder, kernels
from tests import small_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_model.save(tmp_path / "model", small_model.config())


def rewrite(path: Path, change: Callable[[Any], Any]) -> None:
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def test_other_architectures_are_refused_by_name(folder: Path) -> None:
    for change, name in [
        ({"model_type": "deberta-v2"}, "deberta-v2"),
        ({"hidden_act": "mish"}, "mish"),
        ({"position_embedding_type": "relative_key"}, "relative_key"),
    ]:
        small_model.save(folder, small_model.config(**change))
        with pytest.raises(InputError, match=f"{name}.*sentence-transformers"):
            Encoder.open(folder)


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "model.safetensors", "1_Pooling/config.json"]
)
def test_missing_and_broken_files(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    for content in (b"", b"{", whole[: len(whole) // 2], b"\xff" * 100, b"[" * 5000):
        (folder / name).write_bytes(content)
        with pytest.raises(IndexDamaged):
            Encoder.open(folder)
    (folder / name).unlink()
    with pytest.raises((IndexDamaged, InputError)):
        Encoder.open(folder)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(IndexDamaged, match="no such folder"):
        Encoder.open(tmp_path / "none")


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_size": 25},
        {"hidden_size": 48},
        {"num_hidden_layers": 3},
        {"num_attention_heads": 0},
        {"intermediate_size": -1},
        {"intermediate_size": 2**63},
        {"max_position_embeddings": 35},
        {"vocab_size": 1000},
        {"vocab_size": "many"},
        {"layer_norm_eps": 7},
    ],
)
def test_a_configuration_that_is_not_the_weights(folder: Path, change: dict[str, Any]) -> None:
    rewrite(folder / "config.json", lambda value: value | change)
    with pytest.raises(IndexDamaged):
        Encoder.open(folder)


def test_a_vocabulary_larger_than_the_table(folder: Path) -> None:
    def grow(value: Any) -> Any:
        value["model"]["vocab"]["beyond"] = 44
        return value

    rewrite(folder / "tokenizer.json", grow)
    with pytest.raises(IndexDamaged, match="token 44 has no row"):
        Encoder.open(folder)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(
    "name",
    [
        "embeddings.word_embeddings.weight",
        "embeddings.LayerNorm.bias",
        "encoder.layer.1.attention.self.key.weight",
        "encoder.layer.0.output.dense.bias",
    ],
)
def test_weights_that_are_no_numbers(folder: Path, name: str, bad: float) -> None:
    tensors = small_model.tensors(small_model.config())
    tensors[name].flat[-1] = bad
    small_model.write_safetensors(folder / "model.safetensors", tensors)
    with pytest.raises(IndexDamaged, match="NaN"):
        Encoder.open(folder)


def test_lying_headers(folder: Path) -> None:
    path = folder / "model.safetensors"
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    for lie in (0, length - 1, length + 1, len(raw), 2**40, 2**64 - 1):
        path.write_bytes(struct.pack("<Q", lie) + raw[8:])
        with pytest.raises(IndexDamaged):
            Encoder.open(folder)
    path.write_bytes(raw[:-1])
    with pytest.raises(IndexDamaged, match="lies about its place"):
        Encoder.open(folder)


def test_arguments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in ({"precision": "int4"}, {"kernel": "mmx"}):
        with pytest.raises(InputError, match="must be one of"):
            Encoder.open(folder, **arguments)
    monkeypatch.setenv(KERNEL_VARIABLE, "portable")
    encoder = Encoder.open(folder)
    assert (encoder.kernel, encoder.precision, encoder.timings) == ("portable", "f32", [])
    assert kernels()[0] == "portable"
    with pytest.raises(InputError, match="not one text"):
        encoder.encode("w1")
    with pytest.raises(InputError, match="surrogate"):
        encoder.encode(["\ud800"])


def test_progress_counts_tokens_and_stops(folder: Path) -> None:
    encoder = Encoder.open(folder, kernel="portable", precision="f32")
    texts = [" ".join(f"w{i % 40}" for i in range(30))] * 5000
    seen: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> bool:
        seen.append((done, total))
        return total == 0

    with pytest.raises(Cancelled):
        encoder.encode(texts, threads=1, report=stop)
    assert seen[-1][1] == 5000 * 30 and seen[-1][0] < seen[-1][1]


def test_lengths_count_special_tokens_of_every_window(tmp_path: Path) -> None:
    encoder = Encoder.open(small_model.save(tmp_path, small_model.config(), longest=10))
    assert encoder.lengths(["", "w1", " ".join(["w1"] * 17)]).tolist() == [0, 3, 23]


def test_prompts(folder: Path) -> None:
    encoder = Encoder.open(folder)
    assert encoder.prompt() == ""
    settings = {"prompts": {"query": "w1 ", "document": ""}, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    encoder = Encoder.open(folder)
    assert (encoder.prompt(), encoder.prompt("document")) == ("w1 ", "")
    with pytest.raises(ConfigError, match="no prompt 'passage'"):
        encoder.prompt("passage")


def test_the_fingerprint_is_that_of_files_and_precision(folder: Path, tmp_path: Path) -> None:
    first = Encoder.open(folder, precision="f32").fingerprint()
    copy = small_model.save(tmp_path / "copy", small_model.config())
    assert Encoder.open(copy, precision="f32", kernel="portable").fingerprint() == first
    assert Encoder.open(folder, precision="bf16").fingerprint() != first
    assert (
        Encoder.open(
            small_model.save(copy, small_model.config(), pooling=["cls_token"]), precision="f32"
        ).fingerprint()
        != first
    )
