"""`ketrag watch`: a folder that changes under the command."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.process import environment
from tests.support.parts import part

from ketrag_fast import Index


def wait(condition: Callable[[], bool]) -> bool:
    """Return whether a condition holds within two minutes, as soon as it does."""
    limit = time.monotonic() + 120
    while not condition() and time.monotonic() < limit:
        time.sleep(0.05)
    return condition()


def has(place: Path, documents: list[str]) -> Callable[[], bool]:
    """Return a condition: the index has these documents and no others."""

    def check() -> bool:
        try:
            with Index.open(place) as index:
                return [one.document for one in index.inspect.documents()] == documents
        except Exception:  # noqa: BLE001 - there is no index yet
            return False

    return check


@contextmanager
def watching(notes: Path, place: Path) -> Iterator[tuple[Path, Path]]:
    """Run `ketrag watch` until the end of the block; gives the files with its output and its errors."""
    out, err = notes.parent / "out.txt", notes.parent / "err.txt"
    command = [sys.executable, "-m", "ketrag_fast.apps.cli.main", "watch", str(notes), "-i", str(place)]
    with out.open("w") as to, err.open("w") as errors:
        child = subprocess.Popen(
            [*command, "--settle", "0.2"],
            env={**environment(), "PYTHONUNBUFFERED": "1"},
            stdout=to,
            stderr=errors,
        )
        try:
            yield out, err
        finally:
            child.send_signal(signal.SIGINT)
            child.wait(timeout=60)
    assert child.returncode == 0, err.read_text()  # Ctrl-C is how one ends it
    assert "again" not in err.read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="no process can be sent SIGINT alone")
@pytest.mark.parametrize("index", ["notes/.ketrag", "note"], ids=["inside", "begins alike"])
def test_a_folder_that_changes(tmp_path: Path, index: str) -> None:
    part("watchfiles", "watch")
    notes, place = tmp_path / "notes", tmp_path / index
    notes.mkdir()
    (notes / "a.md").write_text("The harbour froze in winter.", "utf-8")
    with watching(notes, place) as (out, err):
        assert wait(has(place, ["a.md"]))
        assert wait(lambda: f"watching {notes} for changes" in err.read_text())
        (notes / "b.md").write_text("A ship left for Oslo.", "utf-8")
        assert wait(has(place, ["a.md", "b.md"]))
        (notes / "a.md").unlink()
        assert wait(has(place, ["b.md"]))
        assert wait(lambda: "1 removed" in out.read_text())  # it is published before it is printed
    lines = [line for line in out.read_text().splitlines() if "document" in line]
    assert len(lines) >= 3, lines


@pytest.mark.skipif(sys.platform == "win32", reason="no process can be sent SIGINT alone")
def test_an_empty_folder_is_waited_for(tmp_path: Path) -> None:
    part("watchfiles", "watch")
    notes, place = tmp_path / "notes", tmp_path / "note"
    notes.mkdir()
    with watching(notes, place) as (_, err):
        assert wait(lambda: f"waiting for a document in {notes}" in err.read_text())
        assert not place.exists()
        (notes / "a.md").write_text("The harbour froze in winter.", "utf-8")
        assert wait(has(place, ["a.md"]))


@pytest.mark.skipif(sys.platform == "win32", reason="a folder that is watched cannot be moved")
def test_a_folder_that_vanishes_is_waited_for(tmp_path: Path) -> None:
    """A drive that is taken out, or a folder that is moved for a moment, does not empty the index."""
    part("watchfiles", "watch")
    notes, away, place = tmp_path / "notes", tmp_path / "away", tmp_path / "index"
    notes.mkdir()
    (notes / "a.md").write_text("The harbour froze in winter.", "utf-8")
    with watching(notes, place) as (out, err):
        assert wait(has(place, ["a.md"]))
        notes.rename(away)
        assert wait(lambda: "which is missing" in err.read_text())
        assert has(place, ["a.md"])()
        (away / "b.md").write_text("A ship left for Oslo.", "utf-8")
        away.rename(notes)
        assert wait(has(place, ["a.md", "b.md"]))
        (notes / "c.md").write_text("It came back in spring.", "utf-8")
        assert wait(has(place, ["a.md", "b.md", "c.md"]))
    assert "removed" not in out.read_text().replace("0 removed", "")


@pytest.mark.skipif(sys.platform == "win32", reason="no process can be sent SIGINT alone")
def test_a_file_that_is_left_out_starts_no_build(tmp_path: Path) -> None:
    part("watchfiles", "watch")
    notes, place = tmp_path / "notes", tmp_path / "index"
    notes.mkdir()
    (notes / ".gitignore").write_text("*.log\n", "utf-8")
    (notes / "a.md").write_text("The harbour froze in winter.", "utf-8")
    with watching(notes, place):
        assert wait(has(place, ["a.md"]))
        (notes / "b.log").write_text("A line about the harbour.", "utf-8")
        (notes / "c.md").write_text("A ship left for Oslo.", "utf-8")
        assert wait(has(place, ["a.md", "c.md"]))
        (notes / ".gitignore").write_text("*.txt\n", "utf-8")
        assert wait(has(place, ["a.md", "b.log", "c.md"]))


@pytest.mark.skipif(sys.platform == "win32", reason="no process can be sent SIGINT alone")
def test_changes_are_named_and_a_warning_is_printed_once(tmp_path: Path) -> None:
    part("watchfiles", "watch")
    notes, place = tmp_path / "notes", tmp_path / "note"
    (notes / "ships").mkdir(parents=True)
    (notes / "a.md").write_text("The harbour froze in winter.", "utf-8")
    (notes / "bad.pdf").write_bytes(b"%PDF-1.4\nbroken")
    with watching(notes, place) as (out, err):
        assert wait(lambda: f"watching {notes} for changes" in err.read_text())
        (notes / "ships" / "b.md").write_text("A ship left for Oslo.", "utf-8")
        assert wait(has(place, ["a.md", "ships/b.md"]))
        (notes / "ships" / "b.md").unlink()
        assert wait(lambda: "1 removed" in out.read_text())
        (notes / "worse.pdf").write_bytes(b"%PDF-1.4\nbroken")
        assert wait(lambda: "worse.pdf: " in err.read_text())
    said = err.read_text()
    assert "added: ships/b.md" in said
    assert "deleted: ships/b.md" in said
    assert said.count("bad.pdf: ") == 1
