"""A small random cross-encoder in a folder of its own, in the layout of the ms-marco-MiniLM models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests import small_model


def save(folder: Path, *, seed: int = 0, labels: int = 1, **changes: Any) -> Path:
    """BERT with a pooler and a classifier of `labels` rows; the tokeniser knows w0, w1, ..."""
    sizes = small_model.config(**changes)
    small_model.save(folder, sizes, seed=seed)
    (folder / "modules.json").unlink()
    hidden = sizes["hidden_size"]
    rng = np.random.default_rng(seed + 7)
    weights = {f"bert.{name}": values for name, values in small_model.tensors(sizes, seed).items()}
    weights["bert.pooler.dense.weight"] = 0.3 * rng.standard_normal((hidden, hidden))
    weights["bert.pooler.dense.bias"] = 0.1 * rng.standard_normal(hidden)
    weights["classifier.weight"] = rng.standard_normal((labels, hidden))
    weights["classifier.bias"] = rng.standard_normal(labels)
    small_model.write_safetensors(folder / "model.safetensors", weights)
    (folder / "config.json").write_text(
        json.dumps(sizes | {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"}})
    )
    tokeniser = small_model.tokeniser()
    pair = tokeniser["post_processor"]["pair"]
    pair.append({"SpecialToken": {"id": "[SEP]", "type_id": 1}})
    (folder / "tokenizer.json").write_text(json.dumps(tokeniser))
    return folder
