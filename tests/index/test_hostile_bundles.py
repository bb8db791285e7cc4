"""Bundles that were made to harm: each is refused with a typed error, and leaves nothing behind."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import IndexDamaged, KetragError, StorageFull
from tests.support.changed import bundle
from tests.support.hostile_bundles import hostile, members_of, packed, sparse_terabyte

DOCUMENTS = [Document(f"d{i}", f"The harbour of number {i} froze in winter.", f"Port {i}") for i in range(9)]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    root = tmp_path_factory.mktemp("bundles")
    Index.build(DOCUMENTS, root / "ix").close()
    bundle(root / "ix", root / "b")
    return (root / "b").read_bytes()


def test_a_good_one_is_taken(good: bytes, tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(packed(*members_of(good)))
    Index.unbundle(tmp_path / "b", tmp_path / "ix")
    with Index.open(tmp_path / "ix") as index:
        assert index.inspect.document_count == len(DOCUMENTS)


def test_each_is_refused_with_a_typed_error_and_leaves_nothing(
    good: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = hostile(good)
    assert len(every) > 200
    file, place = tmp_path / "b", tmp_path / "here"
    place.mkdir()
    wrong = {}
    for name, data in every.items():
        file.write_bytes(data)
        try:
            Index.unbundle(file, place / "ix")
            wrong[name] = "it was taken"
            shutil.rmtree(place / "ix")
        except KetragError as error:
            if not error.message or len(error.message) > 4100:
                wrong[name] = f"the message is {error.message!r}"
        except BaseException as error:  # noqa: BLE001 - of any kind, it is the finding
            wrong[name] = repr(error)
        try:
            code: object = main(["import", "bundle", str(file), "-i", str(place / "ix")])
        except BaseException as error:  # noqa: BLE001
            code = repr(error)
        if code not in (1, 2, 3, 4) or "Traceback" in capsys.readouterr().err:
            wrong[name] = f"{wrong.get(name)}; the command ends with {code}"
        if list(place.iterdir()) or (tmp_path / "evil").exists():
            wrong[name] = f"{wrong.get(name)}; it left {list(tmp_path.rglob('*'))}"
            shutil.rmtree(place)
            place.mkdir()
    assert wrong == {}


def test_a_sparse_member_is_refused_before_a_byte_of_it_is_written(good: bytes, tmp_path: Path) -> None:
    """A few kilobytes that an archiver would make a terabyte of."""
    file = tmp_path / "b"
    file.write_bytes(sparse_terabyte(*members_of(good), size=1 << 22))
    assert file.stat().st_size < 1 << 16
    with pytest.raises(IndexDamaged, match="declares"):
        Index.unbundle(file, tmp_path / "ix")
    # Where the size that the list declares is no more than the file's, the kind of the member is refused.
    file.write_bytes(sparse_terabyte(*members_of(good), size=512) + bytes(1 << 22))
    with pytest.raises(IndexDamaged, match="it holds a sparse file"):
        Index.unbundle(file, tmp_path / "ix")


def test_the_disk_must_have_room_for_all_of_it(
    good: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "b"
    file.write_bytes(good)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 1000))
    with pytest.raises(StorageFull, match="1,000 left"):
        Index.unbundle(file, tmp_path / "here" / "ix")
    assert not list((tmp_path / "here").iterdir())
