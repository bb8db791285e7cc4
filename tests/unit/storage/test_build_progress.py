"""The file with the progress of a build: when it is written, read and removed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from ketrag_fast.base.progress import Event
from ketrag_fast.errors import Cancelled
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import PROGRESS, progress_shown, read_progress


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "work").mkdir()
    return Layout(tmp_path)


def test_a_long_build_is_shown_and_a_short_one_is_not(layout: Layout) -> None:
    now, seen = [0.0], []
    with progress_shown(layout, seen.append, lambda: now[0]) as callback:
        callback(Event("units", 1, 10))
        assert read_progress(layout) is None
        now[0] = 1.0
        callback(Event("units", 5, 10, "chunks"))
        found = read_progress(layout)
        assert found is not None
        assert (found["stage"], found["done"], found["total"], found["unit"]) == ("units", 5, 10, "chunks")
        now[0] = 1.2
        callback(Event("units", 6, 10))
        assert read_progress(layout) == found
        now[0] = 1.6
        callback(Event("links", 1, None))
        assert (read_progress(layout) or {})["stage"] == "links"
    assert [event.done for event in seen] == [1, 5, 6, 1]
    assert list(layout.work.iterdir()) == []


def test_the_callback_still_stops_the_build_and_the_file_goes(layout: Layout) -> None:
    now = [0.0]
    with pytest.raises(Cancelled), progress_shown(layout, lambda _: False, lambda: now[0]) as callback:
        now[0] = 2.0
        assert callback(Event("units", 1, 10)) is False
        assert read_progress(layout) is not None
        raise Cancelled("stopped")
    assert list(layout.work.iterdir()) == []


def test_a_file_that_cannot_be_written_does_not_stop_the_build(tmp_path: Path) -> None:
    now = [0.0]
    with progress_shown(Layout(tmp_path / "missing"), None, lambda: now[0]) as callback:
        now[0] = 2.0
        assert callback(Event("units", 1, 10)) is None


def test_a_stale_or_damaged_file_is_ignored(layout: Layout) -> None:
    path = layout.work / PROGRESS
    path.write_text(json.dumps({"stage": "units", "done": 1}))
    assert read_progress(layout) is not None
    os.utime(path, (0, 0))
    assert read_progress(layout) is None
    for text in ("", "{", "[1]", "[" * 9_999, '{"stage": 1}', '{"done": 1}', "x" * 20_000):
        path.write_text(text)
        assert read_progress(layout) is None
    if sys.platform != "win32":
        path.unlink()
        os.mkfifo(path)
        assert read_progress(layout) is None
