"""A small random model in a folder of its own, as sentence-transformers would save it."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORDS = 40
SPECIAL = ["[CLS]", "[PAD]", "[SEP]", "[UNK]"]


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[Any]], kind: str = "F32") -> None:
    """Every tensor as `kind` (F32, F16 or BF16; whole numbers stay I64)."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, values in tensors.items():
        if values.dtype == np.int64:
            own, raw = "I64", values.tobytes()
        elif kind == "BF16":
            own, raw = kind, (values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
        else:
            own, raw = kind, values.astype("<f4" if kind == "F32" else "<f2").tobytes()
        header[name] = {
            "dtype": own,
            "shape": values.shape,
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)


def config(family: str = "bert", **changes: Any) -> dict[str, Any]:
    """A config.json of a small model."""
    sizes = {
        "model_type": family,
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 40,
        "vocab_size": WORDS + len(SPECIAL),
        "max_position_embeddings": 34,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12 if family == "bert" else 1e-5,
        "pad_token_id": 0 if family == "bert" else 1,
    }
    if family == "mpnet":
        sizes["relative_attention_num_buckets"] = 32
    return sizes | changes


def tensors(sizes: Mapping[str, Any], seed: int = 0) -> dict[str, NDArray[Any]]:
    """Random weights of all its shapes."""
    rng = np.random.default_rng(seed)
    h, inner, mpnet = sizes["hidden_size"], sizes["intermediate_size"], sizes["model_type"] == "mpnet"
    out: dict[str, NDArray[Any]] = {"embeddings.position_ids": np.arange(4)}

    def put(name: str, *shape: int, scale: float = 1.0, shift: float = 0.0) -> None:
        out[name] = (shift + scale * rng.standard_normal(shape)).astype(np.float32)

    def linear(name: str, outputs: int, inputs: int) -> None:
        put(f"{name}.weight", outputs, inputs, scale=1.2 / inputs**0.5)
        put(f"{name}.bias", outputs, scale=0.1)

    def norm(name: str) -> None:
        put(f"{name}.weight", h, scale=0.1, shift=1.0)
        put(f"{name}.bias", h, scale=0.1)

    put("embeddings.word_embeddings.weight", sizes["vocab_size"], h)
    put("embeddings.position_embeddings.weight", sizes["max_position_embeddings"], h, scale=0.3)
    if mpnet:
        put(
            "encoder.relative_attention_bias.weight",
            sizes["relative_attention_num_buckets"],
            sizes["num_attention_heads"],
        )
    else:
        put("embeddings.token_type_embeddings.weight", sizes["type_vocab_size"], h, scale=0.3)
    norm("embeddings.LayerNorm")
    names = ["attn.q", "attn.k", "attn.v", "attn.o", "LayerNorm"]
    if not mpnet:
        names = ["self.query", "self.key", "self.value", "output.dense", "output.LayerNorm"]
    for layer in range(sizes["num_hidden_layers"]):
        at = f"encoder.layer.{layer}."
        for name in names[:4]:
            linear(f"{at}attention.{name}", h, h)
        norm(f"{at}attention.{names[4]}")
        linear(f"{at}intermediate.dense", inner, h)
        linear(f"{at}output.dense", h, inner)
        norm(f"{at}output.LayerNorm")
    return out


def tokeniser() -> dict[str, Any]:
    """Words w0, w1, ... between [CLS] and [SEP]."""
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *(f"w{i}" for i in range(WORDS))])}
    special = [
        {
            "id": i,
            "content": word,
            "special": True,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
        }
        for i, word in enumerate(SPECIAL)
    ]
    pieces = [
        {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
    ]
    return {
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": pieces,
            "pair": [*pieces, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {
                word: {"id": word, "ids": [vocabulary[word]], "tokens": [word]} for word in ("[CLS]", "[SEP]")
            },
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }


def save(
    folder: Path,
    sizes: Mapping[str, Any],
    *,
    seed: int = 0,
    kind: str = "F32",
    pooling: Sequence[str] = ("mean_tokens",),
    normalise: bool = True,
    dense: tuple[int, str] | None = None,
    include_prompt: bool = True,
    longest: int | None = None,
) -> Path:
    """The folder, with a dense layer of (width, activation) if asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(sizes))
    (folder / "tokenizer.json").write_text(json.dumps(tokeniser()))
    write_safetensors(folder / "model.safetensors", tensors(sizes, seed), kind)
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    (folder / "1_Pooling").mkdir(exist_ok=True)
    switches: dict[str, Any] = {f"pooling_mode_{mode}": True for mode in pooling}
    (folder / "1_Pooling/config.json").write_text(json.dumps(switches | {"include_prompt": include_prompt}))
    if dense is not None:
        width, activation = dense
        inputs = sizes["hidden_size"] * len(pooling)
        modules.append(("2_Dense", "Dense"))
        (folder / "2_Dense").mkdir(exist_ok=True)
        rng = np.random.default_rng(seed + 1)
        layer = {
            "linear.weight": rng.standard_normal((width, inputs)),
            "linear.bias": rng.standard_normal(width),
        }
        write_safetensors(folder / "2_Dense/model.safetensors", layer)
        settings = {
            "in_features": inputs,
            "out_features": width,
            "bias": True,
            "activation_function": activation,
        }
        (folder / "2_Dense/config.json").write_text(json.dumps(settings))
    if normalise:
        modules.append(("3_Normalize", "Normalize"))
    listed = [
        {"idx": i, "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    if longest is not None:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": longest}))
    return folder
