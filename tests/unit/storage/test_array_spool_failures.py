"""Files of a build that the system refuses to open: typed errors, whoever meets them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import _core
from ketrag_fast.errors import KetragError, TooManyFiles
from ketrag_fast.kernels.text import pack_texts
from ketrag_fast.storage.array_spool import ArraySpool, map_values
from ketrag_fast.storage.arrays import read_array
from ketrag_fast.storage.manifest import FileRecord

resource = pytest.importorskip("resource") if sys.platform != "win32" else None


@contextmanager
def no_more_files() -> Iterator[None]:
    """Let this process open no more files."""
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def appended(folder: Path) -> None:
    ArraySpool(folder).append("ids", np.arange(3, dtype=np.uint32))


def mapped(folder: Path) -> None:
    map_values(folder / "values", np.uint64)


def read(folder: Path) -> None:
    read_array(folder / "plain.npy", FileRecord(0, "", "<f8", (9,)))


def linked(folder: Path) -> None:
    text = b"Nansen crossed the ice."
    spans = np.array([[0, len(text)]], np.uint32)
    one, titles = np.zeros(1, np.uint32), pack_texts(["Fram"], "titles")
    texts = np.frombuffer(text, np.uint8), np.array([0, len(text)], np.uint64)
    sentence_titles = np.zeros(1, np.uint8)
    _core.links_build_runs(
        titles,
        one,
        texts,
        spans,
        one,
        spans,
        sentence_titles,
        folder,
        before=pack_texts([""], "contexts"),
        run=1,
        entries=1,
        threads=1,
    )


@pytest.mark.skipif(resource is None, reason="this system has no limit on open files to set")
@pytest.mark.parametrize("work", [appended, mapped, read, linked])
def test_no_more_files(work: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "values").write_bytes(bytes(8))
    np.save(tmp_path / "plain.npy", np.arange(9.0))
    with pytest.raises(TooManyFiles), no_more_files():
        work(tmp_path)
    if work is not mapped:
        work(tmp_path)


def test_a_file_that_went(tmp_path: Path) -> None:
    with pytest.raises(KetragError, match="values"):
        map_values(tmp_path / "values", np.uint64)
