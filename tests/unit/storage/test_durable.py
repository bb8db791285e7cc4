"""Renames that another process delays, as on Windows; removal of folders; JSON files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ketrag_fast.storage.durable import (
    discard_folder,
    json_bytes,
    remove_folder,
    replace_path,
    retry_denied,
)


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
