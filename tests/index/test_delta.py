"""A change of a large index is published as a delta; every answer is that of a build from scratch."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.building import delta
from ketrag_fast.models.embedders.fingerprint import SAMPLE
from tests.small_model import config, save
from tests.support.endpoint import Endpoint, words_encoder
from tests.support.histories import SETTINGS, History


@pytest.mark.parametrize("seed", range(4))
def test_every_step_of_a_history_is_a_build(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "LEAST", 0)
    monkeypatch.setattr(delta, "RECENT", (1, 4, 9, delta.RECENT)[seed])  # one or two levels of changes
    history = History(random.Random(seed), tmp_path / "index", dated=seed % 2 == 1)
    with history.start() as index:
        for step in history.changes(index, 8):
            history.check(index, tmp_path / f"fresh{step}")
            shutil.rmtree(tmp_path / f"fresh{step}")
        assert history.deltas >= 6
        index.update(fold=True)
        with Index.build(history.documents, tmp_path / "whole", settings=SETTINGS) as whole:
            assert index.digest == whole.digest


@pytest.mark.parametrize(
    ("vector_format", "pooled"), [("4bit", True), ("4bit", False), ("int8", True), ("f32", True)]
)
@pytest.mark.usefixtures("loopback")
def test_every_step_of_a_history_with_a_model_is_a_build(
    vector_format: str, pooled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "LEAST", 0)
    monkeypatch.setattr(delta, "RECENT", 5)
    with Endpoint(words_encoder(21)) as server:
        spec = f"native:{save(tmp_path / 'model', config())}" if pooled else f"openai:mini@{server.url}"
        settings = SETTINGS.having(
            embedder=spec, modes="bm25,text,fused,walk", vector_format=vector_format, precision="fp32"
        )
        history = History(random.Random(5), tmp_path / "index", dated=False, settings=settings)
        with history.start() as index:
            before = len(server.texts)
            for step in history.changes(index, 6):
                history.check(index, tmp_path / f"fresh{step}")
                shutil.rmtree(tmp_path / f"fresh{step}")
            assert history.deltas >= 5
            assert pooled or len(server.texts) > before
            index.update(fold=True)
            with Index.build(history.documents, tmp_path / "whole", settings=settings) as whole:
                assert index.digest == whole.digest


@pytest.mark.usefixtures("loopback")
def test_a_change_with_a_model_encodes_what_is_new_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "LEAST", 0)
    with Endpoint(words_encoder()) as server:
        settings = SETTINGS.having(embedder=f"openai:mini@{server.url}", modes="bm25,text,fused,walk")
        documents = [Document(f"d{n}", f"The ship {n} sailed in 19{n:02}.", "") for n in range(30)]
        with Index.build(documents, tmp_path / "index", settings=settings) as index:
            before = len(server.texts)
            report = index.update(add=[Document("new", "Amundsen bought a kettle.", "Oslo")], remove=["d3"])
            assert [stage.name for stage in report.stages] == ["delta"]
            new = set(server.texts[before:])
            assert {"Oslo\nAmundsen bought a kettle.", "Amundsen bought a kettle."} <= new
            assert not any("sailed in 19" in text for text in new)
            assert report.usage is not None and report.usage.embedding_texts == 2 + len(SAMPLE)
            found = index.retrieve("Amundsen bought a kettle.", mode="text").passages
            assert found[0].document == "new"
            before = len(server.texts)
            index.update(remove=["d4"])
            index.update(fold=True)
            assert len(server.texts) == before
