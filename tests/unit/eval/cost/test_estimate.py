"""Estimates compared with the builds that they predict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import DocumentError
from ketrag_fast.eval import estimate as cost
from ketrag_fast.eval.estimate import estimate
from ketrag_fast.eval.prices import Price, Prices
from ketrag_fast.eval.sample import _Draw, read_sample
from ketrag_fast.kernels.text import count_tokens
from ketrag_fast.models.extraction.chunk_reader import prompt_options
from ketrag_fast.models.extraction.prompt import build_prompt
from tests import small_model

WORDS = ("river", "bridge", "harbour", "ship", "captain", "winter", "island", "letter", "garden", "engine")


def documents_of(count: int, seed: int = 0) -> list[Document]:
    """Texts of 1 to 40 sentences, so that some are one chunk and some are many."""
    chance = np.random.default_rng(seed)
    found = []
    for number in range(count):
        lines = [
            f"{' '.join(chance.choice(WORDS, 9))} {number} {chance.integers(10**6)}.".capitalize()
            for _ in range(int(chance.integers(1, 41)))
        ]
        found.append(Document(f"d{number}", " ".join(lines), f"Title {number}"))
    return found


def size_of(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def test_a_sample_of_all_documents_equals_the_build(tmp_path: Path) -> None:
    documents = documents_of(40)
    found = estimate(documents)
    with Index.build(documents, tmp_path / "i") as index:
        report = index.report
    assert report is not None
    usage = report.usage
    assert (found.documents, found.characters, found.chunks) == (40, usage.characters, usage.chunks)
    assert found.words == sum(len(document.text.split()) for document in documents)
    assert found.calls == found.tokens_in == found.embedding_tokens == found.usd.total == 0
    assert found.notes == ()
    assert found.disk == pytest.approx(size_of(tmp_path / "i"), rel=0.02)
    assert set(found.stages) == {"read", "store", *(stage.name for stage in report.stages)}
    assert found.seconds == pytest.approx(sum(found.stages.values()))
    assert 0 < found.bytes_per_million_words <= 1e6 / found.words * found.disk
    assert found.seconds_per_million_words > 0


def test_a_part_of_the_documents_is_multiplied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = documents_of(300)
    monkeypatch.setattr("ketrag_fast.eval.sample._DOCUMENTS", 100)
    found = estimate(documents)
    assert (found.documents, found.sampled) == (300, 100)
    with Index.build(documents, tmp_path / "i") as index:
        report = index.report
    assert report is not None
    assert found.characters == report.usage.characters
    assert found.chunks == pytest.approx(report.usage.chunks, rel=0.1)
    # Lists of words grow slower than the text, with ten words most of all.
    assert size_of(tmp_path / "i") <= found.disk <= 1.7 * size_of(tmp_path / "i")
    assert "multiplied from 100 documents" in found.notes[0]


def test_files_that_are_not_read_are_estimated_from_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Formats differ: a text file is all text, of this web page a tenth is."""
    for number in range(40):
        (tmp_path / f"{number}.txt").write_text("The ship sailed south. " * 20, "utf-8")
    for number in range(10):
        page = f"<html><head><style>{'p {color: red} ' * 300}</style></head><body><p>The {number} captains."
        (tmp_path / f"{number}.html").write_text(page, "utf-8")
    whole = read_sample([str(tmp_path)], Settings(), 10**6, frozenset())
    assert (whole.documents, whole.read, len(whole.drawn)) == (50, 50, 50)
    monkeypatch.setattr("ketrag_fast.eval.sample._SECONDS", -1.0)  # one file is read
    first = read_sample([str(tmp_path)], Settings(), 10**6, frozenset())
    assert first.read == 1
    real = _Draw.take

    def until_ten(self: Any, items: Any, kind: str, size: int) -> None:
        monkeypatch.setattr("ketrag_fast.eval.sample._SECONDS", 60.0 if len(self._seen) < 9 else -1.0)
        real(self, items, kind, size)

    monkeypatch.setattr(_Draw, "take", until_ten)
    some = read_sample([str(tmp_path)], Settings(), 10**6, frozenset())
    assert some.read == 10
    assert some.documents == 50
    assert some.characters == pytest.approx(whole.characters, rel=0.02)


def test_every_document_has_the_same_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ketrag_fast.eval.sample._DOCUMENTS", 5)
    documents = [Document(str(n), "text") for n in range(20)]
    drawn = np.zeros(20)
    for seed in range(600):
        for document in read_sample(documents, Settings(seed=seed), 10**6, frozenset()).drawn:
            drawn[int(document.id)] += 1
    assert drawn.sum() == 3000
    assert drawn.min() > 105  # 150 expected, deviation 11
    assert drawn.max() < 195
    one, two = (read_sample(documents, Settings(seed=7), 10**6, frozenset()) for _ in range(2))
    assert one.drawn == two.drawn


def test_a_sample_keeps_within_its_characters_and_counts_failures() -> None:
    documents = [Document("long", "x" * 5000), Document("", "no id"), *documents_of(5)]
    found = read_sample(documents, Settings(), 1000, frozenset())
    assert 0 < sum(len(document.text) for document in found.drawn) <= 1000
    assert (found.documents, found.failures) == (6, 1)
    assert found.characters == 5000 + sum(len(document.text) for document in documents[2:])


def test_tokens_of_an_embedding_model_are_counted(tmp_path: Path) -> None:
    model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    settings = Settings(embedder=f"native:{model}")
    documents = documents_of(40)
    path = tmp_path / "i"
    found = estimate(documents, settings)
    with Index.build(documents, path, settings=settings) as index:
        report = index.report
    assert report is not None
    assert found.embedding_tokens == report.usage.embedding_tokens > 0
    changed = [Document(d.id, d.text, f"{d.title} now") for d in documents[:2]]
    some = estimate([*changed, *documents[2:]], index=path)  # the model is that of the index
    assert 0 < some.embedding_tokens < 0.3 * found.embedding_tokens
    assert any("not sent to a model again" in note for note in some.notes)
    assert estimate(documents, index=path).embedding_tokens == 0


def test_a_model_embeds_a_part_and_the_rest_comes_from_a_larger_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    settings = Settings(embedder=f"native:{model}")
    documents = documents_of(300)
    room = sum(len(document.text) for document in documents) // 12
    monkeypatch.setattr(cost, "_CHARACTERS_EMBEDDED", room)
    found = estimate(documents, settings)
    with Index.build(documents, tmp_path / "i", settings=settings) as index:
        report = index.report
    assert report is not None
    assert found.disk == pytest.approx(size_of(tmp_path / "i"), rel=0.1)
    assert found.chunks == report.usage.chunks
    assert found.embedding_tokens == pytest.approx(report.usage.embedding_tokens, rel=0.1)
    assert {stage.name for stage in report.stages} <= set(found.stages)


def test_nothing_to_estimate(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found = estimate(str(tmp_path / "empty"))
    assert (found.documents, found.chunks, found.words, found.seconds_per_million_words) == (0, 0, 0, 0)
    with pytest.raises(DocumentError):
        estimate(str(tmp_path / "nowhere"))


def test_endpoints_are_not_called_and_their_tokens_are_counted() -> None:
    """The suite's network is closed: a call would raise."""
    documents = [Document(d.id, d.text[:300], d.title) for d in documents_of(30)]
    llm, embedder = "openai:other@https://example.org/v1", "openai:some@https://example.org/v1"
    settings = Settings(embedder=embedder, llm=llm, core_ratio=1.0)
    prices = Prices({"other": Price(1.0, 2.0), "some": Price(embedding=3.0)})
    found = estimate(documents, settings, prices=prices)
    options = prompt_options(settings)
    prompts = [build_prompt(0, document.title, document.text, options) for document in documents]
    sent = int(count_tokens([part for p in prompts for part in (p.instructions, p.text)]).sum())
    assert found.calls == found.chunks == 30
    assert sent < found.tokens_in <= sent + 20 * 30
    assert found.tokens_out > 0
    assert found.embedding_tokens > int(count_tokens([document.text for document in documents]).sum())
    spent = found.tokens_in + 2 * found.tokens_out + 3 * found.embedding_tokens
    assert found.usd.total == pytest.approx(spent / 1e6)
    assert [note.split(" takes")[0].split(", which")[0] for note in found.notes] == [
        f"without the time that {llm}",
        f"without the time and the vectors of {embedder}",
    ]
    assert estimate(documents, settings).usd.total is None
    gleaned = estimate(documents, settings.having(gleanings=1))
    assert gleaned.calls == 60
    assert gleaned.tokens_in > 2 * found.tokens_in
    assert json.loads(json.dumps(gleaned.to_json()))["usd"]["total"] == "unknown"
