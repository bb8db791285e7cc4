"""Renames that another process delays, as on Windows."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast.storage.durable import replace_path, retry_denied


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
