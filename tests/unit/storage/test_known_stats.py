"""Whether a file is as it was when a build read it: its size, its times and its inode decide together."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ketrag_fast.storage.known_files import STAT_BYTES, UNKNOWN, KnownFile, stats_of

SIZE, CHANGED, MOVED, INODE = range(4)


def known(stat: bytes) -> KnownFile:
    return KnownFile(0, 0, "a.md", "/a.md", stat, bytes(32), 0, 1, ())


def with_number(stat: bytes, at: int, number: int) -> bytes:
    numbers = [int.from_bytes(stat[8 * i : 8 * i + 8], "little", signed=True) for i in range(4)]
    numbers[at] = number
    return b"".join(one.to_bytes(8, "little", signed=True) for one in numbers)


@pytest.fixture
def stat(tmp_path: Path) -> bytes:
    (tmp_path / "a.md").write_text("text")
    found: bytes = stats_of([str(tmp_path / "a.md")])[0]
    assert len(found) == STAT_BYTES
    return with_number(found, CHANGED, 1_700_000_000_000_000_000)  # that of a file just written is unknown


def test_the_same_stat(stat: bytes) -> None:
    assert known(stat).is_as(stat)


@pytest.mark.parametrize("at", [SIZE, CHANGED, MOVED, INODE])
def test_each_number_counts(stat: bytes, at: int) -> None:
    """An equal size alone says nothing: an editor writes another text of the same length."""
    assert not known(stat).is_as(with_number(stat, at, 7))
    assert not known(with_number(stat, at, 7)).is_as(stat)


def test_an_unknown_time_is_that_of_any_file(stat: bytes) -> None:
    just_read = known(with_number(stat, CHANGED, UNKNOWN))
    assert just_read.is_as(stat)
    for at in (SIZE, MOVED, INODE):
        assert not just_read.is_as(with_number(stat, at, 7))
    assert not known(stat).is_as(with_number(stat, CHANGED, UNKNOWN))


def test_another_file_of_equal_length_and_time(tmp_path: Path) -> None:
    """Some editors write a new file and give it the name of the old one."""
    path, new = tmp_path / "a.md", tmp_path / "new"
    path.write_text("text")
    new.write_text("next")
    for one in (path, new):
        os.utime(one, (1_700_000_000, 1_700_000_000))
    before = stats_of([str(path)])[0]
    new.replace(path)
    assert not known(before).is_as(stats_of([str(path)])[0])
