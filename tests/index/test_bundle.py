"""An index as one file: the same index on the other side, or a typed error and nothing."""

from __future__ import annotations

import io
import json
import random
import tarfile
from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import ConfigError, IndexDamaged, IndexIncompatible, KetragError, ReadOnly

DOCUMENTS = [Document(f"d{i}", f"The harbour of number {i} froze in winter.", f"Port {i}") for i in range(20)]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    Index.build(DOCUMENTS, tmp_path / "ix").close()
    Index.bundle(tmp_path / "ix", tmp_path / "ix.bundle")
    return tmp_path / "ix.bundle"


def test_what_is_carried_is_the_same_index(made: Path, tmp_path: Path) -> None:
    assert main(["unbundle", str(made), "-i", str(tmp_path / "far" / "away")]) == 0
    with Index.open(tmp_path / "ix") as here, Index.open(tmp_path / "far" / "away") as there:
        assert here.digest == there.digest
        assert here.retrieve("which harbour froze").text == there.retrieve("which harbour froze").text
        # It can be built upon, and nothing is done that was done.
        report = there.update(add=Document("new", "A new harbour.", "New"))
        assert (report.documents, report.added) == (21, 1)
    assert main(["doctor", "-i", str(tmp_path / "far" / "away")]) == 0
    assert not [p for p in (tmp_path / "far").iterdir() if p.name != "away"]


def test_it_is_equal_for_equal_indexes_and_says_nothing_of_this_machine(made: Path, tmp_path: Path) -> None:
    first = made.read_bytes()
    Index.bundle(tmp_path / "ix", made, replace=True)
    assert made.read_bytes() == first
    with tarfile.open(made) as tar:
        assert {(m.uid, m.gid, m.uname, m.mtime) for m in tar} == {(0, 0, "", 0)}


def test_places_that_are_taken(made: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="already exists"):
        Index.bundle(tmp_path / "ix", made)
    with pytest.raises(ReadOnly, match="already exists"):
        Index.unbundle(made, tmp_path / "ix")


def test_damage_is_found_and_nothing_is_left(made: Path, tmp_path: Path) -> None:
    whole = made.read_bytes()
    dice = random.Random(4)
    spoiled = [whole[: len(whole) * k // 7] for k in range(7)]
    for _ in range(60):
        at = dice.randrange(len(whole))
        spoiled.append(whole[:at] + bytes([whole[at] ^ 1 << dice.randrange(8)]) + whole[at + 1 :])
    for number, data in enumerate(spoiled):
        made.write_bytes(data)
        target = tmp_path / f"t{number}"
        try:
            Index.unbundle(made, target)
        except KetragError:
            assert not target.exists()
        else:  # a bit of a header or of padding that says nothing
            with Index.open(target) as index, Index.open(tmp_path / "ix") as same:
                assert index.digest == same.digest
    assert not list(tmp_path.glob(".unbundle-*"))


def archive(path: Path, members: dict[str, bytes], about: object, kind: bytes = tarfile.REGTYPE) -> None:
    with tarfile.open(path, "w") as tar:
        for name, data in {"bundle.json": json.dumps(about).encode(), **members}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.type = tarfile.REGTYPE if name == "bundle.json" else kind
            info.linkname = "/etc/passwd" if info.type == tarfile.SYMTYPE else ""
            tar.addfile(info, io.BytesIO(data))


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/etc/evil",
        "gen-000001/../../evil",
        "other/file",
        "index.lock",
        "gen-000001",
        "gen-000001\\..\\x",
    ],
)
def test_paths_that_leave_the_folder(tmp_path: Path, name: str) -> None:
    files = [{"name": n, "size": 1, "blake2b": "00"} for n in ("index.sqlite", name)]
    about = {"kind": "ketrag-fast bundle", "format": 4, "current": "gen-000001", "files": files}
    archive(tmp_path / "b", {"index.sqlite": b"x", name: b"x"}, about)
    with pytest.raises(IndexDamaged):
        Index.unbundle(tmp_path / "b", tmp_path / "in" / "ix")
    assert not list((tmp_path / "in").iterdir()) and not (tmp_path / "evil").exists()


def test_links_and_newer_formats(tmp_path: Path) -> None:
    files = [{"name": "index.sqlite", "size": 0, "blake2b": "00"}]
    about = {"kind": "ketrag-fast bundle", "format": 4, "current": "gen-000001", "files": files}
    archive(tmp_path / "b", {"index.sqlite": b""}, about, tarfile.SYMTYPE)
    with pytest.raises(IndexDamaged):
        Index.unbundle(tmp_path / "b", tmp_path / "ix")
    archive(tmp_path / "b", {}, {**about, "format": 999})
    with pytest.raises(IndexIncompatible, match="999"):
        Index.unbundle(tmp_path / "b", tmp_path / "ix")
    archive(tmp_path / "b", {}, [1, 2])
    with pytest.raises(IndexDamaged):
        Index.unbundle(tmp_path / "b", tmp_path / "ix")
