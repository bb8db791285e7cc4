"""`ketrag reembed`: a second set of vectors beside the first, and a switch that nobody sees half of."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import BackendError, Cancelled, IndexMissing, ModelMismatch
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.types import Document
from tests.process import command, python
from tests.support.changed import reembed
from tests.support.endpoint import Endpoint, words_encoder

DOCUMENTS = [
    Document(f"d{n}", f"The {word} stands by the river {n}. Nobody asks the {word} why.", word.title())
    for n, word in enumerate(("mill", "bridge", "tower", "harbour", "chapel", "forge"))
]
VECTORS = {"vectors", "unit_search", "sentence_vectors", "title_vectors", "keywords", "keyword_search"}

pytestmark = pytest.mark.usefixtures("loopback")

MODES = "auto,text,fused,keyword"


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with Endpoint(words_encoder()) as running:
        yield running


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """With the built-in vectors."""
    Index.build(DOCUMENTS, tmp_path / "i", settings=Settings(modes=MODES)).close()
    return tmp_path / "i"


def spec(server: Endpoint, model: str = "mini") -> str:
    return f"openai:{model}@{server.url}"


def embedded(server: Endpoint, since: int = 0) -> set[str]:
    """The index's own texts that the server was given: not those by which a model is tried."""
    return {text for text in server.texts[since:] if "stands by" in text or "Nobody" in text}


def how(opened: Index) -> dict[str, str]:
    assert opened.report is not None
    return {stage.name: stage.how for stage in opened.report.stages}


def test_only_what_knows_vectors_is_made_anew_and_equals_a_fresh_build(
    server: Endpoint, index: Path, tmp_path: Path
) -> None:
    with Index.open(index) as reader:
        before = reader.retrieve("Where is the mill?", mode="text").text
        with reembed(index, spec(server)) as opened:
            assert {name for name, done in how(opened).items() if done == "ran"} == VECTORS
            assert opened.stats()["backends"]["dimension"] == 16
            digest, text = opened.digest, opened.retrieve("Where is the mill?", mode="text").text
        assert reader.generation == 1 and reader.retrieve("Where is the mill?", mode="text").text == before
    settings = Settings(embedder=spec(server), modes=MODES)
    fresh = Index.build(DOCUMENTS, tmp_path / "fresh", settings=settings)
    assert fresh.digest == digest and fresh.retrieve("Where is the mill?", mode="text").text == text
    fresh.close()


def test_a_reader_takes_the_new_vectors_up(server: Endpoint, index: Path) -> None:
    with Index.open(index) as reader:
        reembed(index, spec(server)).close()
        assert reader.refresh() and reader.stats()["backends"]["embedder"] == spec(server)
        assert reader.retrieve("mill", mode="text").passages


def test_sources_that_are_gone_do_not_matter(server: Endpoint, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A mill stands here.")
    Index.build(tmp_path / "a.txt", tmp_path / "i").close()
    (tmp_path / "a.txt").unlink()
    with reembed(tmp_path / "i", spec(server)) as opened:
        assert opened.stats()["counts"]["documents"] == 1


def test_the_same_model_again_does_nothing_and_the_way_back_is_open(server: Endpoint, index: Path) -> None:
    first = Index.open(index).digest
    reembed(index, spec(server)).close()
    asked = len(server.texts)
    again = reembed(index, spec(server))
    assert again.report is not None and not again.report.changed
    assert not embedded(server, asked)
    back = reembed(index, "builtin")
    assert back.digest == first and back.generation == 3


def test_settings_of_the_index_stay(server: Endpoint, tmp_path: Path) -> None:
    Index.build(DOCUMENTS, tmp_path / "i", settings=Settings(chunk_tokens=12, knn_k=3)).close()
    asked = Settings(embedder=spec(server), threads=1)
    with reembed(tmp_path / "i", settings=asked) as opened:
        kept = opened.stats()["settings"]
        assert (kept["chunk_tokens"], kept["knn_k"], kept["embedder"]) == (12, 3, spec(server))


def test_stopped_midway_the_old_serves_and_nothing_is_embedded_twice(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ketrag_fast.models.embedders import cache, protocol

    small: Callable[..., Any] = lambda texts: protocol.windows_of(texts, most=2)  # noqa: E731
    monkeypatch.setattr(cache, "windows_of", small)
    encode, left = words_encoder(), [3]

    def failing(texts: Any) -> Any:
        left[0] -= any("stands by" in text for text in texts)
        return encode(texts) if left[0] >= 0 else np.zeros((0, 16))

    with Endpoint(failing) as server:
        with pytest.raises(BackendError):
            reembed(index, spec(server))
        with Index.open(index) as old:
            assert old.generation == 1 and old.retrieve("mill", mode="text").passages
        before = {text for text in server.texts[:-2] if "stands by" in text}
        assert before
        left[0], count = 1000, len(server.texts)
        with reembed(index, spec(server)) as opened:
            assert opened.generation == 2
        assert embedded(server, count) and not before & embedded(server, count)


def test_killed_the_old_serves_and_the_next_call_goes_on(server: Endpoint, index: Path) -> None:
    code = (
        "import os, sys\nfrom ketrag_fast import Index\n"
        "die = lambda event: os._exit(9) if event.stage == 'keywords' else None\n"
        "with Index.open(sys.argv[1]) as index:\n"
        "    index.reembed(sys.argv[2], progress=die)\n"
    )
    assert python(code, str(index), spec(server), cwd=index.parent).code == 9
    with Index.open(index) as old:
        assert old.generation == 1 and old.retrieve("mill", mode="text").passages
    asked = len(server.texts)
    with reembed(index, spec(server)) as opened:
        assert opened.generation == 2
        assert how(opened)["vectors"] == "resumed" and not embedded(server, asked)


def test_a_model_that_changed_behind_its_name_is_taken_at_its_new_word(tmp_path: Path) -> None:
    with Endpoint(words_encoder()) as server:
        Index.build(DOCUMENTS, tmp_path / "i", settings=Settings(embedder=spec(server), modes=MODES)).close()
    old = StoredVectors.of(open_current(Layout(tmp_path / "i")).stages["vectors"]).decode()
    for encode in (lambda texts: -words_encoder()(texts), words_encoder(24)):  # other values, another size
        with Endpoint(encode) as liar:
            asked = Settings(embedder=spec(liar))
            with Index.open(tmp_path / "i", settings=asked) as refused:
                with pytest.raises(ModelMismatch, match="its vectors differ") as caught:
                    refused.retrieve("mill", mode="text")
                assert "ketrag reembed" in str(caught.value.hint)
            with reembed(tmp_path / "i", settings=asked) as opened:
                assert {name for name, done in how(opened).items() if done == "ran"} == VECTORS
                assert opened.retrieve("mill", mode="text").passages
            new = StoredVectors.of(open_current(Layout(tmp_path / "i")).stages["vectors"]).decode()
            assert new.shape != old.shape or np.allclose(new, -old, atol=1e-6)
            asked_before = len(liar.texts)
            reembed(tmp_path / "i", settings=asked).close()
            assert not embedded(liar, asked_before)


def test_there_must_be_a_finished_index(tmp_path: Path, server: Endpoint) -> None:
    with pytest.raises(IndexMissing):
        reembed(tmp_path / "none", spec(server))
    assert not (tmp_path / "none").exists()
    with pytest.raises(Cancelled):
        Index.build(DOCUMENTS, tmp_path / "half", progress=lambda event: event.stage == "read")
    with pytest.raises(IndexMissing, match="never finished"):
        reembed(tmp_path / "half", spec(server))


def test_the_command(server: Endpoint, index: Path) -> None:
    refused = command("index", "-i", str(index), "--embedder", spec(server), cwd=index.parent)
    assert refused.code == 4 and f"ketrag reembed -i {index} --embedder" in refused.err
    done = command("reembed", "-i", str(index), "--embedder", spec(server), "--json", cwd=index.parent)
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert (report["generation"], report["changed"], report["documents"]["total"]) == (2, True, 6)
    again = command("reembed", "-i", str(index), cwd=index.parent)
    assert again.code == 0 and "nothing was done" in again.out
    with sqlite3.connect(index / "index.sqlite") as db:
        value = db.execute("SELECT value FROM settings WHERE name = 'embedder'").fetchone()[0]
    assert json.loads(value) == spec(server)
