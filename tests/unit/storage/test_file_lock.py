"""The lock of the single builder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ketrag_fast import _core

HOLDER = """
import sys
from ketrag_fast import _core
lock = _core.lock_file(sys.argv[1])
print("held" if lock else "refused", flush=True)
sys.stdin.read()
"""


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    first = _core.lock_file(path)
    assert first is not None
    assert _core.lock_file(path) is None
    first.release()
    first.release()
    second = _core.lock_file(path)
    assert second is not None
    del second
    assert _core.lock_file(path) is not None


def test_other_processes_are_refused_until_the_holder_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert _core.lock_file(path) is None
        process.kill()
        process.wait(30)
    assert _core.lock_file(path) is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_does_not_keep_the_lock(tmp_path: Path) -> None:
    lock = _core.lock_file(tmp_path / "a.lock")
    assert lock is not None
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    lock.release()
    assert _core.lock_file(tmp_path / "a.lock") is not None
    os.write(writing, b"x")
    os.waitpid(child, 0)


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be removed")
def test_a_lock_of_a_removed_file_is_not_taken_for_that_of_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    old = _core.lock_file(path)
    path.unlink()
    new = _core.lock_file(path)
    assert old is not None
    assert new is not None
    assert _core.lock_file(path) is None


def test_errors_are_those_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        _core.lock_file(tmp_path / "missing" / "a.lock")
    assert raised.value.filename == str(tmp_path / "missing" / "a.lock")
    assert raised.value.strerror == os.strerror(raised.value.errno or 0)
