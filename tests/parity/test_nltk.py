"""The published tokenisations against golden files made with NLTK itself (tests/golden/make_nltk.py)."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import pytest
from tests.oracles import published as plain
from tests.support.inner_kernels.published import PublishedTokenizer
from tests.support.parts import missing, part

from ketrag_fast.errors import InputError

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "nltk.json").read_text(encoding="ascii"))
CASES = GOLDEN["cases"]


@pytest.fixture(scope="module")
def tokenizer() -> PublishedTokenizer:
    names = ("abbreviations", "collocations", "starters", "contexts")
    return PublishedTokenizer.from_parameters(*(GOLDEN[name] for name in names))


def test_sentences(tokenizer: PublishedTokenizer) -> None:
    wrong = [c["text"] for c in CASES if tokenizer.sentences(c["text"]) != c["sentences"]]
    assert not wrong


def test_words_of_a_text(tokenizer: PublishedTokenizer) -> None:
    wrong = [c["text"] for c in CASES if tokenizer.words(c["text"]) != c["words"]]
    assert not wrong
    wrong = [c["text"] for c in CASES if tokenizer.words(c["text"].lower()) != c["lower"]]
    assert not wrong


def test_profiles(tokenizer: PublishedTokenizer) -> None:
    stop = ["the", "and", "he", "of"]
    texts = [c["text"] for c in CASES]
    got = tokenizer.cooccurrence_words(texts, stop, threads=2)
    lower = {c["text"].lower(): c["lower"] for c in CASES}
    assert got == [plain.cooccurrence_words(t, stop, lower.__getitem__) for t in texts]
    keywords = tokenizer.keyword_sentences(texts, stop, threads=2)
    want = [plain.keyword_sentences(t, stop, tokenizer.sentences, tokenizer.words) for t in texts]
    assert keywords == want
    assert any("The" in s.keywords for unit in keywords for s in unit)


def test_against_nltk_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    nltk = part("nltk", "checks")
    spec = importlib.util.find_spec("llama_index.core")
    if spec is None or spec.origin is None:
        missing("llama-index-core, which carries NLTK's data, is not installed (group `checks`)")
    # A copy of punkt_tab comes with this package; nothing is downloaded.
    monkeypatch.setattr(nltk.data, "path", [str(Path(spec.origin).parent / "_static" / "nltk_cache")])
    folder = nltk.data.find("tokenizers/punkt_tab/english/")
    tokenizer = PublishedTokenizer.from_folder(os.fspath(folder))
    for case in CASES:
        assert tokenizer.sentences(case["text"]) == nltk.sent_tokenize(case["text"])


def test_a_folder_without_the_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"abbrev_types\.txt"):
        PublishedTokenizer.from_folder(tmp_path)
    with pytest.raises(InputError, match="collocations, line 1"):
        PublishedTokenizer.from_parameters(collocations=[("one",)])
