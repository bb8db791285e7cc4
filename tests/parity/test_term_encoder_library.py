"""The sparse encoder against sentence-transformers on small random models, where that is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import small_model
from tests.support.parts import part

from ketrag_fast.models.embedders.sparse import SparseModel

transformers = part("transformers", "embed")
torch = part("torch", "embed")
library = part("sentence_transformers", "embed")
modules: Any = part("sentence_transformers.sparse_encoder.modules", "embed")

WORDS = small_model.WORDS + len(small_model.SPECIAL)
SIZES: dict[str, dict[str, Any]] = {
    "Bert": {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40},
    "DistilBert": {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40},
    "MPNet": {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40},
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("damped", [False, True])
def test_weights_are_those_of_the_library(tmp_path: Path, name: str, damped: bool) -> None:
    raw = tmp_path / "raw"
    torch.manual_seed(3)
    config = getattr(transformers, f"{name}Config")(
        vocab_size=WORDS, max_position_embeddings=60, **SIZES[name]
    )
    model = getattr(transformers, f"{name}ForMaskedLM")(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    model.save_pretrained(raw)
    (raw / "tokenizer.json").write_text(json.dumps(small_model.tokeniser()))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    (raw / "tokenizer_config.json").write_text(json.dumps(settings | {"model_max_length": 50}))
    first = modules.Transformer(str(raw), transformer_task="fill-mask")
    pooling = modules.SpladePooling("max", activation_function="log1p_relu" if damped else "relu")
    queries = modules.SparseStaticEmbedding(tokenizer=first.tokenizer, weight=torch.rand(WORDS))
    router = modules.Router.for_query_document(query_modules=[queries], document_modules=[first, pooling])
    whole = library.SparseEncoder(modules=[router] if damped else [first, pooling], device="cpu")
    whole.save_pretrained(str(tmp_path / "saved"))
    texts = ["w1", "w7 w3 w7", "w1 w2 unknown w30 w9", " ".join(f"w{i % 40}" for i in range(45))]
    ours = SparseModel(str(tmp_path / "saved"), precision="f32")
    ends, terms, weights = ours.rows(texts)
    cuts = ends[1:-1].astype(np.int64)
    documents = list(zip(np.split(terms, cuts), np.split(weights, cuts), strict=True))
    for found, encode in ((documents, whole.encode_document), (ours.queries(texts), whole.encode_query)):
        want = encode(texts, convert_to_tensor=True).to_dense().numpy()
        want[:, : len(small_model.SPECIAL)] = 0
        for (terms, weights), row in zip(found, want, strict=True):
            own = np.zeros(WORDS)
            own[terms] = weights
            assert np.abs(own - row).max() < 1e-5
            assert (row > 0).any()
