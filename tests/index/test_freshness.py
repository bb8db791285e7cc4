"""Changes of files are noticed before a query, indexed if that is quick, and never empty an index."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from ketrag_fast import Document, Index, Settings, _core
from ketrag_fast.building import touched
from ketrag_fast.index import building, freshness
from ketrag_fast.storage import known_files
from ketrag_fast.storage.known_files import stats_of
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import builder_lock
from tests.process import command
from tests.support.changed import bundle


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "empty").mkdir()
    for name in ("a.md", "b.md", "sub/c.md"):
        (folder / name).write_text(f"# {name}\n\nThe text of {name} is about penguins.\n")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    _settle(folder)
    return folder


def _settle(folder: Path) -> None:
    """Let all files and folders have been changed long ago."""
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    time.sleep(0.05)  # what their inodes tell, too


@pytest.fixture
def index(notes: Path) -> Index:
    built = Index.build(notes, notes.parent / "index")
    assert built.freshen("never").changes == 0
    return built


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every update takes too long."""
    monkeypatch.setattr(freshness, "QUICK", -1.0)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "QUICK", 60.0)


def counts(found: freshness.Freshness) -> tuple[int, int, int]:
    return found.changed, found.added, found.removed


def test_unchanged_sources_change_nothing(index: Index) -> None:
    found = index.freshen()
    assert (found.changes, found.updated, found.line, index.generation) == (0, False, None, 1)


def test_each_kind_of_change_is_noticed(index: Index, notes: Path, slow: None) -> None:
    (notes / "a.md").write_text("# a\n\nOther words: walrus.\n")
    found = index.freshen()
    assert counts(found) == (1, 0, 0) and found.line is not None and "--fresh" in found.line
    (notes / "empty" / "d.md").write_text("# d\n\nA new file.\n")
    (notes / "sub" / "c.md").unlink()
    assert counts(index.freshen()) == (1, 1, 1)
    (notes / "picture.png").write_bytes(b"another picture")
    assert counts(index.freshen()) == (1, 1, 1), "the index has nothing of it"
    assert index.search("walrus").reason == "no_match"
    (hit,) = [one for one in index.search("penguins a.md") if one.document == "a.md"]
    assert hit.state == "changed"


def test_quick_changes_are_indexed_first(index: Index, notes: Path, quick: None) -> None:
    (notes / "a.md").write_text("# a\n\nOther words: walrus.\n")
    (notes / "empty" / "d.md").write_text("# d\n\nA new file with a narwhal.\n")
    (notes / "sub" / "c.md").unlink()
    found = index.freshen()
    assert (found.updated, found.line, index.generation) == (True, None, 2)
    assert {one.document for one in index.search("walrus narwhal")} == {"a.md", "empty/d.md"}
    assert [one.document for one in index.inspect.documents()] == ["a.md", "b.md", "empty/d.md"]
    with Index.build(notes, notes.parent / "again") as again:
        assert again.stats()["content_digest"] == index.stats()["content_digest"]


def test_an_update_reads_only_what_changed(
    index: Index, notes: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ketrag_fast.building import sources

    read = []
    known_kind = sources.known_kind
    monkeypatch.setattr(sources, "known_kind", lambda file: read.append(file.id) or known_kind(file))
    (notes / "b.md").write_text("# b\n\nOther words: walrus.\n")
    assert index.freshen().updated
    assert read == ["b.md"]
    assert [one.document for one in index.search("walrus")] == ["b.md"]


def test_ids_that_two_files_use_make_no_other_change_slow(
    notes: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ketrag_fast.building import sources

    (notes / "x.jsonl").write_text('{"_id": "7", "text": "A walrus."}\n{"_id": "8", "text": "A seal."}\n')
    (notes / "y.jsonl").write_text('{"_id": "7", "text": "A narwhal."}\n')
    _settle(notes)
    with Index.build(notes, notes.parent / "index") as index:
        read = []
        known_kind = sources.known_kind
        monkeypatch.setattr(sources, "known_kind", lambda file: read.append(file.id) or known_kind(file))
        (notes / "b.md").write_text("# b\n\nOther words: puffin.\n")
        assert index.freshen().updated and read == ["b.md"]
        assert [one.document for one in index.search("walrus")] == ["7"]
        (notes / "x.jsonl").write_text('{"_id": "8", "text": "A seal."}\n')
        assert index.freshen().updated
        assert [one.document for one in index.search("narwhal")] == ["7"]
        with Index.build(notes, notes.parent / "again") as again:
            assert again.stats()["content_digest"] == index.stats()["content_digest"]


def test_an_update_that_takes_long_is_stopped(
    index: Index, notes: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query does not wait long, and the next ones do not wait until a build has indexed the changes."""
    builds: list[bool] = []
    build_index = building.build_index
    monkeypatch.setattr(
        building, "build_index", lambda *a, **k: (builds.append(True), build_index(*a, **k))[1]
    )
    monkeypatch.setattr(freshness, "LONGEST", 0.0)
    (notes / "d.md").write_text("# d\n\nA walrus.\n")
    for _ in range(2):
        found = index.freshen("auto")
        assert not found.updated and found.line is not None and "takes longer" in found.line
        assert index.generation == 1
    assert len(builds) == 1
    assert index.freshen("always").updated and index.generation == 2
    monkeypatch.setattr(freshness, "LONGEST", 60.0)
    (notes / "e.md").write_text("# e\n\nAnother walrus.\n")
    assert index.freshen("auto").updated and len(builds) == 3


def test_settings_decide(index: Index, notes: Path, slow: None) -> None:
    (notes / "a.md").write_text("# a\n\nOther words: walrus.\n")
    with Index.open(index.path, settings=Settings(refresh="never")) as never:
        assert never.freshen().changes == 0
    with Index.open(index.path, settings=Settings(refresh="always")) as always:
        assert always.freshen().updated and always.generation == 2


def test_servers_check_now_and_then(index: Index, notes: Path, slow: None) -> None:
    assert index.freshen(every=60).changes == 0
    (notes / "a.md").write_text("# a\n\nOther words: walrus.\n")
    assert index.freshen(every=60).changes == 0
    assert index.freshen().changes == 1


def test_missing_and_emptied_folders_empty_nothing(index: Index, notes: Path, quick: None) -> None:
    notes.rename(notes.parent / "away")
    found = index.freshen()
    assert (found.changes, found.missing, found.updated) == (0, (str(notes),), False)
    assert found.line is not None and "stay in the index" in found.line
    notes.mkdir()  # where the disk was mounted
    found = index.freshen()
    assert (found.removed, found.updated) == (3, False)
    assert found.line is not None and "gone" in found.line
    assert not index.freshen("always").updated
    assert len(index.inspect.documents()) == 3


def test_a_disk_that_is_away_is_not_outvoted_by_other_sources(notes: Path, quick: None) -> None:
    disk = notes.parent / "disk"
    disk.mkdir()
    for name in "xyz":
        (disk / f"{name}.md").write_text(f"# {name}\n\nOn the disk.\n")
    for number in range(20):
        (notes / f"more{number}.md").write_text(f"# {number}\n\nOne more.\n")
    for folder in (notes, disk):
        _settle(folder)
    with Index.build([notes, disk], notes.parent / "two") as index:
        for path in disk.iterdir():
            path.unlink()
        found = index.freshen()
        assert (found.emptied, found.updated) == ((str(disk),), False)
        (disk / "x.md").write_text("# x\n\nOn the disk.\n")
        (disk / "y.md").write_text("# y\n\nOn the disk.\n")
        assert index.freshen().updated, "one of three was deleted"
        assert len(index.inspect.documents()) == 25


def test_other_writers_and_read_only_indexes_are_answered_stale(
    index: Index, notes: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "a.md").write_text("# a\n\nOther words: walrus.\n")
    with builder_lock(Layout(index.path)):
        found = index.freshen()
        assert not found.updated and "another process" in str(found.line)
    from ketrag_fast.errors import ReadOnly
    from ketrag_fast.index import building

    def refuse(*_: object, **__: object) -> None:
        raise ReadOnly("no")

    monkeypatch.setattr(building, "build_index", refuse)
    assert "cannot be written" in str(index.freshen().line)
    assert index.generation == 1


def test_copies_on_other_machines_are_not_checked(index: Index, notes: Path) -> None:
    bundle(index.path, notes.parent / "file")
    Index.unbundle(notes.parent / "file", notes.parent / "copy")
    shutil.rmtree(notes)
    with Index.open(notes.parent / "copy") as copy:
        assert copy.freshen().line is None


def test_globs_files_and_documents_of_programs(tmp_path: Path, notes: Path, slow: None) -> None:
    sources = [str(notes / "*.md"), notes / "sub" / "c.md", Document("own", "A penguin of a program.")]
    with Index.build(sources, tmp_path / "ix") as index:
        assert index.freshen().changes == 0
        (notes / "new.md").write_text("# new\n\nNew.\n")
        (notes / "sub" / "c.md").write_text("# c\n\nChanged.\n")
        assert counts(index.freshen()) == (1, 1, 0)


def test_an_index_without_known_files_knows_nothing(index: Index, notes: Path) -> None:
    with sqlite3.connect(index.path / "index.sqlite") as db:
        db.execute("DROP TABLE files")
    (notes / "a.md").write_text("# a\n\nOther words: walrus.\n")
    assert index.freshen().changes == 0
    with Index.build(notes, index.path) as again:
        assert again.search("walrus") and again.freshen().changes == 0


def test_a_purge_leaves_no_names(index: Index, notes: Path) -> None:
    (notes / "b.md").unlink()
    index.update(remove="b.md", purge=True)
    assert not any(b"b.md" in path.read_bytes() for path in index.path.glob("*.stamps"))


def test_commands_say_what_changed(notes: Path, tmp_path: Path) -> None:
    assert command("index", "notes", cwd=tmp_path).code == 0
    (notes / "a.md").write_text("# a\n\nOther words: walrus.\n")
    for argv in (("search", "walrus"), ("retrieve", "walrus"), ("grep", "walrus"), ("ask", "walrus?")):
        assert "walrus" not in command(*argv, "--stale", cwd=tmp_path).out.replace("walrus?", ""), argv
    assert "walrus" in command("search", "walrus", "--fresh", cwd=tmp_path).out
    assert command("search", "walrus", "--fresh", "--stale", cwd=tmp_path).code == 2


def test_another_content_with_the_same_size_and_time_is_found(index: Index, notes: Path) -> None:
    path = notes / "a.md"
    about, text = path.stat(), path.read_text()
    path.write_text(text.replace("penguins", "walruses"))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert path.stat().st_size == about.st_size
    assert index.freshen().updated and [one.document for one in index.grep("walruses")] == ["a.md"]


def test_check_compares_contents(index: Index, notes: Path) -> None:
    """As on a system without inodes: everything that is known of the file is as it was."""
    (notes / "a.md").write_text("# a\n\nOther words: walrus.\n")
    time.sleep(0.05)
    (stat,) = stats_of([str(notes / "a.md")])
    with sqlite3.connect(index.path / "index.sqlite") as db:
        db.execute("UPDATE files SET stat = ? WHERE file = 'a.md'", (stat,))
    assert index.freshen().changes == 0
    with Index.build([], index.path) as plain:
        assert not plain.search("walrus")
    with Index.build([], index.path, check=True) as checked:
        assert [one.document for one in checked.search("walrus")] == ["a.md"]


def test_touched_files_are_hashed_once(
    index: Index, notes: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    digests = touched.digests_of
    monkeypatch.setattr(
        touched, "digests_of", lambda paths, root: hashed.extend(paths) or digests(paths, root)
    )
    for path in notes.rglob("*.md"):
        os.utime(path)
    time.sleep(0.05)
    for _ in range(2):
        found = index.freshen()
        assert (found.changes, found.updated, found.line, index.generation) == (0, False, None, 1)
        assert len(hashed) == 3


def test_a_file_that_was_read_in_part_just_after_an_edit_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next change may have the same time, so its content is compared, though it was not read whole."""
    monkeypatch.setattr(known_files, "_FINE", 10**12)
    folder = tmp_path / "records"
    folder.mkdir()
    file = folder / "a.jsonl"
    file.write_text('{"id": "one", "text": "Penguins swim."}\nnot JSON\n')
    with Index.build(folder, tmp_path / "index") as index:
        assert index.report is not None and [row.document for row in index.report.failures] == ["a.jsonl:2"]
        assert (index.freshen("always").changes, index.generation) == (0, 1)
        file.write_text('{"id": "one", "text": "Penguins wade."}\nnot JSON\n')
        assert (index.freshen("always").changes, index.generation) == (1, 2)
        assert (index.freshen("always").changes, index.generation) == (0, 2)


def test_many_touched_files_are_compared_in_several_looks(
    index: Index, notes: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look stores what it learned, so that the next one continues; real changes do not wait for it."""
    monkeypatch.setattr(touched, "_BATCH", 1)
    monkeypatch.setattr(freshness, "COMPARE", 0.0)
    for path in notes.rglob("*.md"):
        os.utime(path)
    time.sleep(0.05)
    first = index.freshen()
    assert first.is_pending and "2 files with new times" in str(first.line)
    (notes / "d.md").write_text("# d\n\nA walrus.\n")
    assert index.freshen().updated and [one.document for one in index.search("walrus")] == ["d.md"]
    (notes / "sub" / "c.md").write_text("# sub/c.md\n\nThe text of sub/c.md is about narwhal.\n")
    looks = [index.freshen() for _ in range(4)]
    assert [one.updated for one in looks].count(True) == 1 and looks[-1].line is None
    assert [one.document for one in index.grep("narwhal")] == ["sub/c.md"]
    generation = index.generation
    with Index.open(index.path) as again:
        assert (again.freshen().line, again.generation) == (None, generation)


def test_touched_files_of_an_index_that_cannot_be_written_are_no_changes(
    index: Index, notes: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ketrag_fast.errors import ReadOnly
    from ketrag_fast.storage.known_files import FileTable

    def refuse(*_: object) -> None:
        raise ReadOnly("no")

    monkeypatch.setattr(FileTable, "set_stats", refuse)
    for path in notes.rglob("*.md"):
        os.utime(path)
    time.sleep(0.05)
    assert [index.freshen().line for _ in range(2)] == [None, None]


def test_times_of_a_clock_that_went_back_are_compared_once(
    index: Index, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    digests = touched.digests_of
    monkeypatch.setattr(
        touched, "digests_of", lambda paths, root: hashed.extend(paths) or digests(paths, root)
    )
    for path in notes.rglob("*.md"):
        os.utime(path, (4_000_000_000, 4_000_000_000))
    time.sleep(0.05)
    for _ in range(2):
        assert index.freshen().line is None and len(hashed) == 3
    (notes / "a.md").write_text("# a.md\n\nThe text of a.md is about walruses.\n")
    assert index.freshen("always").updated and [one.document for one in index.grep("walruses")] == ["a.md"]


def test_touched_files_count_for_nothing(index: Index, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many they are, they are looked at before the next answer, and quiet then."""
    monkeypatch.setattr(freshness, "QUICK", 0.0)
    for path in notes.rglob("*.md"):
        os.utime(path)
    time.sleep(0.05)
    assert (index.freshen().changes, index.generation) == (0, 1)


def test_a_folder_replaced_by_a_file(index: Index, notes: Path, quick: None) -> None:
    shutil.rmtree(notes / "sub")
    (notes / "sub").write_text("A file with the name of the folder, about walruses.\n")
    assert index.freshen().updated
    with Index.build(notes, notes.parent / "other") as other:
        assert index.stats()["content_digest"] == other.stats()["content_digest"]


def test_what_cannot_be_read_keeps_its_documents(notes: Path, tmp_path: Path) -> None:
    """Run without the rights of an administrator, who can read everything."""
    drop = [
        "setpriv",
        "--bounding-set=-dac_override,-dac_read_search",
        "--inh-caps=-dac_override,-dac_read_search",
    ]
    prefix = drop if os.geteuid() == 0 else []
    if prefix and shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        line = [*prefix, sys.executable, "-m", "ketrag_fast", *argv]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert run("index", "notes").returncode == 0
    for name in ("sub", "b.md"):
        (notes / name).chmod(0)
    try:
        for _ in range(2):
            done = run("index", "notes")
            assert done.returncode == 3 and "up to date" in done.stdout, done
            assert "Permission denied; its document stays in the index" in done.stderr
        found = run("search", "penguins", "--files").stdout
        assert "c.md" in found and "b.md" in found
    finally:
        for name in ("sub", "b.md"):
            (notes / name).chmod(0o755)
    (notes / "sub" / "c.md").write_text("# c\n\nNow about walruses.\n")
    assert "c.md" in run("search", "walruses", "--files").stdout
    assert run("index", "notes").returncode == 0


def test_a_disk_that_hangs_is_answered_from_what_is_there(
    index: Index, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking up a file of such a disk does not return."""
    end = threading.Event()
    monkeypatch.setattr(_core, "changed_files", lambda *_: end.wait(60))
    monkeypatch.setattr(_core, "file_stats", lambda *_: end.wait(60))
    monkeypatch.setattr(freshness, "LOOK", 0.1)
    found = index.freshen()
    assert not found.updated and "does a disk or a server not answer" in str(found.line)
    assert index.search("penguins")
    end.set()


def test_a_full_disk_is_answered_from_what_is_there(
    index: Index, notes: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ketrag_fast.errors import StorageFull
    from ketrag_fast.storage.tables import Tables

    def refuse(*_: object, **__: object) -> None:
        raise StorageFull("no space is left on the disk")

    (notes / "a.md").write_text("# a\n\nOther words: walrus.\n")
    with monkeypatch.context() as full:
        full.setattr(Tables, "set_known_files", refuse)
        found = index.freshen()
    assert not found.updated and "no space is left" in str(found.line) and index.generation == 1
    assert not index.search("walrus") and len(index.search("penguins")) == 3
    assert index.freshen().updated and index.search("walrus")


def test_a_file_whose_reading_hangs_delays_no_answer(
    index: Index, notes: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk lists its files from a cache, but does not answer when one is read."""
    end, opened = threading.Event(), []

    def open_regular(path: Path, root: Path | None) -> BinaryIO:
        opened.append(path.name)
        end.wait(60)
        return path.open("rb")

    monkeypatch.setattr(freshness, "open_regular", open_regular)
    monkeypatch.setattr(freshness, "READ", 0.1)
    (notes / "a.md").write_text("# a\n\nOther words: walrus.\n")
    begin = time.monotonic()
    for _ in range(3):
        line = index.freshen().line
        assert line is not None and "(a.md); reading them takes too long" in line
        assert index.search("walrus").reason == "no_match" and index.search("penguins")
        assert not index.grep("walrus"), "grep does not read the file either"
    assert time.monotonic() - begin < 30 and opened == ["a.md"]
    end.set()
    while not index.freshen().updated:
        assert time.monotonic() - begin < 60
    assert [one.document for one in index.search("walrus")] == ["a.md"]


def test_an_index_without_sources_is_looked_at_once_for_each_generation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look opens the tables on a thread, which takes longer than a query."""
    looks: list[Path] = []
    find = freshness.find

    def counted(folder: Path, *arguments: float) -> Any:
        looks.append(folder)
        return find(folder, *arguments)

    monkeypatch.setattr(freshness, "find", counted)
    with Index.build([Document("a", "The text is about penguins.", "")], tmp_path / "ix") as index:
        for _ in range(3):
            assert not index.freshen().changes
        assert len(looks) == 1
        notes = tmp_path / "notes"
        notes.mkdir()
        (notes / "b.md").write_text("The text is about the walrus.\n")
        Index.build([notes], tmp_path / "ix", replace=True).close()  # as another process does
        (notes / "b.md").write_text("The text is about the narwhal.\n")
        assert index.freshen().updated
        assert index.retrieve("narwhal").passages
        assert len(looks) > 1
