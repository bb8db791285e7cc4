"""Reading an index before queries do."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import Cancelled, IndexDamaged

QUESTION = "Who sailed the Fram across the polar basin?"
TEXTS = {
    "fram.md": "The Fram drifted across the polar basin under Nansen. She was built by Colin Archer.",
    "maud.md": "The Maud was the last polar ship of Roald Amundsen. Oscar Wisting was her captain.",
    "gjoa.md": "The Gjøa sailed the Northwest Passage under Roald Amundsen in 1906.",
}


def documents() -> list[Document]:
    return [Document(name, text) for name, text in TEXTS.items()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Index.build(documents(), tmp_path / "index", settings=Settings(threads=1, llm="heuristic")).close()
    return tmp_path / "index"


def test_answers_do_not_change_and_the_bound_holds(folder: Path) -> None:
    with Index.open(folder) as cold, Index.open(folder) as warm:
        read = warm.inspect.warm()
        assert read > 0
        for mode in ("bm25", "walk", "text", "auto"):
            found = [index.retrieve(QUESTION, mode=mode).to_json() for index in (cold, warm)]
            for one in found:
                one.pop("timings_ms")
            assert found[0] == found[1]
        searcher = warm.inspect._opened.searcher
        assert searcher.read_ahead(1 << 40) >= read
        assert searcher.read_ahead(0) == 0
        assert searcher.read_ahead(read // 2) <= read // 2


def test_an_empty_index_and_one_that_is_stopped(tmp_path: Path, folder: Path) -> None:
    with Index.build([], tmp_path / "empty") as empty:
        assert empty.inspect.warm() == 0
    with Index.open(folder) as index:
        with contextlib.suppress(Cancelled):  # a small index may be read before anybody looks
            index.inspect.warm(lambda: False)
        assert index.retrieve(QUESTION).passages


def test_a_damaged_generation_is_refused_before_queries_see_it(folder: Path) -> None:
    with Index.open(folder) as index:
        before = index.generation
        Index.open(folder).update(add=documents()[:1], remove="maud.md")
        blobs = sorted(folder.glob("gen-*/links/keyword_units_indices.npy"))
        latest = blobs[-1]
        data = bytearray(latest.read_bytes())
        data[-3] ^= 1
        latest.unlink()
        latest.write_bytes(bytes(data))
        with pytest.raises(IndexDamaged):
            index.refresh(warm=True)
        assert index.generation == before
        assert index.retrieve(QUESTION).passages
        with pytest.raises(IndexDamaged):  # it is tried again, and stays refused
            index.refresh(warm=True)
