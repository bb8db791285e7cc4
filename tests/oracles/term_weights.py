"""Weights of a vocabulary's terms from their definition, in float64: the sparse encoder's oracle.

SPLADE: Formal et al. 2021, section 3, with the maximum of Formal et al. 2021b. Weights are named as in a
`model.safetensors` file of BERT.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tests.oracles.encoder import F64, Weights, activation, token_vectors


def logits(config: Mapping[str, Any], weights: Weights, ids: Sequence[int]) -> F64:
    """The logits of the masked-language-model head: (tokens, words)."""
    x = token_vectors(config, weights, ids)
    head = "cls.predictions.transform"
    x = activation(
        x @ weights[f"{head}.dense.weight"].T + weights[f"{head}.dense.bias"], config["hidden_act"]
    )
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + config["layer_norm_eps"])
    x = x * weights[f"{head}.LayerNorm.weight"] + weights[f"{head}.LayerNorm.bias"]
    return np.asarray(x @ weights["embeddings.word_embeddings.weight"].T + weights["cls.predictions.bias"])


def term_weights(
    config: Mapping[str, Any],
    weights: Weights,
    windows: Sequence[Sequence[int]],
    special: Collection[int],
    *,
    damped: bool,
) -> F64:
    """The weight of each word in a text of these windows."""
    found = np.zeros(config["vocab_size"])
    for ids in windows:
        own = np.log1p(np.maximum(logits(config, weights, ids), 0))
        found = np.maximum(found, (np.log1p(own) if damped else own).max(0))
    found[list(special)] = 0
    return found
