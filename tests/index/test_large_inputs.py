"""Inputs of unusual sizes, scaled down: the runs and blocks are made as small as the inputs."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.errors import StorageFull
from ketrag_fast.storage import array_spool
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.shared import links, units, units_ahead
from ketrag_fast.systems.shared.memory_bound import Bounds
from tests.index.test_memory_bound import SETTINGS, build, files


@pytest.fixture
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut and link a few documents at a time."""
    monkeypatch.setattr(units, "_BLOCK", 10_000)
    monkeypatch.setattr(units_ahead, "_BLOCK", 10_000)
    monkeypatch.setattr(links, "bounds_of", lambda *_: Bounds(50, 500))


@contextmanager
def full_disk(most: int) -> Iterator[None]:
    """Let no file grow beyond `most` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("small_runs")
def test_ids_of_a_megabyte(tmp_path: Path) -> None:
    long = [letter * 1_000_000 for letter in "abc"]
    documents = [Document(name, f"Nansen met {name[0]} on the ice.", name[:3]) for name in long]
    with Index.build(documents, tmp_path / "index", settings=SETTINGS) as index:
        found = index.retrieve("whom did Nansen meet on the ice?", mode="walk", budget=500)
        assert {passage.document for passage in found.passages} == set(long)
        index.update(remove=[long[1]])
        left = index.retrieve("Nansen on the ice", mode="bm25", budget=500)
        assert {passage.document for passage in left.passages} == {long[0], long[2]}


@pytest.mark.usefixtures("small_runs")
def test_one_long_document_among_short_ones(tmp_path: Path) -> None:
    long = " ".join(f"Nansen reached camp {n} on the ice of bay {n % 97}." for n in range(20_000))
    documents = [Document("a", "The Fram drifted.", "Fram"), Document("b", long), Document("c", "It thawed.")]
    whole = build(tmp_path / "one", documents, SETTINGS.having(threads=1))
    assert build(tmp_path / "two", documents, SETTINGS.having(threads=2, memory=256)) == whole
    with Index.open(tmp_path / "one") as index:
        (first, *_) = index.retrieve("Who reached camp 19997?", mode="bm25", budget=400).passages
        assert first.document == "b" and "camp 19997" in first.text


@pytest.mark.usefixtures("small_runs")
def test_a_vocabulary_of_nothing_but_rare_words(tmp_path: Path) -> None:
    documents = [
        Document(f"{n:04}", " ".join(f"w{n * 40 + k:x} N{n * 40 + k:x}" for k in range(40)), f"T{n:x}")
        for n in range(400)
    ]
    whole = build(tmp_path / "one", documents, SETTINGS.having(threads=1))
    assert build(tmp_path / "two", documents, SETTINGS.having(threads=2)) == whole
    with Index.open(tmp_path / "one") as index:
        (first, *_) = index.retrieve(f"w{7 * 40 + 3:x}", mode="bm25", budget=2_000).passages
        assert first.document == "0007"


@pytest.mark.parametrize("most", [4_096, 70_000, 160_000])
def test_a_disk_that_fills_in_a_merge_leaves_it_to_be_continued(tmp_path: Path, most: int) -> None:
    text = "Nansen met bear {0} at camp {0}. The Fram drifted past mile {0}. "
    documents = [Document(f"{n:04}", text.format(n) * 5, f"Title {n}") for n in range(600)]
    parts = [tmp_path / "a", tmp_path / "b"]
    for number, part in enumerate(parts):
        build(part, documents[number::2])
    whole = build(tmp_path / "whole", documents)
    place = tmp_path / "merged"
    with full_disk(most), pytest.raises(StorageFull):
        Index.merge(parts, place)
    assert not Layout(place).generations()
    assert not [path for path in Layout(place).work.iterdir() if path.name.startswith("scratch-")]
    Index.merge(parts, place).close()
    assert {name: data for name, data in files(place).items() if not name.endswith("stage.json")} == whole


def test_a_disk_that_is_too_small_is_refused_before_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "docs.jsonl"
    source.write_text('{"text": "Nansen met bears."}\n' * 9)
    sources = (str(source), str(tmp_path / "*.jsonl"), str(tmp_path), [Document("a", "Nansen.")])
    needed: list[int] = []
    monkeypatch.setattr(array_spool, "require_space", lambda _, size: needed.append(size))
    for number, given in enumerate(sources):
        Index.build(given, tmp_path / f"index {number}", settings=SETTINGS).close()
    half = source.stat().st_size // 2
    assert needed == [5 * half, 5 * half, 5 * half, 5 * len("Nansen.")]
    Index.build(sources[0], tmp_path / "index 0", settings=SETTINGS).close()
    assert needed[4:] == []  # what is stored is not read again

    def refuse(folder: Path, size: int) -> None:
        raise StorageFull(f"this build needs {size} bytes")

    monkeypatch.setattr(array_spool, "require_space", refuse)
    with pytest.raises(StorageFull):
        Index.build(str(source), tmp_path / "refused", settings=SETTINGS)
    monkeypatch.undo()
    Index.build(str(source), tmp_path / "refused", settings=SETTINGS).close()
