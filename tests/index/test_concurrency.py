"""Others are at work on the same folder, the same documents, the same clock."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import IndexLocked, IndexMissing
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import builder_lock
from ketrag_fast.storage.tables import Tables
from tests.process import command
from tests.support.changed import bundle, reembed

VERSIONS = tuple(f"Nansen{n} built the Fram{n} in Larvik{n}. " * (n + 1) for n in range(6))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("Nansen built the Fram in Larvik.")
    (folder / "b.txt").write_text("Amundsen sailed the Maud east.")
    return folder


def test_a_reader_on_a_removed_index(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "index"
    with Index.build(source, path) as index:
        before = index.retrieve("Who built the Fram?").text
        shutil.rmtree(path)
        for _ in range(2):
            with pytest.raises(IndexMissing):
                index.refresh()
            assert index.retrieve("Who built the Fram?").text == before
            assert index.retrieve("Who sailed the Maud?", mode="bm25").passages[0].document == "b.txt"
        with pytest.raises(IndexMissing):
            index.update(remove="a.txt")
        assert not path.exists()
        # One that is built there anew is taken up, though its generation has the same number.
        (source / "a.txt").write_text("Colin Archer built the Fram.")
        Index.build(source, path).close()
        assert index.refresh()
        assert index.generation == 1
        assert not index.refresh()
        assert "Colin Archer" in index.retrieve("Who built the Fram?").text


def test_who_may_see_a_part_takes_up_what_is_published(tmp_path: Path) -> None:
    path = tmp_path / "index"
    texts = {1: "Nansen built the Fram.", 2: "Amundsen sailed the Maud."}
    Index.build([Document(f"d{n}", text, metadata={"n": n}) for n, text in texts.items()], path).close()
    with Index.open(path, settings=Settings(allow="n<=2")) as index:
        assert not index.refresh()
        for number in (3, 4, 5):  # its own generation has the number 1 each time
            more = Document(f"d{number}", f"Ship{number} sank.", metadata={"n": number % 2 + 1})
            with Index.open(path) as whole:
                whole.update(add=more)
            assert index.refresh()
            assert not index.refresh()
            assert index.retrieve(f"Ship{number}", mode="bm25").passages[0].document == more.id


@pytest.mark.parametrize("moment", [-(2**31), 4_000_000_000], ids=["1901", "2096"])
def test_clocks_that_jump(source: Path, tmp_path: Path, moment: int) -> None:
    """Content alone says what changed: not a file's time, which may stay, or go anywhere."""
    path, file = tmp_path / "index", source / "a.txt"
    with Index.build(source, path) as index:
        digest = index.digest
    os.utime(file, (moment, moment))
    with Index.build([], path) as index:
        assert index.report is not None
        assert (index.report.changed, index.digest) == (False, digest)
    about = file.stat()
    file.write_text("Archer built the Fram in Larvik.")
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (about.st_size, about.st_mtime_ns)
    with Index.build([], path) as index:
        assert index.report is not None
        assert index.report.updated == 1
        assert "Archer" in index.retrieve("Who built the Fram?").text


@pytest.mark.parametrize("way", ["replaced", "in place"])
def test_a_document_that_changes_while_builds_read_it(source: Path, tmp_path: Path, way: str) -> None:
    path, file = tmp_path / "index", source / "c.txt"
    file.write_text(VERSIONS[0])
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for text in VERSIONS:
                if way == "replaced":
                    (tmp_path / "aside").write_text(text)
                    (tmp_path / "aside").replace(file)
                else:
                    file.write_text(text)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(6):
            with Index.build(source, path) as index:
                assert index.report is not None
                failed = {failure.document for failure in index.report.failures}
                assert failed <= {"c.txt"}
                assert index.retrieve("Who sailed the Maud?").passages[0].document == "b.txt"
                with Tables(path / "index.sqlite", read_only=True) as tables:
                    texts = {one.id: one.text.strip() for one in tables.documents()}
                # Never a mixture of two: written in place it may end early, and then the report says so.
                text = texts.get("c.txt", "")
                assert any(version.startswith(text) for version in VERSIONS), text
                assert failed or way == "in place" or text in map(str.strip, VERSIONS)
    finally:
        stop.set()
        writer.join()
    file.write_text(VERSIONS[2])
    with Index.build(source, path) as index, Index.build(source, tmp_path / "fresh") as fresh:
        assert index.digest == fresh.digest


def test_changes_while_another_builds(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "index"
    with Index.build(source, path) as index:
        digest = index.digest
        with builder_lock(Layout(path)):
            for change in (
                lambda: Index.build(source, path),
                lambda: index.update(remove="a.txt"),
                lambda: index.update(remove="a.txt", purge=True),
                lambda: reembed(path),
                lambda: bundle(path, tmp_path / "file"),
            ):
                with pytest.raises(IndexLocked, match=str(os.getpid())) as caught:
                    change()
                assert caught.value.hint
            done = command("remove", "a.txt", "-i", str(path), cwd=tmp_path)
            assert (done.code, "another process is building" in done.err) == (1, True), done
        assert not (tmp_path / "file").exists()
        assert not index.refresh()
        assert Index.open(path).digest == digest
