"""The native encoder against `transformers` on small random models, where that is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import small_model
from tests.support.parts import part

from ketrag_fast.kernels.encoder import Encoder

transformers = part("transformers", "embed")
torch = part("torch", "embed")

CLASSES = {
    "bert": "Bert",
    "roberta": "Roberta",
    "xlm-roberta": "XLMRoberta",
    "camembert": "Camembert",
    "mpnet": "MPNet",
}


@pytest.mark.parametrize(
    ("family", "kind"),
    [*((family, "gelu") for family in CLASSES), ("bert", "gelu_new"), ("roberta", "relu"), ("mpnet", "silu")],
)
def test_token_vectors_pooled(tmp_path: Path, family: str, kind: str) -> None:
    sizes = small_model.config(family, hidden_act=kind, num_hidden_layers=3, max_position_embeddings=530)
    name = CLASSES[family]
    torch.manual_seed(1)
    settings: dict[str, Any] = {key: value for key, value in sizes.items() if key != "model_type"}
    config = getattr(transformers, f"{name}Config")(**settings)
    model = getattr(transformers, f"{name}Model")(config, add_pooling_layer=False).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    model.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps(small_model.tokeniser()))
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in rng.integers(0, small_model.WORDS, n)) for n in (1, 9, 60, 200, 500)]
    got = Encoder.open(tmp_path, precision="f32").encode(texts)
    for text, vector in zip(texts, got, strict=True):
        ids = torch.tensor([[0, *(int(word[1:]) + 4 for word in text.split()), 2]])
        with torch.no_grad():
            expected = model(input_ids=ids).last_hidden_state[0].mean(0).numpy()
        assert np.abs(vector - expected).max() < 2e-5 * (1 + np.abs(expected).max())
