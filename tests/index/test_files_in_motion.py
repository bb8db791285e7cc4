"""Files whose times go back, that change while they are read, or that two processes index at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ketrag_fast import Index
from ketrag_fast.building import sources
from ketrag_fast.index import freshness
from tests.process import start


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(freshness, "QUICK", 60.0)
    monkeypatch.setattr(freshness, "LONGEST", 60.0)
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a.md", "b.md", "c.md"):
        (folder / name).write_text(f"# {name}\n\nThe text of {name} is about penguins.\n")
        os.utime(folder / name, (1_700_000_000, 1_700_000_000))
    time.sleep(0.05)
    return folder


def documents(index: Index, word: str) -> list[str]:
    return [one.document for one in index.grep(word)]


@pytest.mark.parametrize("now", [1_600_000_000, time.time() + 86_400], ids=["back", "ahead"])
def test_a_clock_that_is_wrong_hides_no_edit(notes: Path, tmp_path: Path, now: float) -> None:
    """Two edits have the same size and time of the content; the time of the inode cannot be set."""
    with Index.build(notes, tmp_path / "index") as index:
        for word in ("walruses", "narwhals"):
            text = (notes / "a.md").read_text().split("about")[0]
            (notes / "a.md").write_text(f"{text}about {word}.\n")
            os.utime(notes / "a.md", (now, now))
            assert index.freshen().updated
            assert documents(index, word) == ["a.md"]
        assert documents(index, "walruses") == []
        time.sleep(0.05)
        assert index.freshen().changes == 0


def test_a_file_that_is_written_while_it_is_read_is_read_again(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Index.build(notes, tmp_path / "index") as index:
        known_kind = sources.known_kind

        def write_again(file: sources.SourceFile) -> str | None:
            kind = known_kind(file)
            if file.id == "a.md":
                (notes / "a.md").write_text("# a\n\nThe last text: a narwhal.\n")
            return kind

        (notes / "a.md").write_text("# a\n\nThe first text: a walrus.\n")
        with monkeypatch.context() as busy:
            busy.setattr(sources, "known_kind", write_again)
            assert index.freshen().updated
        index.freshen()
        assert documents(index, "narwhal") == ["a.md"] and documents(index, "walrus") == []
        with Index.build(notes, tmp_path / "again") as again:
            assert again.stats()["content_digest"] == index.stats()["content_digest"]


def test_two_processes_index_an_edit_once(notes: Path, tmp_path: Path) -> None:
    with Index.build(notes, tmp_path / "index") as index:
        for number, word in enumerate(("walrus", "narwhal", "puffin"), 2):
            (notes / "a.md").write_text(f"# a\n\nNow a {word}.\n")
            running = [start("search", word, "-i", "index", "--fresh", cwd=tmp_path) for _ in range(2)]
            for process in running:
                out, err = process.communicate(timeout=120)
                assert process.returncode == 0 and word in out, err
            index.refresh()
            assert index.generation == number
        assert index.freshen().changes == 0


def test_an_update_by_another_process_is_found_by_an_index_that_was_open(notes: Path, tmp_path: Path) -> None:
    with Index.build(notes, tmp_path / "index") as index, Index.open(tmp_path / "index") as other:
        (notes / "a.md").write_text("# a\n\nNow a walrus.\n")
        assert other.freshen().updated
        assert (
            not index.freshen().changes
        )  # the files are those of the latest generation, not of the open one
        assert index.generation == other.generation
        assert index.search("walrus", literal=True)


_DIES = """
import os, sys
from ketrag_fast import Index
from ketrag_fast.building import delta, stages
stages.publish = delta.publish = lambda *_, **__: os._exit(9)
Index.open(sys.argv[1]).freshen("always")
"""


def test_an_update_that_was_killed_before_it_was_published_is_made_up_for(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "ship.md").write_text("The Fram drifted in the ice.")
    with Index.build(notes, tmp_path / "index") as index:
        (notes / "ship.md").write_text("The Fram lay in the harbour.")
        done = subprocess.run([sys.executable, "-c", _DIES, str(index.path)], check=False, timeout=60)
        assert done.returncode == 9
        assert not index.search("harbour", literal=True)
        assert index.freshen().updated
        assert [hit.document for hit in index.search("harbour", literal=True)] == ["ship.md"]
        assert not index.freshen().updated
