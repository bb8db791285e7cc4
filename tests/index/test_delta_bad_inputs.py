"""Deltas on a bad day: two writers, a process that is killed, a full disk, hashes that collide."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import Document, Index
from ketrag_fast.building import delta, delta_difference
from ketrag_fast.errors import IndexLocked, StorageFull
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import builder_lock
from tests.index.test_large_inputs import full_disk
from tests.process import environment
from tests.support.histories import SETTINGS, answers, compare, is_delta
from tests.support.pages import built, page

pytestmark = pytest.mark.usefixtures("deltas_of_any_size")


def test_two_writers(tmp_path: Path) -> None:
    """The second is refused while the first changes; taking turns, each sees what the other did."""
    path = tmp_path / "index"
    documents = built(path)
    with Index.open(path) as one, Index.open(path) as two:
        with builder_lock(Layout(path)), pytest.raises(IndexLocked, match=str(os.getpid())):
            one.update(remove="page-003")
        done: list[int] = []

        def write(index: Index, mine: range) -> None:
            for n in mine:
                while True:
                    try:
                        index.update(add=[page(n, f"Amundsen sailed the Maud to Page {n}.")])
                    except IndexLocked:
                        continue
                    done.append(n)
                    break

        threads = [
            threading.Thread(target=write, args=(index, mine))
            for index, mine in ((one, range(6)), (two, range(6, 12)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(done) == list(range(12)) and is_delta(path)
        documents = [page(n, f"Amundsen sailed the Maud to Page {n}.") for n in range(12)]
        compare(path, documents, tmp_path / "fresh")
        one.refresh()
        two.refresh()
        assert answers(one, False) == answers(two, False)


KILLED = """
import os, signal, sys
from ketrag_fast import Document, Index
from ketrag_fast.building import delta, delta_difference
delta.LEAST = 0
before = getattr({owner}, "{name}")
def killed(*given, **named):
    os.kill(os.getpid(), signal.SIGKILL)
setattr({owner}, "{name}", killed)
with Index.open(sys.argv[1]) as index:
    index.update(add=[Document("page-004", "Amundsen sailed the Maud.", "Maud")], remove="page-006")
"""


@pytest.mark.parametrize(("owner", "name"), [("delta", "publish"), ("delta", "write_stage")])
def test_a_process_killed_between_a_delta_and_its_manifest(tmp_path: Path, owner: str, name: str) -> None:
    """Readers keep the old generation, and the same change, or another one, is that of a build."""
    path = tmp_path / "index"
    documents = built(path)
    with Index.open(path) as index:
        index.update(remove="page-001")
        before = answers(index, False)
    code = KILLED.format(owner=owner, name=name)
    child = subprocess.run([sys.executable, "-c", code, str(path)], env=environment(), check=False)
    assert child.returncode == -signal.SIGKILL
    with Index.open(path) as index:
        assert answers(index, False) == before
        changed = Document("page-004", "Amundsen sailed the Maud.", "Maud")
        index.update(add=[changed], remove="page-006")
    left = [one for one in documents if one.id not in ("page-001", "page-006")]
    left = [changed if one.id == changed.id else one for one in left]
    compare(path, left, tmp_path / "fresh")
    assert list((path / "work").iterdir()) == []


@pytest.mark.parametrize("most", [100, 3_000, 20_000])
def test_a_fold_for_which_the_disk_is_too_small(tmp_path: Path, most: int) -> None:
    """The delta stays in use; with space, the same command ends with the bytes of a build."""
    path = tmp_path / "index"
    documents = built(path, 150)
    with Index.open(path) as index:
        index.update(add=[page(7, "Amundsen sailed the Maud.")])
        documents[7] = page(7, "Amundsen sailed the Maud.")
        before = answers(index, False)
        with full_disk(most), pytest.raises(StorageFull) as caught:
            index.update(fold=True)
        assert caught.value.hint
        assert is_delta(path)
        with Index.open(path) as reader:
            assert answers(reader, False) == before
        index.update(fold=True)
        assert not is_delta(path) and answers(index, False) == before
        with Index.build(documents, tmp_path / "fresh", settings=SETTINGS) as fresh:
            assert index.digest == fresh.digest


def test_a_change_for_which_the_disk_is_too_small(tmp_path: Path) -> None:
    path = tmp_path / "index"
    documents = built(path)
    with Index.open(path) as index:
        before = answers(index, False)
        with full_disk(50), pytest.raises(StorageFull):
            index.update(add=[page(7, "Amundsen sailed the Maud.")])
        with Index.open(path) as reader:
            assert answers(reader, False) == before
        index.update(add=[page(7, "Amundsen sailed the Maud.")])
    documents[7] = page(7, "Amundsen sailed the Maud.")
    compare(path, documents, tmp_path / "fresh")


def test_hashes_that_collide_are_left_to_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two documents whose stored hashes begin alike are not told apart by them."""
    hashes = np.arange(64, dtype=np.uint8).reshape(4, 16)
    found = delta_difference._positions(hashes, hashes[[2, 0]])
    assert found is not None and found.tolist() == [2, 0]
    other = hashes.copy()
    other[3, :8] = other[1, :8]
    assert delta_difference._positions(other, other[:1]) is None
    missing = delta_difference._positions(hashes[:0], hashes[:1])
    assert missing is not None and missing.tolist() == [-1]
    path = tmp_path / "index"
    documents = built(path)
    monkeypatch.setattr(delta.Deltas, "_row", lambda *_: -1)
    with Index.open(path) as index:
        index.update(add=[page(7, "Amundsen sailed the Maud.")])
    documents[7] = page(7, "Amundsen sailed the Maud.")
    compare(path, documents, tmp_path / "fresh")


def test_the_last_metadata_goes(tmp_path: Path) -> None:
    """By a removal, or by a change; a build from scratch then has no metadata."""
    path = tmp_path / "index"
    dated = [Document(f"page-{n:03}", f"Maud in 19{n}.", "", {"year": 1900 + n}) for n in (10, 11)]
    documents = [*dated, *(page(n) for n in range(6))]
    with Index.build(documents, path, settings=SETTINGS) as index:
        index.update(remove="page-010")
        assert is_delta(path)
        index.update(add=[page(11)])
    compare(path, [page(11), *documents[2:]], tmp_path / "fresh")
