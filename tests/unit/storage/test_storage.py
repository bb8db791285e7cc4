from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast.errors import (
    IndexDamaged,
    IndexIncompatible,
    IndexMissing,
    InputError,
    KetragError,
    OutOfMemory,
    ReadOnly,
    StorageFailed,
    StorageFull,
)
from ketrag_fast.storage import durable
from ketrag_fast.storage.arrays import Arrays, write_arrays
from ketrag_fast.storage.checksum import content_of
from ketrag_fast.storage.generation import current_number, open_current, publish
from ketrag_fast.storage.io_errors import convert_os_error, writing
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import builder_lock
from ketrag_fast.storage.manifest import Manifest, StageRecord, content_digest
from ketrag_fast.storage.tables import Tables
from ketrag_fast.types import Document, Failure


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path / "an index é")
    made.create()
    return made


ARRAYS = {
    "ids": np.arange(7, dtype=np.uint32),
    "vectors": np.arange(12, dtype=np.float32).reshape(3, 4),
    "none": np.zeros((0, 4), np.float32),
    "scalar": np.array(5, np.int64),
}


def release(layout: Layout, value: int = 0) -> Manifest:
    folder = layout.work / f"things-{value}"
    folder.mkdir()
    files = write_arrays(folder, {**ARRAYS, "value": np.array([value])})
    record = StageRecord("things", 1, f"print-{value}", 0.5, files)
    return publish(layout, [(folder, record)], settings={"knn_k": 0}, documents={"count": 1}, version="0")


def test_arrays_come_back_mapped_and_read_only(tmp_path: Path) -> None:
    records = write_arrays(tmp_path, ARRAYS)
    found = Arrays(tmp_path, records)
    assert sorted(found) == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert not found[name].flags.writeable
        assert type(found[name]) is np.ndarray
    assert found["ids"] is found["ids"]


def test_bytes_do_not_depend_on_the_array_in_memory(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.mkdir()
    b.mkdir()
    matrix = np.arange(6, dtype="<f4").reshape(2, 3)
    first = write_arrays(a, {"m": matrix})
    second = write_arrays(b, {"m": np.asfortranarray(matrix).astype(">f4")})
    assert first == second
    assert (a / "m.npy").read_bytes()[:8] == b"\x93NUMPY\x01\x00"


def test_objects_and_strange_names_are_not_stored(tmp_path: Path) -> None:
    for array in (np.array([{}]), np.array(["text"]), np.zeros(2, [("a", "i4")])):
        with pytest.raises(InputError, match="not stored"):
            write_arrays(tmp_path, {"x": array})
    for name in ("../x", "", "X y", "manifest.json"):
        with pytest.raises(InputError, match="name of an array"):
            write_arrays(tmp_path, {name: ARRAYS["ids"]})


def test_publish_and_open(layout: Layout) -> None:
    with pytest.raises(IndexMissing, match="no index"):
        open_current(layout)
    manifest = release(layout)
    opened = open_current(layout)
    assert opened.manifest == manifest
    assert (opened.number, current_number(layout)) == (1, 1)
    np.testing.assert_array_equal(opened.stages["things"]["vectors"], ARRAYS["vectors"])
    assert oct(layout.root.stat().st_mode & 0o777) == "0o700"
    about = (layout.generation(1) / "manifest.json").stat()
    for verify in ("full", "blocks", "sizes"):
        found = open_current(layout, verify)
        assert (found.verify, found.stamp) == (verify, (about.st_ino, about.st_mtime_ns))


def test_digest_depends_on_content_alone(layout: Layout) -> None:
    first, second = release(layout, 1), release(layout, 2)
    assert first.digest != second.digest
    records = list(first.stages.values())
    other = StageRecord("more", 1, "f", 0, {"x": records[0].files["ids"]})
    assert content_digest([records[0], other]) == content_digest([other, records[0]])
    slower = StageRecord("things", 1, "other", 99.0, records[0].files)
    assert content_digest([slower]) == content_digest(records)


@pytest.mark.parametrize("name", ["ids", "vectors", "none", "scalar", "value"])
def test_every_truncation_and_every_flipped_bit_is_seen(layout: Layout, name: str) -> None:
    release(layout)
    path = layout.generation(1) / "things" / f"{name}.npy"
    whole = path.read_bytes()
    for keep in range(0, len(whole), 13):
        path.write_bytes(whole[:keep])
        with pytest.raises(IndexDamaged, match="were written"):
            open_current(layout, "sizes")
    for at in range(0, len(whole), 11):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << (at % 8)
        path.write_bytes(flipped)
        with pytest.raises(IndexDamaged, match=rf"{name}\.npy.*checksum"):
            open_current(layout, "full")
        things = open_current(layout).stages["things"]
        for _ in range(2):
            with pytest.raises(IndexDamaged, match=rf"{name}\.npy.*checksum"):
                things[name]
        assert all(things[other] is not None for other in things if other != name)
    path.write_bytes(whole)
    open_current(layout, "full")


def test_sizes_alone_leave_headers_to_the_mapping(layout: Layout) -> None:
    release(layout)
    path = layout.generation(1) / "things" / "ids.npy"
    path.write_bytes(path.read_bytes().replace(b"<u4", b"<i4"))
    opened = open_current(layout, "sizes")
    with pytest.raises(IndexDamaged, match="holds <i4"):
        opened.stages["things"]["ids"]
    path.write_bytes(path.read_bytes().replace(b"<i4", b"|O8"))
    with pytest.raises(IndexDamaged):
        open_current(layout, "sizes").stages["things"]["ids"]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('"format": 5', '"format": 3', IndexIncompatible),
        ('"format": 5', '"format": 0', IndexIncompatible),
        ('"seal": ', '"other": ', IndexDamaged),
        ('"format": 5', '"format": null', IndexDamaged),
        ('"ids": {', '"../ids": {', IndexDamaged),
        ('"name": "things"', '"name": "../things"', IndexDamaged),
        ('"shape": [', '"shape": ["x", ', IndexDamaged),
        ('"checksum": "', '"checksum": "other-', IndexIncompatible),
        ('"stages": [', '"stages": [3,', IndexDamaged),
    ],
)
def test_altered_manifest(layout: Layout, old: str, new: str, error: type[KetragError]) -> None:
    release(layout)
    path = layout.generation(1) / "manifest.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(error):
        open_current(layout)


STEPS = ("link_or_copy", "sync_folder", "write_json", "move_folder", "replace_file")


@pytest.mark.parametrize("step", STEPS)
def test_publication_cut_short_at_each_step(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    release(layout, 1)

    class Power(BaseException):
        pass

    def cut(*_: object) -> None:
        raise Power

    with monkeypatch.context() as patched:
        patched.setattr(f"ketrag_fast.storage.generation.{step}", cut)
        with pytest.raises(Power):
            release(layout, 2)
    assert int(open_current(layout).stages["things"]["value"][0]) == 1
    shutil.rmtree(layout.work / "things-2")
    release(layout, 2)
    assert int(open_current(layout).stages["things"]["value"][0]) == 2


def test_where_there_are_no_hard_links(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(durable.os, "link", refuse)
    release(layout, 3)
    assert int(open_current(layout).stages["things"]["value"][0]) == 3


def test_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(ReadOnly, match=r"holds other files \(thesis\.tex"):
        Layout(tmp_path).create()
    with pytest.raises(ReadOnly, match="is a file"):
        Layout(tmp_path / "thesis.tex").create()
    with pytest.raises(ReadOnly):
        Layout(tmp_path / "thesis.tex" / "index").create()


def test_real_full_disk_and_real_read_only_place() -> None:
    full = Path("/dev/full")
    if full.exists():
        with pytest.raises(StorageFull, match="no space left"), writing(full), full.open("wb") as file:
            file.write(b"x")
            file.flush()
    if Path("/proc/self").exists():
        with pytest.raises((ReadOnly, OSError)):
            Layout(Path("/proc/an-index")).create()


@pytest.mark.skipif(os.name == "nt", reason="needs limits of Unix")
@pytest.mark.parametrize("size", [100, 70_000])
def test_no_room_for_an_array(tmp_path: Path, size: int) -> None:
    code = (
        "import sys, resource, numpy as np\n"
        "from pathlib import Path\n"
        "from ketrag_fast.errors import StorageFull\n"
        "from ketrag_fast.storage.arrays import write_arrays\n"
        "from ketrag_fast.storage.io_errors import writing\n"
        "limit = int(sys.argv[2])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
        "try:\n"
        "    with writing(Path(sys.argv[1])): write_arrays(Path(sys.argv[1]), {'x': np.ones(100_000)})\n"
        "except StorageFull as error: sys.stdout.write(error.hint)\n"
    )
    root = Path(__file__).parents[3] / "python"
    command = [sys.executable, "-c", code, str(tmp_path), str(size)]
    env = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert "free some space" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (errno.ENOSPC, StorageFull),
        (errno.EACCES, ReadOnly),
        (errno.EROFS, ReadOnly),
        (errno.EPERM, ReadOnly),
        (errno.ENOTDIR, ReadOnly),
        (errno.EIO, StorageFailed),
        (errno.ENOMEM, OutOfMemory),
        (errno.EINTR, None),
    ],
)
def test_system_errors(code: int, error: type[KetragError] | None) -> None:
    found = convert_os_error(OSError(code, "reason", "file.npy"), Path("x"))
    assert found is None if error is None else type(found) is error
    assert found is None or found.hint


def test_the_lock_of_a_dead_builder_is_free(layout: Layout) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom ketrag_fast.storage.layout import Layout\n"
        "from ketrag_fast.storage.lock import builder_lock\n"
        "with builder_lock(Layout(Path(sys.argv[1]))): os._exit(9)\n"
    )
    root = Path(__file__).parents[3] / "python"
    command = [sys.executable, "-c", code, str(layout.root)]
    assert subprocess.run(command, env={**os.environ, "PYTHONPATH": str(root)}, check=False).returncode == 9
    assert layout.owner.exists()
    with builder_lock(layout):
        pass


DOCUMENT = Document("a/é.md", "Text 😀\r\nline", "Title", {"b": 1, "a": ["ü"]})


def test_tables_round_trip(layout: Layout) -> None:
    with Tables(layout.tables) as tables, tables.transaction():
        tables.add_sources([("path", "docs", "/docs")])
        tables.add_sources([("path", "docs again", "/docs")])
        tables.add_sources([("documents", "documents", "")])
        first = Document("z", "first by source")
        tables.insert([(DOCUMENT, 2, 0, content_of(DOCUMENT)), (first, 1, 5, content_of(first))])
        tables.set_settings({"knn_k": 0, "top": None, "cut": "windows"})
        tables.set_failures([Failure("x", "document", "bad")])
        tables.add_run("2026-01-01T00:00:00+00:00", 1.5, 1, True, "{}")
    with Tables(layout.tables) as tables:
        assert [(row.number, row.label) for row in tables.sources()] == [(1, "docs"), (2, "documents")]
        assert list(tables.documents()) == [Document("z", "first by source"), DOCUMENT]
        assert list(tables.column("text")) == [b"first by source", DOCUMENT.text.encode()]
        assert tables.settings() == {"knn_k": 0, "top": None, "cut": "windows"}
        assert tables.failures() == [Failure("x", "document", "bad")]
        assert tables.known()["a/é.md"].content == content_of(DOCUMENT)


def test_transaction_is_all_or_nothing(layout: Layout) -> None:
    with Tables(layout.tables) as tables:
        with pytest.raises(KeyboardInterrupt), tables.transaction():
            tables.add_sources([("path", "docs", "/docs")])
            raise KeyboardInterrupt
        assert tables.sources() == []


def test_full_database(layout: Layout) -> None:
    with Tables(layout.tables) as tables:
        tables._db.execute("PRAGMA max_page_count = 20")
        with pytest.raises(StorageFull), tables.transaction():
            tables.add_sources([("path", "docs", "/docs")])
            tables.insert([(Document("a", "x" * 1_000_000), 1, 0, "cc")])
        assert tables.sources() == []


def test_damaged_newer_and_read_only_database(layout: Layout) -> None:
    layout.tables.write_bytes(b"this is no database at all" * 100)
    with pytest.raises(IndexDamaged, match="damaged"):
        Tables(layout.tables)
    layout.tables.unlink()
    Tables(layout.tables).close()
    db = sqlite3.connect(layout.tables, isolation_level=None)
    db.execute("PRAGMA query_only = ON")
    with pytest.raises(ReadOnly), writing(layout.tables):
        db.execute("INSERT INTO settings VALUES ('a', 'b')")
    db.execute("PRAGMA query_only = OFF")
    db.execute("PRAGMA user_version = 6")
    db.close()
    with pytest.raises(IndexIncompatible, match="format 5"):
        Tables(layout.tables)


def test_content_hash_sees_every_part() -> None:
    base = content_of(DOCUMENT)
    variants = [
        Document("b", DOCUMENT.text, DOCUMENT.title, DOCUMENT.metadata),
        Document(DOCUMENT.id, "other", DOCUMENT.title, DOCUMENT.metadata),
        Document(DOCUMENT.id, DOCUMENT.text, "other", DOCUMENT.metadata),
        Document(DOCUMENT.id, DOCUMENT.text, DOCUMENT.title, {}),
    ]
    assert len({base, *map(content_of, variants)}) == 5
    assert content_of(Document(*(DOCUMENT.id, DOCUMENT.text, "Title"), {"a": ["ü"], "b": 1})) == base
