"""The disk that crashes are played on loses what it may, and nothing else."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.soak.disk import WAYS, Disk, Entry


def call(
    what: str, number: int = 0, place: int = 0, first: str = "", second: str = "", data: bytes = b""
) -> Entry:
    return Entry(what, number, place, first, second, data)


class Played:
    """A folder, calls on it, and all that may be left of it."""

    def __init__(self, root: Path) -> None:
        self.root = root / "root"
        self.root.mkdir()
        self.out = root / "out"
        self.out.mkdir()
        (self.root / "old").write_bytes(b"before")
        self.disk = Disk(self.root)

    def do(self, *calls: Entry) -> None:
        for one in calls:
            self.disk.apply(one)

    def at(self, name: str) -> str:
        return str(self.root / name)

    def states(self, way: str, times: int = 40) -> set[tuple[tuple[str, bytes], ...]]:
        found = set()
        for seed in range(times):
            target = self.out / f"{way} {seed} {len(list(self.out.iterdir()))}"
            self.disk.leave(target, way, Random(seed))
            files = sorted(path for path in target.rglob("*") if path.is_file())
            found.add(tuple((str(path.relative_to(target)), path.read_bytes()) for path in files))
        return found

    def ever(self) -> set[tuple[tuple[str, bytes], ...]]:
        return set().union(*(self.states(way) for way in WAYS))


@pytest.fixture
def played(tmp_path: Path) -> Played:
    return Played(tmp_path)


def test_what_is_synced_with_its_name_stays(played: Played) -> None:
    top = played.root.stat().st_ino
    played.do(call("c", 7, first=played.at("new")), call("w", 7, data=b"text"), call("s", 7), call("s", top))
    assert played.ever() == {(("new", b"text"), ("old", b"before"))}


def test_without_a_sync_of_the_folder_the_name_may_go(played: Played) -> None:
    played.do(call("c", 7, first=played.at("new")), call("w", 7, data=b"text"), call("s", 7))
    assert played.ever() == {(("old", b"before"),), (("new", b"text"), ("old", b"before"))}


def test_without_a_sync_of_the_file_its_bytes_may_go(played: Played) -> None:
    top = played.root.stat().st_ino
    played.do(call("c", 7, first=played.at("new")), call("w", 7, data=b"text"), call("s", top))
    (empty,) = played.states("names alone")
    assert empty == (("new", b""), ("old", b"before"))
    (zeros,) = played.states("zeros")
    assert zeros[0] == ("new", bytes(4))
    assert len(played.states("garbage")) > 10


def test_writes_come_in_any_order_and_in_pieces(played: Played) -> None:
    top = played.root.stat().st_ino
    played.do(call("c", 7, first=played.at("new")), call("s", top))
    played.do(call("w", 7, 0, data=b"a" * 2048), call("w", 7, 2048, data=b"b" * 2048))
    left = {dict(state)["new"] for state in played.states("mixed", 400)}
    assert bytes(2048) + b"b" * 2048 in left  # the later one alone
    assert b"a" * 2048 in left
    assert b"a" * 1024 in left  # torn at a sector
    assert b"" in left


def test_a_rename_is_there_in_both_folders_or_in_none(played: Played) -> None:
    top = played.root.stat().st_ino
    played.do(call("m", 8, first=played.at("sub")), call("s", top))
    played.do(call("r", first=played.at("old"), second=played.at("sub/moved")))
    assert played.ever() == {(("old", b"before"),), (("sub/moved", b"before"),)}
    played.do(call("s", 8))  # a sync of either folder holds it
    assert played.ever() == {(("sub/moved", b"before"),)}


def test_later_names_of_a_folder_do_not_come_without_earlier_ones(played: Played) -> None:
    for number in range(4):
        played.do(call("c", 10 + number, first=played.at(f"n{number}")), call("s", 10 + number))
    names = {tuple(name for name, _ in state) for state in played.ever()}
    assert names == {(*(f"n{n}" for n in range(count)), "old") for count in range(5)}


def test_a_removed_file_may_come_back(played: Played) -> None:
    played.do(call("u", first=played.at("old")))
    assert played.ever() == {(), (("old", b"before"),)}


def test_what_the_record_cannot_hold_is_refused(played: Played) -> None:
    with pytest.raises(ValueError, match="sendfile"):
        played.do(call("!", first="sendfile"))
