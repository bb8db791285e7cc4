"""A transformer encoder from its definition, one text at a time in float64: the native encoder's oracle.

BERT: Devlin et al. 2019; MPNet's distances: Raffel et al. 2020, section 2.1. Weights are named as in
a `model.safetensors` file.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
Weights = Mapping[str, F64]
TYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8"}


def read_safetensors(path: Path) -> dict[str, F64]:
    """Every tensor of a file."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    out = {}
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        if name != "__metadata__":
            start, end = (8 + length + x for x in entry["data_offsets"])
            values = np.frombuffer(raw[start:end], TYPES[entry["dtype"]])
            if entry["dtype"] == "BF16":
                values = (values.astype(np.uint32) << 16).view(np.float32)
            out[name] = values.astype(np.float64).reshape(entry["shape"])
    return out


def _norm(x: F64, weights: Weights, name: str, eps: float) -> F64:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    return np.asarray(scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"])


def _linear(x: F64, weights: Weights, name: str) -> F64:
    return np.asarray(x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"])


def activation(x: F64, kind: str) -> F64:
    """The activations by their names in config.json."""
    if kind == "gelu":
        return np.asarray(0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))))
    if kind in ("gelu_new", "gelu_pytorch_tanh"):
        return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    if kind == "relu":
        return np.maximum(x, 0)
    if kind == "silu":
        return np.asarray(x / (1 + np.exp(-x)))
    raise ValueError(kind)


def bucket(distance: int, buckets: int) -> int:
    """The bucket of the distance key - query."""
    half = buckets // 2
    side, n, exact = (half if distance > 0 else 0), abs(distance), half // 2
    if n < exact:
        return side + n
    share = math.log(n / exact) / math.log(128 / exact)
    return side + min(exact + int(share * (half - exact) + 1e-6), half - 1)


def token_vectors(config: Mapping[str, Any], weights: Weights, ids: Sequence[int]) -> F64:
    """The last layer's vectors of one sequence: (tokens, hidden)."""
    mpnet, n, heads = config["model_type"] == "mpnet", len(ids), config["num_attention_heads"]
    first = 0 if config["model_type"] == "bert" else config["pad_token_id"] + 1
    eps, width = config["layer_norm_eps"], config["hidden_size"] // heads
    x = weights["embeddings.word_embeddings.weight"][list(ids)]
    x = x + weights["embeddings.position_embeddings.weight"][first : first + n]
    if not mpnet:
        x = x + weights["embeddings.token_type_embeddings.weight"][0]
    x = _norm(x, weights, "embeddings.LayerNorm", eps)
    bias = np.zeros((heads, n, n))
    if mpnet:
        table = weights["encoder.relative_attention_bias.weight"]
        places = [[bucket(j - i, len(table)) for j in range(n)] for i in range(n)]
        bias = table[np.array(places)].transpose(2, 0, 1)
    names = ["attn.q", "attn.k", "attn.v", "attn.o", "LayerNorm"]
    if not mpnet:
        names = ["self.query", "self.key", "self.value", "output.dense", "output.LayerNorm"]
    for layer in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{layer}."
        query, key, value = (
            _linear(x, weights, f"{at}attention.{name}").reshape(n, heads, width).transpose(1, 0, 2)
            for name in names[:3]
        )
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(width) + bias
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        context = (shares @ value).transpose(1, 0, 2).reshape(n, -1)
        x = _norm(
            x + _linear(context, weights, f"{at}attention.{names[3]}"),
            weights,
            f"{at}attention.{names[4]}",
            eps,
        )
        middle = activation(_linear(x, weights, f"{at}intermediate.dense"), config["hidden_act"])
        x = _norm(x + _linear(middle, weights, f"{at}output.dense"), weights, f"{at}output.LayerNorm", eps)
    return x


def pool(vectors: F64, mode: str) -> F64:
    """One vector from the token vectors, by the modes' names in a pooling module."""
    n = len(vectors)
    weight = np.arange(1, n + 1)[:, None]
    modes: dict[str, Callable[[], F64]] = {
        "cls_token": lambda: np.asarray(vectors[0]),
        "lasttoken": lambda: np.asarray(vectors[-1]),
        "max_tokens": lambda: np.asarray(vectors.max(0)),
        "mean_tokens": lambda: np.asarray(vectors.mean(0)),
        "mean_sqrt_len_tokens": lambda: np.asarray(vectors.sum(0) / math.sqrt(n)),
        "weightedmean_tokens": lambda: np.asarray((vectors * weight).sum(0) / weight.sum()),
    }
    return modes[mode]()


def unit(vector: F64) -> F64:
    """The vector at length 1; one of no length stays."""
    length = float(np.sqrt((vector**2).sum()))
    return vector / length if length >= 1e-12 else vector
