"""`ketrag watch`: a folder that changes under the command."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.process import environment
from tests.support.parts import part

from ketrag_fast import Index


def until(place: Path, wanted: list[str]) -> list[str]:
    """The documents of the index, as soon as they are those that are wanted."""
    found: list[str] = []
    limit = time.monotonic() + 120
    while time.monotonic() < limit:
        try:
            with Index.open(place) as index:
                found = [one.document for one in index.inspect.documents()]
        except Exception:  # noqa: BLE001 - there is no index yet
            found = []
        if found == wanted:
            break
        time.sleep(0.2)
    return found


@pytest.mark.skipif(sys.platform == "win32", reason="no process can be sent SIGINT alone")
@pytest.mark.parametrize("index", ["notes/.ketrag", "note"], ids=["inside", "begins alike"])
def test_a_folder_that_changes(tmp_path: Path, index: str) -> None:
    part("watchfiles", "watch")
    notes, place = tmp_path / "notes", tmp_path / index
    notes.mkdir()
    (notes / "a.md").write_text("The harbour froze in winter.", "utf-8")
    command = [sys.executable, "-m", "ketrag_fast.apps.cli.main", "watch", str(notes), "-i", str(place)]
    child = subprocess.Popen(
        [*command, "--settle", "0.2"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert until(place, ["a.md"]) == ["a.md"]
        time.sleep(1)  # the watch itself begins after the first build
        (notes / "b.md").write_text("A ship left for Oslo.", "utf-8")
        assert until(place, ["a.md", "b.md"]) == ["a.md", "b.md"]
        (notes / "a.md").unlink()
        assert until(place, ["b.md"]) == ["b.md"]
        time.sleep(2)  # it is published before it is told
    finally:
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    lines = [line for line in out.splitlines() if "documents" in line]
    assert len(lines) >= 3, out
    assert "1 removed" in out


@pytest.mark.skipif(sys.platform == "win32", reason="a folder that is watched cannot be moved")
def test_a_folder_that_vanishes_is_waited_for(tmp_path: Path) -> None:
    """A drive that is taken out, or a folder that is moved for a moment, does not empty the index."""
    part("watchfiles", "watch")
    notes, away, place = tmp_path / "notes", tmp_path / "away", tmp_path / "index"
    notes.mkdir()
    (notes / "a.md").write_text("The harbour froze in winter.", "utf-8")
    command = [sys.executable, "-m", "ketrag_fast.apps.cli.main", "watch", str(notes), "-i", str(place)]
    child = subprocess.Popen(
        [*command, "--settle", "0.2"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert until(place, ["a.md"]) == ["a.md"]
        time.sleep(1)
        notes.rename(away)
        time.sleep(3)  # longer than the watch takes to look
        assert until(place, ["a.md"]) == ["a.md"]
        (away / "b.md").write_text("A ship left for Oslo.", "utf-8")
        away.rename(notes)
        assert until(place, ["a.md", "b.md"]) == ["a.md", "b.md"]
        (notes / "c.md").write_text("It came back in spring.", "utf-8")
        assert until(place, ["a.md", "b.md", "c.md"]) == ["a.md", "b.md", "c.md"]
    finally:
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert "which is missing" in err
    assert "removed" not in out.replace("0 removed", "")
