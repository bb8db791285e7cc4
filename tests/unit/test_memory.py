"""Memory that ends is one typed error, and no build waits for a thread that never came to be."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import pytest

from ketrag_fast.base.memory import enough_memory, map_threads
from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import IndexDamaged, KetragError, OutOfMemory
from tests.process import POLAR, python


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("x.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        OutOfMemory("a kernel's own"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_however_it_is_said(error: Exception) -> None:
    with pytest.raises(OutOfMemory) as caught, enough_memory():
        raise error
    assert isinstance(caught.value, MemoryError)
    assert caught.value.hint


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EIO, "x"), ImportError("no module"), RuntimeError("x"), IndexDamaged("x"), KeyError("x")],
    ids=lambda error: type(error).__name__,
)
def test_other_errors_are_left_alone(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, enough_memory():
        raise error
    assert caught.value is error


@pytest.mark.parametrize("threads", [0, 1, 3, 50])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_together_keeps_the_order(threads: int, count: int) -> None:
    assert map_threads(lambda n: n * n, range(count), threads) == [n * n for n in range(count)]


def test_together_works_at_once_and_raises_the_first_error_at_the_end() -> None:
    inside, done = threading.Barrier(3), []

    def work(n: int) -> None:
        inside.wait(20)  # all three must be in it
        time.sleep(0.01 * (3 - n))
        done.append(n)
        if n:
            raise KeyError(n)

    with pytest.raises(KeyError, match="1"):
        map_threads(work, [0, 1, 2], 3)
    assert sorted(done) == [0, 1, 2]


def test_together_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("_thread.start_new_thread", refused)
    assert map_threads(str, [1, 2, 3], 4) == ["1", "2", "3"]


def test_a_small_file_takes_little_memory_whatever_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"x" * 70_000)
    code = """
import resource, sys
from pathlib import Path
from ketrag_fast.base.safe_io import read_regular
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + (8 << 20), resource.RLIM_INFINITY))
assert read_regular(Path(sys.argv[1]), 1 << 40) == b"x" * 70_000
"""
    if not Path("/proc/self/statm").exists():
        pytest.skip("only Linux says how much is mapped")
    done = python(code, str(tmp_path / "small"), cwd=tmp_path)
    assert done.code == 0, done.err
    with pytest.raises(OSError, match="larger"):
        read_regular(tmp_path / "small", 69_999)
    assert len(read_regular(tmp_path / "small", 70_000)) == 70_000


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux says how much is mapped")
def test_a_build_and_questions_whose_memory_ends(tmp_path: Path) -> None:
    code = """
import os, resource, shutil, sys
from pathlib import Path
from ketrag_fast import Index, Settings
from ketrag_fast.errors import OutOfMemory
settings = Settings(threads=2, modes="all", llm="heuristic")
Index.build(sys.argv[1], "whole", settings=settings).close()
digest, ends = Index.open("whole").digest, []
for more in (1 << 16, 1 << 20, 6 << 20, 20 << 20, 60 << 20, 200 << 20, 1 << 40):
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + more, resource.RLIM_INFINITY))
    shutil.rmtree("index", ignore_errors=True)
    for work in (lambda: Index.build(sys.argv[1], "index", settings=settings), lambda: Index.open("whole")):
        try:
            with work() as index:
                index.retrieve("Who led the Fram?")
                assert index.digest == digest
                ends.append("done")
        except OutOfMemory as error:
            assert error.hint
            ends.append("ended")
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
print(ends[0], ends[-1], ends[-2])
"""
    done = python(code, str(POLAR / "articles"), cwd=tmp_path)
    # The loader of the system ends the process if memory ends while it loads a library. Nothing here can
    # prevent that, but as after any other end of the process, nothing may be lost: both indexes are read.
    is_ended_by_loader = done.code == 127 and _LOADER in done.err
    if not is_ended_by_loader:
        assert (done.code, done.out.split()) == (0, ["ended", "done", "done"]), (
            done.code,
            done.out,
            done.err,
        )
    after = python(_AFTER, str(POLAR / "articles"), cwd=tmp_path)
    assert (after.code, after.out.split()) == (0, ["3", "equal"]), (
        done.err,
        after.code,
        after.out,
        after.err,
    )
    assert issubclass(OutOfMemory, KetragError) and os.name == "posix"


_LOADER = "cannot allocate memory for thread-local data"
_AFTER = """
import sys
from ketrag_fast import Index, Settings
settings = Settings(threads=2, modes="all", llm="heuristic")
with Index.open("whole") as whole:
    print(len(whole.retrieve("Who led the Fram?", mode="bm25").passages[:3]))
    with Index.build(sys.argv[1], "index", settings=settings) as index:
        assert index.retrieve("Who led the Fram?").text == whole.retrieve("Who led the Fram?").text
        print("equal" if index.digest == whole.digest else "different")
"""


@pytest.mark.skipif(os.name != "posix", reason="a signal ends the process")
def test_nothing_is_lost_when_the_process_ends_while_a_library_is_loaded(tmp_path: Path) -> None:
    """The loader ends the process in the middle of a build, as when memory ends while it loads a library."""
    code = f"""
import os, sys
from ketrag_fast import Index, Settings
settings = Settings(threads=2, modes="all", llm="heuristic")
Index.build(sys.argv[1], "whole", settings=settings).close()
def progress(event):
    if event.stage == "links" and event.finished:
        sys.stderr.write("{_LOADER}: ABORT")
        sys.stderr.flush()
        os._exit(127)
Index.build(sys.argv[1], "index", settings=settings, progress=progress)
"""
    done = python(code, str(POLAR / "articles"), cwd=tmp_path)
    assert done.code == 127 and _LOADER in done.err
    after = python(_AFTER, str(POLAR / "articles"), cwd=tmp_path)
    assert (after.code, after.out.split()) == (0, ["3", "equal"]), (after.code, after.out, after.err)
