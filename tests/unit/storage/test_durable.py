"""Renames that another process delays, as on Windows; removal of folders; JSON files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast.storage.arrays import write_arrays
from ketrag_fast.storage.durable import (
    discard_folder,
    json_bytes,
    link_or_copy,
    make_folder,
    remove_folder,
    replace_path,
    retry_denied,
    sync_folders,
)
from ketrag_fast.storage.generation import discard, publish
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import StageRecord


class Door:
    """An action that is refused until its last attempt."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.attempts = 0

    def __call__(self) -> None:
        self.attempts += 1
        if self.attempts <= self.refusals:
            raise PermissionError(13, "used by another process")


@pytest.mark.parametrize("refusals", [0, 1, 2])
def test_a_refused_action_is_tried_again_after_each_pause(refusals: int) -> None:
    door = Door(refusals)
    retry_denied(door, pauses=(0.0, 0.0))
    assert door.attempts == refusals + 1


def test_the_last_refusal_is_raised() -> None:
    door = Door(3)
    with pytest.raises(PermissionError, match="used by another process"):
        retry_denied(door, pauses=(0.0, 0.0))
    assert door.attempts == 3


def test_other_errors_are_raised_at_once() -> None:
    attempts = []

    def fail() -> None:
        attempts.append(1)
        raise FileNotFoundError("gone")

    with pytest.raises(FileNotFoundError):
        retry_denied(fail, pauses=(0.0, 0.0))
    assert attempts == [1]


def test_a_file_replaces_another(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"old")
    new.write_bytes(b"new")
    replace_path(new, old)
    assert old.read_bytes() == b"new"
    assert not new.exists()


@pytest.mark.parametrize("remove", [remove_folder, discard_folder])
def test_a_folder_is_removed_with_all_below_and_links_are_not_followed(remove, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("stays")
    folder = tmp_path / "folder"
    (folder / "stage" / "deep").mkdir(parents=True)
    (folder / "stage" / "deep" / "a.npy").write_text("a")
    (folder / "b.npy").write_text("b")
    (folder / "link").symlink_to(kept)
    remove(folder)
    assert not folder.exists()
    assert (kept / "file").read_text() == "stays"
    remove(folder)  # nothing to remove
    folder.symlink_to(kept)
    discard_folder(folder)  # a link is not the folder
    assert (kept / "file").read_text() == "stays"


def test_removing_folders_imports_no_packers(tmp_path: Path) -> None:
    (tmp_path / "gen" / "units").mkdir(parents=True)
    (tmp_path / "gen" / "units" / "a.npy").write_text("a")
    code = (
        "import sys; from pathlib import Path; from ketrag_fast.storage.durable import discard_folder;"
        "discard_folder(Path(sys.argv[1])); print('shutil' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "gen")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n" and not (tmp_path / "gen").exists()


def test_json_files_have_a_line_for_each_entry() -> None:
    data = {"a": [1, {"b": "é"}], 'quo"te': None, "empty": {}}
    written = json_bytes(data)
    assert json.loads(written) == data and list(json.loads(written)) == list(data)
    assert written.decode().splitlines() == [
        "{",
        ' "a": [1, {"b": "é"}],',
        ' "quo\\"te": null,',
        ' "empty": {}',
        "}",
    ]


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The files and folders that are synced and renamed, in order, relative to the temporary folder."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("the paths of open files are known on Linux only")
    found: list[tuple[str, ...]] = []

    def record(module: str, *, moves: bool) -> None:
        call = getattr(os, module)

        def recorded(first: Any, *rest: Any, **named: Any) -> Any:
            paths = (first, *rest) if moves else (Path(f"/proc/self/fd/{first}").readlink(),)
            found.append((module, *(str(Path(path).relative_to(tmp_path)) for path in paths)))
            return call(first, *rest, **named)

        monkeypatch.setattr(os, module, recorded)

    record("fsync", moves=False)
    for name in ("rename", "replace"):
        record(name, moves=True)
    return found


def test_a_generation_is_synced_before_it_gets_its_name(tmp_path: Path, steps: list[tuple[str, ...]]) -> None:
    layout = Layout(tmp_path / "index")
    layout.create()
    (layout.work / "units").mkdir(parents=True)
    records = write_arrays(layout.work / "units", {"a": np.arange(200_000, dtype=np.float64)})
    assert steps[-2:] == [("fsync", "index/work/units/a.npy"), ("fsync", "index/work/units/blocks.b3")]
    steps.clear()
    stage = StageRecord("units", 1, "print", 0.5, records)
    publish(layout, [(layout.work / "units", stage)], settings={}, documents={}, version="0")
    generation = "index/gen-000001"
    assert steps == [
        ("fsync", "index/work/publish/units"),
        ("fsync", "index/work/publish/manifest.json"),
        ("fsync", "index/work/publish"),
        ("rename", "index/work/publish", generation),
        ("fsync", "index"),
        ("fsync", "index/CURRENT.tmp"),
        ("replace", "index/CURRENT.tmp", "index/CURRENT"),
        ("fsync", "index"),
    ]
    steps.clear()
    discard(layout, 1)
    aside = "index/work/gen-000001"
    assert steps == [("rename", generation, aside), ("fsync", "index/work"), ("fsync", "index")]
    assert not (tmp_path / generation).exists() and not (tmp_path / aside).exists()


def test_new_folders_and_copies_are_synced(
    tmp_path: Path, steps: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder(tmp_path / "a" / "b", 0o700)
    assert (
        steps == [("fsync", "."), ("fsync", "a")] and (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    )
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "a")
    steps.clear()
    sync_folders(tmp_path / "a")
    assert steps == [("fsync", "a/b"), ("fsync", "a")]
    steps.clear()

    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "a" / "file").write_text("x")
    link_or_copy(tmp_path / "a" / "file", tmp_path / "copy")
    assert steps == [("fsync", "copy")] and (tmp_path / "copy").read_text() == "x"
