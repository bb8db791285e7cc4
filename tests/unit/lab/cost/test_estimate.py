"""Estimates held against the builds that they speak of, without a model and with vectors brought along."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import DocumentError, IndexLocked
from ketrag_fast.kernels.text import sentence_spans
from ketrag_fast.lab.cost.disk import folder_size
from ketrag_fast.lab.cost.growth import bytes_at, chunks_at, seconds_at
from ketrag_fast.lab.cost.history import compare_estimate, last_estimate, past, save_estimate
from ketrag_fast.lab.cost.predicting import Wish, predict
from ketrag_fast.lab.cost.survey import survey
from ketrag_fast.models.embedders.precomputed import write_vectors
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import builder_lock
from ketrag_fast.types import Failure

WORDS = ("river", "bridge", "harbour", "ship", "captain", "winter", "island", "letter", "garden", "engine")


def _documents(count: int, seed: int = 0) -> list[Document]:
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


def _within(said: float, real: float, percent: float) -> bool:
    return abs(said - real) <= percent / 100 * real


def test_a_whole_sample_is_counted_and_equals_the_build(tmp_path: Path) -> None:
    documents = _documents(40)
    estimate = predict(documents, Settings(core_ratio=0.5), Wish())
    with Index.build(documents, tmp_path / "i", settings=Settings(core_ratio=0.5)) as index:
        report = index.report
    assert report is not None
    assert estimate.basis["chunks"] == "counted"
    assert (estimate.chunks, estimate.core_chunks) == (report.usage.chunks, report.usage.core_chunks)
    assert estimate.calls == estimate.tokens_in == estimate.embedding_tokens == 0
    assert estimate.bill.total == 0
    assert estimate.seconds is not None
    assert estimate.seconds > 0


def test_a_sample_tells_the_size_of_the_rest(tmp_path: Path) -> None:
    documents = _documents(300)
    estimate = predict(documents, Settings(), Wish(sample=100))
    assert estimate.sampled == 100
    assert estimate.basis["chunks"] == "from the sample"
    with Index.build(documents, tmp_path / "i") as index:
        report = index.report
    assert report is not None
    assert _within(estimate.chunks, report.usage.chunks, 5)
    # The tables of a small sample have more empty pages than those of all documents.
    assert _within(estimate.disk, folder_size(tmp_path / "i"), 40)
    assert estimate.characters == report.usage.characters


def test_the_same_sample_is_drawn_again() -> None:
    documents = _documents(100)
    one, two = (survey(documents, 20, 10**6, 7).sample for _ in range(2))
    assert one == two
    assert len({document.id for document in one}) == 20
    assert survey(documents, 20, 10**6, 8).sample != one


def test_a_sample_keeps_within_its_characters_and_counts_what_fails() -> None:
    long = [Document("long", "x" * 5000), Failure("bad", "document", "broken"), *_documents(5)]
    found = survey(long, 10, 1000, 1)
    assert sum(len(document.text) for document in found.sample) <= 1000
    assert (found.documents, found.failures) == (6, 1)
    assert not found.whole
    assert found.scale > 5


def test_every_document_has_the_same_chance() -> None:
    documents = [Document(str(n), "text") for n in range(20)]
    drawn = np.zeros(20)
    for seed in range(2000):
        for document in survey(documents, 5, 10**6, seed).sample:
            drawn[int(document.id)] += 1
    assert drawn.min() > 400  # 500 expected, deviation 19
    assert drawn.max() < 600


def _brought(folder: Path, documents: list[Document]) -> str:
    """An embedder of ready vectors for every text that the builds of these documents ask for."""
    texts: set[str] = set()
    for document in documents:
        texts |= {f"{document.title}\n{document.text}", document.title}
        texts |= {document.text[a:b] for a, b in sentence_spans(document.text).tolist()}
    ordered = sorted(texts)
    vectors = np.random.default_rng(3).standard_normal((len(ordered), 8)).astype(np.float32)
    write_vectors(folder, ordered, vectors)
    return f"vectors:{folder}"


def test_tokens_of_a_model_are_told_and_then_known(tmp_path: Path) -> None:
    documents = [Document(d.id, d.text[:600].rsplit(".", 1)[0] + ".", d.title) for d in _documents(300)]
    settings = Settings(embedder=_brought(tmp_path / "v", documents), chunk_tokens=2000)
    path = tmp_path / "i"
    estimate = predict(documents, settings, Wish(sample=90, index=path))
    with Index.build(documents, path, settings=settings) as index:
        report = index.report
    assert report is not None
    real = report.usage.embedding_tokens
    assert real > 0
    assert _within(estimate.embedding_tokens, real, 15)
    others = [Document(f"other {d.id}", d.text, d.title) for d in documents]
    again = predict(others, settings, Wish(sample=90, index=path))
    assert again.basis["seconds"] == "from the last build"
    assert again.embedding_tokens == real
    assert again.seconds == pytest.approx(report.seconds, rel=0.01)


def test_what_the_index_holds_is_not_counted_again(tmp_path: Path) -> None:
    documents = [Document(d.id, d.text[:600].rsplit(".", 1)[0] + ".", d.title) for d in _documents(300)]
    settings = Settings(embedder=_brought(tmp_path / "v", documents), chunk_tokens=2000)
    path = tmp_path / "i"
    Index.build(documents[::2], path, settings=settings).close()
    changed = [Document(d.id, d.text, f"{d.title} now") for d in documents[:2]]
    some = predict([*changed, *documents[2:]], settings, Wish(sample=90, index=path))
    assert any("149 of 300 documents are in the index already" in note for note in some.notes)
    with Index.build(documents, path, settings=settings) as index:
        report = index.report
    assert report is not None
    assert _within(some.embedding_tokens, report.usage.embedding_tokens, 15)
    nothing = predict(documents, settings, Wish(sample=90, index=path))
    assert nothing.embedding_tokens == 0
    assert nothing.chunks == report.usage.chunks


def test_an_index_remembers_whole_builds_of_the_same_kind_alone(tmp_path: Path) -> None:
    path = tmp_path / "i"
    Index.build(_documents(20), path).close()
    with Index.open(path) as index:
        stored = index.stats()["settings"]
    first = past(path, stored)
    assert first is not None
    Index.build(_documents(21), path).close()  # all its stages ran again
    second = past(path, stored)
    assert second is not None
    assert second.usage.documents == 21
    Index.build([], path, settings=Settings(core_ratio=0.1)).close()  # most stages were kept
    third = past(path, stored)
    assert third is not None
    assert (third.usage, third.stages) == (second.usage, second.stages)
    assert past(path, {**stored, "chunk_tokens": 50}) is None
    assert past(tmp_path / "none", stored) is None


def test_an_estimate_is_kept_and_held_against_its_build_alone(tmp_path: Path) -> None:
    documents = _documents(20)
    path = tmp_path / "i"
    estimate = predict(documents, Settings(), Wish()).to_json()
    assert save_estimate(path, estimate, create=False) is False
    assert save_estimate(path, estimate, create=True) is True
    assert last_estimate(path) == json.loads(json.dumps(estimate))
    with Index.build(documents, path) as index:
        report = index.report
    assert report is not None
    rows = {row["name"]: row for row in compare_estimate(path, report)}
    assert rows["chunks"]["off_percent"] == 0
    assert rows["seconds"]["actual"] == report.seconds
    with Index.build(documents[:5], path, replace=True) as index:
        other = index.report
    assert other is not None
    assert compare_estimate(path, other) == []  # of other documents


def test_an_estimate_waits_for_no_builder(tmp_path: Path) -> None:
    path = tmp_path / "i"
    Index.build(_documents(3), path).close()
    with builder_lock(Layout(path)), pytest.raises(IndexLocked):
        save_estimate(path, {}, create=False)


def test_nothing_to_estimate(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    estimate = predict(str(tmp_path / "empty"), Settings(), Wish())
    assert (estimate.documents, estimate.chunks, estimate.core_chunks) == (0, 0, 0)
    with pytest.raises(DocumentError):
        predict(str(tmp_path / "nowhere"), Settings(), Wish())


def test_an_endpoint_is_not_asked_and_that_is_said(tmp_path: Path) -> None:
    """The suite's network is closed: a call would raise."""
    settings = Settings(
        embedder="openai:some@https://example.org/v1", llm="openai:other@https://example.org/v1"
    )
    estimate = predict(_documents(30), settings, Wish())
    assert estimate.seconds is None
    assert estimate.bill.total is None
    assert estimate.calls == estimate.core_chunks
    assert estimate.tokens_in > 300 * estimate.calls
    assert estimate.tokens_out > 0
    assert estimate.embedding_tokens > 0
    assert len(estimate.notes) == 2


def test_growth() -> None:
    sizes = [100, 300]
    assert seconds_at(300, sizes, [{"a": 1.0}, {"a": 2.0}], {}) == {"a": 2.0}
    assert seconds_at(900, sizes, [{"a": 1.0}, {"a": 2.0}], {})["a"] == pytest.approx(5.0)
    # noise: the larger sample was not slower, yet more text is never free
    assert seconds_at(900, sizes, [{"a": 2.0}, {"a": 2.0}], {})["a"] == pytest.approx(4.0)
    assert seconds_at(3000, sizes, [{"knn": 0.1}, {"knn": 1.0}], {"knn": 1.7})["knn"] == pytest.approx(
        10**1.7
    )
    assert bytes_at(900, sizes, [{"a": 100}, {"a": 300}]) == {"a": 900}
    assert bytes_at(900, sizes, [{"a": 100}, {"a": 173}])["a"] == pytest.approx(300, rel=0.02)
    lengths = np.array([50, 60, 70, 80, 90, 100, 110, 120])
    assert chunks_at(1000, 10**5, lengths, np.ones(8, np.int64)) == 1000
    assert chunks_at(10, 10**6, lengths * 100, lengths // 10) == pytest.approx(10**6 / 1000, rel=0.05)
    assert chunks_at(0, 0, lengths, np.ones(8, np.int64)) == 0
