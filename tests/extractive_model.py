"""A small random model for extractive question answering in a folder of its own, as transformers saves it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests import small_model

PREFIX = {"bert": "bert.", "roberta": "roberta.", "xlm-roberta": "roberta.", "mpnet": "mpnet."}
CLASS = {"bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta", "mpnet": "MPNet"}


def save(folder: Path, family: str = "bert", *, seed: int = 0, labels: int = 2, **changes: Any) -> Path:
    """A model with `labels` outputs for each token; the tokeniser knows w0, w1, ..."""
    sizes = small_model.config(family, **changes)
    small_model.save(folder, sizes, seed=seed)
    (folder / "modules.json").unlink()
    rng = np.random.default_rng(seed + 11)
    own = small_model.tensors(sizes, seed)
    weights = {f"{PREFIX[family]}{name}": values for name, values in own.items()}
    weights["qa_outputs.weight"] = rng.standard_normal((labels, sizes["hidden_size"]))
    weights["qa_outputs.bias"] = rng.standard_normal(labels)
    small_model.write_safetensors(folder / "model.safetensors", weights)
    architecture = {"architectures": [f"{CLASS[family]}ForQuestionAnswering"]}
    (folder / "config.json").write_text(json.dumps(sizes | architecture))
    tokeniser = small_model.tokeniser()
    tokeniser["post_processor"]["pair"] += [{"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    (folder / "tokenizer.json").write_text(json.dumps(tokeniser))
    return folder


def choose(folder: Path, word: str, *, width: int = 40) -> Path:
    """A model whose best span is `word` (w0, w1, ...) ; other spans score below none."""
    sizes = small_model.config(num_hidden_layers=1, max_position_embeddings=width)
    save(folder, num_hidden_layers=1, max_position_embeddings=width)
    weights = {f"bert.{name}": 0.0 * values for name, values in small_model.tensors(sizes).items()}
    for name in weights:
        if name.endswith("LayerNorm.weight"):
            weights[name] = weights[name] + 1.0
    words = weights["bert.embeddings.word_embeddings.weight"]
    # Each word's vector is (1, -1, 0, ...), the answer's (-1, 1, 0, ...), that of [CLS] halfway.
    words[:, 0], words[:, 1] = 1.0, -1.0
    answer = len(small_model.SPECIAL) + int(word[1:])
    words[answer, 0], words[answer, 1] = -1.0, 1.0
    words[0] = 0.0
    words[0, 2], words[0, 3] = 1.0, -1.0
    outputs = np.zeros((2, sizes["hidden_size"]))
    outputs[:, 1] = 1.0
    weights["qa_outputs.weight"], weights["qa_outputs.bias"] = outputs, np.zeros(2)
    small_model.write_safetensors(
        folder / "model.safetensors",
        {name: values.astype(np.float32) for name, values in weights.items() if "position_ids" not in name},
    )
    return folder
