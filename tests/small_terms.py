"""A small random sparse encoder in a folder of its own, as sentence-transformers would save it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests import small_model

Tensors = dict[str, NDArray[Any]]
_BERT = ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias")
_HEADS = {
    "bert": _BERT,
    "distilbert": ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
    "roberta": ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    "mpnet": ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
}
_DISTILBERT = {
    "encoder.layer.": "transformer.layer.",
    "attention.self.query": "attention.q_lin",
    "attention.self.key": "attention.k_lin",
    "attention.self.value": "attention.v_lin",
    "attention.output.dense": "attention.out_lin",
    "attention.output.LayerNorm": "sa_layer_norm",
    "intermediate.dense": "ffn.lin1",
    "output.dense": "ffn.lin2",
    "output.LayerNorm": "output_layer_norm",
}
_SIZES = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
}
_KIND = "sentence_transformers.sparse_encoder.models"


def save(
    folder: Path,
    family: str = "bert",
    *,
    seed: int = 0,
    damped: bool = False,
    table: NDArray[Any] | None = None,
    longest: int | None = None,
    **changes: Any,
) -> tuple[dict[str, Any], Tensors]:
    """The folder; its configuration and weights under the names of BERT, which the oracle reads.

    With a table, that gives the weights of the terms of queries.
    """
    usual = {"layer_norm_eps": 1e-12} if family == "distilbert" else {}
    sizes = small_model.config("bert" if family == "distilbert" else family, **usual | changes)
    tensors = small_model.tensors(sizes, seed)
    if family == "distilbert":
        tensors["embeddings.token_type_embeddings.weight"] *= 0
    rng = np.random.default_rng(seed + 1)
    hidden, words = sizes["hidden_size"], sizes["vocab_size"]
    tensors |= {
        f"{_BERT[0]}.weight": (1.5 / hidden**0.5 * rng.standard_normal((hidden, hidden))).astype(np.float32),
        f"{_BERT[0]}.bias": (0.1 * rng.standard_normal(hidden)).astype(np.float32),
        f"{_BERT[1]}.weight": (1 + 0.1 * rng.standard_normal(hidden)).astype(np.float32),
        f"{_BERT[1]}.bias": (0.1 * rng.standard_normal(hidden)).astype(np.float32),
        _BERT[2]: (rng.standard_normal(words) - 6).astype(np.float32),
    }
    document, pooling = folder, folder / "1_SpladePooling"
    listed = [("Transformer", ""), ("SpladePooling", pooling.name)]
    if table is not None:
        document, pooling = folder / "document_0_Transformer", folder / "document_1_SpladePooling"
        query = folder / "query_0_SparseStaticEmbedding"
        listed = [("Router", "")]
        kinds = {
            query.name: "SparseStaticEmbedding",
            document.name: "Transformer",
            pooling.name: "SpladePooling",
        }
        router = {
            "types": {name: f"{_KIND}.{kind}" for name, kind in kinds.items()},
            "structure": {"query": [query.name], "document": [document.name, pooling.name]},
        }
        query.mkdir(parents=True, exist_ok=True)
        (folder / "router_config.json").write_text(json.dumps(router))
        (query / "config.json").write_text('{"frozen": true}')
        small_model.write_safetensors(query / "model.safetensors", {"weight": table})
    pooling.mkdir(parents=True, exist_ok=True)
    document.mkdir(exist_ok=True)
    modules = [{"idx": i, "path": path, "type": f"{_KIND}.{kind}"} for i, (kind, path) in enumerate(listed)]
    (folder / "modules.json").write_text(json.dumps(modules))
    settings = {"pooling_strategy": "max", "activation_function": "log1p_relu" if damped else "relu"}
    (pooling / "config.json").write_text(json.dumps(settings))
    (document / "config.json").write_text(json.dumps(_config(family, sizes)))
    (document / "tokenizer.json").write_text(json.dumps(small_model.tokeniser()))
    small_model.write_safetensors(document / "model.safetensors", _stored(family, tensors))
    if longest is not None:
        (document / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": longest}))
    return sizes, tensors


def _config(family: str, sizes: Mapping[str, Any]) -> dict[str, Any]:
    if family != "distilbert":
        return dict(sizes)
    left_out = ("type_vocab_size", "layer_norm_eps")
    named = {_SIZES.get(name, name): value for name, value in sizes.items() if name not in left_out}
    return named | {"model_type": "distilbert"}


def _stored(family: str, tensors: Tensors) -> Tensors:
    """The tensors under the names of a family."""
    stored = {}
    for name, values in tensors.items():
        if family == "distilbert":
            if "token_type" in name:
                continue
            for old, new in _DISTILBERT.items():
                name = name.replace(old, new) if "." + old in "." + name else name
        for old, new in zip(_BERT, _HEADS[family], strict=True):
            name = name.replace(old, new)
        stored[name] = values
    return stored
