"""Many readers, a writer beside them, a fork, shared memory, and no network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from tests.process import POLAR, command, python
from tests.support.copied import copy_confirmed
from tests.support.ordinary_user import ordinary_user

QUESTION = "Who built the Fram?"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sharing") / "index"
    Index.build(POLAR / "articles", path, settings=Settings(modes="auto,text,keyword")).close()
    return path


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_after_a_fork(whole: Path, tmp_path: Path) -> None:
    code = """
import os, sys
from ketrag_fast import Index
index = Index.open(sys.argv[1])
questions = ["Who built the Fram?", "Which ship was crushed?"] * 8
wanted = [c.text for c in index.retrieve_many(questions, threads=2)]
child = os.fork()
same = [c.text for c in index.retrieve_many(questions, threads=2)] == wanted
if child == 0:
    os._exit(0 if same else 7)
assert same and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    done = python(code, str(whole), cwd=tmp_path)
    assert done.code == 0, done.err


def test_mapped_files_are_shared(whole: Path) -> None:
    if not Path("/proc/self/smaps").exists():
        pytest.skip("only Linux says which memory is shared")
    with Index.open(whole) as index:
        assert index.retrieve(QUESTION).passages
        mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(whole) in line]
    assert len(mapped) > 30
    assert all("w" not in line.split()[1] for line in mapped)


def test_read_only_index(whole: Path, tmp_path: Path) -> None:
    """A folder that nobody may write to: questions and statistics work, a build says why it does not."""
    index = copy_confirmed(whole, tmp_path / "index")
    folders = [index, *(path for path in index.rglob("*") if path.is_dir())]
    for path in [*index.rglob("*"), index]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        for argv in (["retrieve", QUESTION], ["stats"], ["stats", "--json"]):
            done = command(*argv, "-i", str(index), cwd=tmp_path)
            assert (done.code, done.err) == (0, ""), argv
        with ordinary_user():
            done = command("index", "-i", str(index), cwd=tmp_path)
        assert done.code == 1
        assert "cannot write" in done.err
    finally:
        for path in folders:
            path.chmod(0o755)


def test_full_disk(whole: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: the old index answers, the build says why."""
    index = copy_confirmed(whole, tmp_path / "index")
    code = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
from ketrag_fast import Index
from ketrag_fast.errors import StorageFull
try:
    Index.build([sys.argv[3]], sys.argv[1], rebuild=True)
except StorageFull as error:
    assert "no space left" in str(error) and error.hint
    sys.exit(9)
"""
    (tmp_path / "more.txt").write_text("Words that are new. " * 5000)
    before = Index.open(index).digest
    for limit in (100, 4_000, 60_000):
        done = python(code, str(index), str(limit), str(tmp_path / "more.txt"), cwd=tmp_path)
        assert done.code == 9, (limit, done.err)
        with Index.open(index) as opened:
            assert opened.digest == before
            assert opened.retrieve(QUESTION).passages
    assert command("index", "-i", str(index), str(tmp_path / "more.txt"), cwd=tmp_path).code == 0


def test_without_any_network(tmp_path: Path) -> None:
    code = """
import sys
def closed(event, arguments):
    if event.startswith(("socket.connect", "socket.bind", "socket.getaddrinfo", "subprocess.", "os.system",
                         "socket.sendto", "urllib.", "http.")):
        print("FORBIDDEN", event, file=sys.stderr, flush=True)
        import os
        os._exit(99)
sys.addaudithook(closed)
from ketrag_fast.apps.cli.main import main
polar = sys.argv[1]
for argv in (["index", polar + "/articles"], ["retrieve", "Who built the Fram?"],
             ["eval", polar, "--mode", "bm25,walk", "--budget", "400"], ["stats"]):
    code = main(argv)
    assert code == 0, (argv, code)
"""
    done = python(code, str(POLAR), cwd=tmp_path)
    assert done.code == 0, done.err
    assert "walk" in done.out
