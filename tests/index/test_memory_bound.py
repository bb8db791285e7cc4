"""Builds in bounded memory: blocks of documents, runs of units and buckets of a transpose change no byte."""

from __future__ import annotations

import resource
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings, _core
from ketrag_fast.errors import Cancelled, ConfigError, StorageFull
from ketrag_fast.storage.array_spool import ArraySpool, is_spooled, map_values, require_space, scratch_folder
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.shared import links, units
from ketrag_fast.systems.shared.memory_bound import Bounds, bounds_of, memory_of
from ketrag_fast.types.locations import Locator
from tests.process import POLAR, start

SETTINGS = Settings(modes="bm25,walk")


def articles() -> Iterator[Document]:
    """Yield documents of every kind: with headings, metadata, several languages, no title, no words."""
    for number, path in enumerate(sorted((POLAR / "articles").iterdir())):
        text = path.read_text("utf-8")
        marks = (Locator(0, 20, "page", 1),) if number % 5 == 0 else ()
        yield Document(path.name, text, path.stem if number % 3 else "", {"n": number % 4}, marks)
    yield Document("stop words", "of the and", "The")
    yield Document(
        "French", "Le navire était dans la glace et les hommes ont quitté le navire. " * 3, "Glace"
    )


def files(place: Path) -> dict[str, bytes]:
    """Return the arrays of the generation."""
    folder = place / "gen-000001"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("*/*.*")}


def build(place: Path, documents: list[Document], settings: Settings = SETTINGS) -> dict[str, bytes]:
    """Build an index and return its arrays."""
    Index.build(documents, place, settings=settings).close()
    made = files(place)
    assert not list(Layout(place).work.iterdir())
    # The folder is in the files' record of seconds only.
    return {name: data for name, data in made.items() if not name.endswith("stage.json")}


@pytest.mark.parametrize("cut", ["sentences", "windows"])
def test_blocks_runs_buckets_and_threads_change_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    documents, settings = list(articles()), SETTINGS.having(cut=cut, language="auto")
    whole = build(tmp_path / "whole", documents, settings)
    cases = [(1, Bounds(1, 1)), (20_000, Bounds(7, 100)), (1 << 30, Bounds(1 << 18, 1 << 20))]
    for number, (block, bounds) in enumerate(cases):
        monkeypatch.setattr(units, "_BLOCK", block)
        monkeypatch.setattr(links, "bounds_of", lambda *_, bounds=bounds: bounds)
        for threads in (1, 2):
            place = tmp_path / f"{number}-{threads}"
            assert build(place, documents, settings.having(threads=threads)) == whole


def test_memory_is_a_setting_and_too_little_names_the_least(tmp_path: Path) -> None:
    documents = [Document("a", "Some text.", "T")]
    with pytest.raises(ConfigError, match="memory is 100 MB; a build needs at least 256 MB") as caught:
        build(tmp_path / "index", documents, SETTINGS.having(memory=100))
    assert "--memory 256" in (caught.value.hint or "")
    with pytest.raises(ConfigError, match="memory is 255 MB"):  # although nothing is built
        Settings(memory=255)
    assert build(tmp_path / "index", documents, SETTINGS.having(memory=256))
    small, large = bounds_of(SETTINGS.having(memory=256), 600), bounds_of(SETTINGS.having(memory=4000), 600)
    assert 5_000 < small.units < large.units
    assert large.entries == 4_000_000_000 // 32
    assert bounds_of(SETTINGS.having(memory=256), 1 << 30).units == 1
    assert memory_of(SETTINGS) >= 256


def test_a_full_disk_in_the_runs_leaves_nothing_and_the_next_build_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = list(articles())
    whole = build(tmp_path / "whole", documents)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    real = _core.links_build_runs

    def limited(*args: Any, **named: Any) -> Any:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
        try:
            return real(*args, **named)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    monkeypatch.setattr(_core, "links_build_runs", limited)
    place = tmp_path / "index"
    with pytest.raises(StorageFull) as caught:
        build(place, documents)
    assert "free some space" in (caught.value.hint or "")
    assert not [path for path in Layout(place).work.iterdir() if path.name.startswith("scratch-")]
    assert not Layout(place).generations()
    monkeypatch.setattr(_core, "links_build_runs", real)
    assert build(place, documents) == whole


def test_a_disk_that_is_too_small_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_space(tmp_path, 1)
    free = shutil.disk_usage(tmp_path).free
    with pytest.raises(StorageFull, match=r"needs at least .* MB of disk for temporary files") as caught:
        require_space(tmp_path, 2 * free + 1_000_000)
    assert "free some space" in (caught.value.hint or "")
    monkeypatch.setattr(links, "_LEAST_SPACE", free)
    with pytest.raises(StorageFull):
        build(tmp_path / "index", list(articles()))
    assert not [path for path in Layout(tmp_path / "index").work.iterdir() if path.name.startswith("scratch")]


def test_a_stopped_build_leaves_no_runs_and_the_next_one_gives_the_same_bytes(tmp_path: Path) -> None:
    documents = list(articles())
    whole = build(tmp_path / "whole", documents)
    place = tmp_path / "index"
    with pytest.raises(Cancelled):
        Index.build(documents, place, settings=SETTINGS, progress=lambda event: event.stage != "links")
    assert not [path for path in Layout(place).work.iterdir() if path.name.startswith("scratch-")]
    assert build(place, documents) == whole


def test_a_killed_build_leaves_no_runs_after_the_next_one(tmp_path: Path) -> None:
    place, source = tmp_path / "index", tmp_path / "docs.jsonl"
    text = " ".join(f"Word{n} meets Name{n * 7}." for n in range(60))
    source.write_text("".join(f'{{"id": "{n}", "text": "{n} {text}"}}\n' for n in range(2000)))
    child = start("index", str(source), "-i", str(place), "--modes", "bm25,walk", cwd=tmp_path)
    work = Layout(place).work
    while child.poll() is None and not any(work.glob("scratch-*")):
        time.sleep(0.005)
    child.kill()
    child.communicate()
    Index.build(str(source), place, settings=SETTINGS).close()
    assert not list(work.iterdir())


def test_many_documents_of_one_word_and_many_equal_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "_BLOCK", 10_000)
    monkeypatch.setattr(links, "bounds_of", lambda *_: Bounds(700, 500))
    for name, text in (("one", "polar"), ("equal", "Nansen crossed the ice. The Fram drifted.")):
        documents = [Document(f"{n:05}", text, "Fram") for n in range(3_000)]
        with Index.build(documents, tmp_path / name, settings=SETTINGS) as index:
            assert index.stats()["counts"]["documents"] == 3_000
            assert index.retrieve("polar Nansen", mode="bm25", budget=200).passages[0].document == "00000"


def test_a_spool_holds_what_was_appended_and_nothing_of_it_stays(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        with ArraySpool(folder) as spool:
            for start_at in (0, 3):
                spool.append("pairs", np.arange(start_at, start_at + 6, dtype=np.uint32).reshape(3, 2))
                spool.append("none", np.zeros(0, np.uint8))
            made = spool.finish()
        (folder / "raw").write_bytes(np.arange(5, dtype=np.uint64).tobytes())
        raw = map_values(folder / "raw", np.uint64)
    assert not list(tmp_path.iterdir())
    assert made["pairs"].tolist() == [[0, 1], [2, 3], [4, 5], [3, 4], [5, 6], [7, 8]]
    assert is_spooled(made["pairs"]) and is_spooled(raw) and not is_spooled(np.arange(3))
    assert made["none"].shape == (0,) and raw.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="read-only"):
        made["pairs"][0] = 1
