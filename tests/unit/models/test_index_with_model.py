"""An index built with a model: a server on loopback stands for it, so that no extra is needed."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import BackendError, DeadlineExceeded, ModelMismatch
from ketrag_fast.models.embedders.fingerprint import SAMPLE
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.types import Document
from tests.support.endpoint import Endpoint, words_encoder
from tests.support.vector_files import write_vectors

DOCUMENTS = [
    Document(
        "bridge", "The bridge crosses the Mira. Anton Heller built it. It has nine arches.", "Old bridge"
    ),
    Document("heller", "Heller was born in Kronstadt. He died there as a poor man.", "Anton Heller"),
    Document("bread", "Rye bread keeps for a week. Bakers add salt.", ""),
    Document("empty", "", ""),
]

QUESTIONS = ("Who built the bridge?", "Which bridge has arches?")

pytestmark = pytest.mark.usefixtures("loopback")


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with Endpoint(words_encoder()) as running:
        yield running


def settings(server: Endpoint, model: str = "mini", **more: Any) -> Settings:
    return Settings(embedder=f"openai:{model}@{server.url}", offline=True, **more)


def unit(texts: list[str]) -> np.ndarray:
    vectors = words_encoder()(texts)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(("vector_format", "near"), [("4bit", 0.08), ("int8", 0.005), ("f32", 1e-6)])
def test_titles_precede_units_and_sentences_stand_alone(
    server: Endpoint, tmp_path: Path, vector_format: str, near: float
) -> None:
    given = settings(server, vector_format=vector_format, modes="auto,keyword")
    Index.build(DOCUMENTS, tmp_path / "i", settings=given).close()
    stages = open_current(Layout(tmp_path / "i")).stages
    vectors, sentence_vectors = StoredVectors.of(stages["vectors"]), stages["sentence_vectors"]
    wanted = [f"{d.title}\n{d.text}" if d.title else d.text for d in DOCUMENTS if d.text]
    assert (vectors.format, vectors.dimension) == (vector_format, 16)
    assert np.allclose(vectors.decode(), unit(wanted), atol=near)
    assert np.allclose(np.linalg.norm(vectors.decode(), axis=1), 1, atol=max(near / 2, 1e-6))
    sentences = ["The bridge crosses the Mira.", "Anton Heller built it.", "It has nine arches."]
    signs = np.packbits(unit(sentences) > 0, axis=1, bitorder="little")
    assert np.array_equal(sentence_vectors["signs"][:3], signs)
    titles = np.packbits(unit(["Old bridge", "Anton Heller"]) > 0, axis=1, bitorder="little")
    assert np.array_equal(stages["title_vectors"]["signs"], titles)


@pytest.mark.parametrize("mode", ["text", "fused", "knn", "keyword", "walk", "auto", "bm25"])
def test_every_mode_answers(server: Endpoint, tmp_path: Path, mode: str) -> None:
    with Index.build(DOCUMENTS, tmp_path / "i", settings=settings(server, modes=mode)) as index:
        context = index.retrieve("The bridge crosses the Mira", mode=mode, budget=200)
        assert context.passages[0].document == "bridge"
        assert not context.warnings or context.nothing_fits  # the vectors of this endpoint mean nothing
        many = index.retrieve_many(["The bridge crosses the Mira", "Rye bread"], mode=mode, budget=200)
        assert many[0].text == context.text and many[1].passages[0].document == "bread"


def test_a_second_build_with_another_graph_embeds_nothing_and_one_more_document_only_itself(
    server: Endpoint, tmp_path: Path
) -> None:
    Index.build(DOCUMENTS, tmp_path / "i", settings=settings(server)).close()
    before = len(server.texts)
    Index.build(DOCUMENTS, tmp_path / "i", settings=settings(server, knn_k=3)).close()
    assert len(server.texts) == before
    more = [*DOCUMENTS, Document("new", "A new sentence.", "")]
    Index.build(more, tmp_path / "i", settings=settings(server), replace=True).close()
    assert "A new sentence." in server.texts[before:]
    assert not any("Heller" in text or "bread" in text for text in server.texts[before:])


def test_other_units_do_not_embed_the_same_sentences_again(server: Endpoint, tmp_path: Path) -> None:
    Index.build(DOCUMENTS, tmp_path / "i", settings=settings(server)).close()
    before = len(server.texts)
    Index.build(DOCUMENTS, tmp_path / "i", settings=settings(server, chunk_tokens=12), rebuild=True).close()
    new = server.texts[before:]
    assert "Old bridge\nIt has nine arches." in new
    assert not {"It has nine arches.", "Anton Heller built it.", "Anton Heller"}.intersection(new)


def test_the_digest_depends_on_the_vectors_alone(server: Endpoint, tmp_path: Path) -> None:
    one = Index.build(DOCUMENTS, tmp_path / "a", settings=settings(server, threads=1)).digest
    with Endpoint(words_encoder()) as elsewhere:
        assert Index.build(DOCUMENTS, tmp_path / "b", settings=settings(elsewhere, threads=2)).digest == one


def test_questions_asked_lately_are_not_embedded_again(server: Endpoint, tmp_path: Path) -> None:
    with Index.build(DOCUMENTS, tmp_path / "i", settings=settings(server)) as index:
        index.retrieve_many(["one bridge", "two bridges"], mode="text")
        before = len(server.texts)
        index.retrieve_many(["two bridges", "three bridges", "three bridges"], mode="text")
        assert server.texts[before:] == ["three bridges"]
        assert index.retrieve("one bridge", mode="bm25").timings_ms["embed"] == 0.0


def test_a_moved_model_opens_and_continues_an_index_and_another_one_is_refused(
    server: Endpoint, tmp_path: Path
) -> None:
    Index.build(DOCUMENTS, tmp_path / "i", settings=settings(server)).close()
    with Endpoint(words_encoder()) as moved:
        with Index.open(tmp_path / "i", settings=settings(moved)) as index:
            assert index.retrieve("bridge", mode="text").passages
        before = len(moved.texts)
        report = Index.build(DOCUMENTS, tmp_path / "i", settings=settings(moved)).report
        assert report is not None and all(stage.how == "reused" for stage in report.stages)
        assert len(moved.texts) == before
    for other in (settings(server, "other"), Settings(embedder="builtin")):
        with pytest.raises(ModelMismatch, match="was built with"):
            Index.open(tmp_path / "i", settings=other)
        with pytest.raises(ModelMismatch, match="was built with"):
            Index.build(DOCUMENTS, tmp_path / "i", settings=other)
    Index.build(DOCUMENTS, tmp_path / "b").close()
    with pytest.raises(ModelMismatch, match="builtin"):
        Index.open(tmp_path / "b", settings=settings(server))


def test_a_model_that_changed_behind_its_name_is_refused(tmp_path: Path) -> None:
    with Endpoint(words_encoder()) as server:
        Index.build(DOCUMENTS, tmp_path / "i", settings=settings(server)).close()
    with Endpoint(lambda texts: -words_encoder()(texts)) as liar:
        index = Index.open(tmp_path / "i", settings=settings(liar))
        with pytest.raises(ModelMismatch, match="its vectors differ"):
            index.retrieve("bridge", mode="text")
        index.close()
        more = [*DOCUMENTS, Document("new", "A new sentence.", "")]
        with pytest.raises(ModelMismatch, match="its vectors differ"):
            Index.build(more, tmp_path / "i", settings=settings(liar))


def test_a_model_that_is_gone_is_done_without_in_auto_alone(tmp_path: Path) -> None:
    with Endpoint(words_encoder()) as server:
        Index.build(DOCUMENTS, tmp_path / "i", settings=settings(server, modes="auto,keyword")).close()
    with Index.open(tmp_path / "i") as index:
        context = index.retrieve("Who built the bridge?")
        assert context.mode == "walk" and context.passages
        assert "without vectors" in context.warnings[0]
        assert index.retrieve("bridge", mode="bm25").passages
        for mode in ("text", "walk", "keyword"):
            with pytest.raises(BackendError, match="failed 3 times"):
                index.retrieve("bridge", mode=mode)


def test_brought_vectors(tmp_path: Path) -> None:
    texts = [
        *(f"{d.title}\n{d.text}" if d.title else d.text for d in DOCUMENTS if d.text),
        *(sentence.strip() + "." for d in DOCUMENTS for sentence in d.text.split(".") if sentence.strip()),
        "Old bridge",
        "Anton Heller",
        "Who built the bridge?",
    ]
    write_vectors(tmp_path / "v", texts, unit(texts).astype(np.float32))
    with Index.build(
        DOCUMENTS, tmp_path / "i", settings=Settings(embedder=f"vectors:{tmp_path / 'v'}")
    ) as index:
        assert index.retrieve("Who built the bridge?", mode="text").passages[0].document == "bridge"
        with pytest.raises(BackendError, match="no query vector"):
            index.retrieve("Something else?", mode="text")


def test_equal_vectors_and_units_without_sentences_are_ranked_all_the_same(tmp_path: Path) -> None:
    documents = [*DOCUMENTS, Document("rule", "---", ""), Document("title", "", "A title alone")]
    texts = [*(d.text for d in documents), "A title alone", "Old bridge", "Anton Heller", *QUESTIONS]
    texts += [f"{d.title}\n{d.text}" for d in documents]
    texts += [part.strip() + "." for d in documents for part in d.text.split(".") if part.strip()]
    texts = [text for text in dict.fromkeys([*texts, *SAMPLE]) if text.strip()]
    write_vectors(tmp_path / "v", texts, np.full((len(texts), 9), 1 / 3, np.float32))  # not divided by 8
    with Index.build(
        documents, tmp_path / "i", settings=Settings(embedder=f"vectors:{tmp_path / 'v'}")
    ) as index:
        for mode in ("text", "walk", "fused"):
            found = index.retrieve(QUESTIONS[0], mode=mode, budget=400)
            assert found.passages and np.isfinite([one.score for one in found.passages]).all()
        assert index.retrieve(QUESTIONS[1], mode="walk").passages[0].document == "bridge"


def test_a_finer_format_encodes_again_and_a_coarser_one_does_not(server: Endpoint, tmp_path: Path) -> None:
    digests = {}
    for name in ("f32", "int8", "4bit", "int8"):
        before = len(server.texts)
        given = settings(server, vector_format=name)
        with Index.build(DOCUMENTS, tmp_path / "i", settings=given) as index:
            assert index.report is not None and index.report.changed
            digests.setdefault(name, index.digest)
        asked = [text for text in server.texts[before:] if "bread" in text]
        coarser = (name, len(digests)) in (("int8", 2), ("4bit", 3))
        assert asked == [] if coarser else asked
    # From f32 nothing is lost: the codes are those of a build in this format.
    Index.build(DOCUMENTS, tmp_path / "f", settings=settings(server, vector_format="f32")).close()
    given = settings(server, vector_format="4bit")
    with (
        Index.build(DOCUMENTS, tmp_path / "f", settings=given) as packed,
        Index.build(DOCUMENTS, tmp_path / "g", settings=settings(server)) as fresh,
    ):
        assert packed.digest == fresh.digest


def test_a_published_index_keeps_no_second_copy_of_its_vectors(server: Endpoint, tmp_path: Path) -> None:
    Index.build(DOCUMENTS, tmp_path / "i", settings=settings(server)).close()
    with closing(sqlite3.connect(tmp_path / "i" / "index.sqlite")) as db:
        kept = int(db.execute("SELECT count(*) FROM vectors").fetchone()[0])
    assert kept == len(SAMPLE)  # by which the model is recognised
    assert not list((tmp_path / "i" / "work").iterdir())


def test_the_manifest_names_model_engine_and_precision(server: Endpoint, tmp_path: Path) -> None:
    Index.build(DOCUMENTS, tmp_path / "i", settings=settings(server)).close()
    folder = Layout(tmp_path / "i").generation(1)
    kept = json.loads((folder / "manifest.json").read_text())["models"]["embedder"]
    assert kept["dimension"] == 16 and kept["engine"]["name"] == "openai"
    assert len(kept["fingerprint"]) == 32 and len(kept["sample"]) == 10


def test_a_keyword_is_the_mean_of_the_sentences_that_hold_it(server: Endpoint, tmp_path: Path) -> None:
    """By hand, with sentences of several chunks: titles count once in their document."""
    own = settings(server, chunk_tokens=12, modes="keyword")
    Index.build(DOCUMENTS, tmp_path / "i", settings=own).close()
    stages = open_current(Layout(tmp_path / "i")).stages
    words = stages["words"]
    blob, offsets = words["vocabulary_blob"], words["vocabulary_offsets"].tolist()
    names = [blob[a:b].tobytes().decode() for a, b in pairwise(offsets)]
    means = stages["keywords"]["vectors"]
    wanted = {
        "heller": ["Anton Heller built it.", "Anton Heller", "Heller was born in Kronstadt."],
        "bridge": ["The bridge crosses the Mira.", "Old bridge"],
        "rye": ["Rye bread keeps for a week."],
    }
    for word, sentences in wanted.items():
        signs = np.where(unit(sentences) > 0, 0.25, -0.25)  # of 16 values
        assert np.allclose(means[names.index(word)], signs.mean(0), atol=1e-6), word


def test_a_refresh_keeps_the_model_that_is_loaded(server: Endpoint, tmp_path: Path) -> None:
    with Index.build(DOCUMENTS, tmp_path / "i", settings=settings(server)) as index:
        assert index.retrieve("The bridge crosses the Mira", mode="text").passages
        model = index._opened.questions
        more = [*DOCUMENTS, Document("new", "A new sentence.", "")]
        Index.build(more, tmp_path / "i", settings=settings(server), replace=True).close()
        before = len(server.texts)
        assert index.refresh()
        assert index._opened.questions is model is not None
        assert index.retrieve("The bridge crosses the Mira", mode="text").passages
        assert len(server.texts) == before  # what it remembers it still knows


def test_a_deadline_counts_the_embedding_of_the_question(tmp_path: Path) -> None:
    released = threading.Event()

    def slow(texts: Sequence[str]) -> np.ndarray:
        if any("slowly" in text for text in texts):
            released.wait(20)
        return words_encoder()(texts)

    with (
        Endpoint(slow) as server,
        Index.build(DOCUMENTS, tmp_path / "i", settings=settings(server)) as index,
    ):
        try:
            with pytest.raises(DeadlineExceeded):
                index.retrieve("How slowly does the bridge cross?", mode="text", deadline=0.3)
            assert not released.is_set()  # it did not wait for the server's answer
        finally:
            released.set()
