"""The settings that an index was built with, when it is opened with others."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast.base.config import Settings
from ketrag_fast.building.runner import build
from ketrag_fast.errors import ConfigError, ModelMismatch
from ketrag_fast.storage import read_only as reading
from ketrag_fast.storage.generation import Generation, open_current
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.index_settings import reading_settings, stored_settings
from ketrag_fast.types import Document
from tests.unit.building.small_stages import STAGES

DOCUMENTS = [Document("a", "some words"), Document("a", "again")]


@pytest.fixture
def opened(tmp_path: Path) -> Generation:
    build(tmp_path, DOCUMENTS, STAGES, Settings(system="ket-rag", knn_k=0))
    return open_current(Layout(tmp_path))


def test_reading_takes_the_build_from_the_index_and_the_rest_as_given(opened: Generation) -> None:
    found = reading_settings(Settings(budget=0, threads=1), opened)
    assert (found.chunk_tokens, found.knn_k, found.mode) == (1200, 0, "ket")
    assert (found.budget, found.threads) == (0, 1)
    assert reading_settings(Settings(mode="bm25", knn_k=0), opened).mode == "bm25"


def test_another_model_or_unit_is_refused(opened: Generation) -> None:
    with pytest.raises(ModelMismatch, match="'builtin', not 'native:x'"):
        reading_settings(Settings(embedder="native:x"), opened)
    with pytest.raises(ConfigError, match=r"embedder must be one of builtin, .*got 'x'"):
        reading_settings(Settings(embedder="x"), opened)
    with pytest.raises(ConfigError, match="chunk_tokens: the index was built with 1200, not 150"):
        reading_settings(Settings(chunk_tokens=150), opened)


def test_nothing_is_known_of_nothing(tmp_path: Path) -> None:
    assert stored_settings(tmp_path) is None
    assert reading.failures(Layout(tmp_path)) == []
    assert stored_settings(tmp_path / "none") is None
