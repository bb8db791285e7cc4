"""An index as one file: the same index on the other side, or a typed error and nothing."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import ConfigError, ReadOnly
from tests.support.changed import bundle

DOCUMENTS = [Document(f"d{i}", f"The harbour of number {i} froze in winter.", f"Port {i}") for i in range(20)]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    Index.build(DOCUMENTS, tmp_path / "ix").close()
    bundle(tmp_path / "ix", tmp_path / "ix.bundle")
    return tmp_path / "ix.bundle"


def test_what_is_carried_is_the_same_index(made: Path, tmp_path: Path) -> None:
    assert main(["import", "bundle", str(made), "-i", str(tmp_path / "far" / "away")]) == 0
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
    bundle(tmp_path / "ix", made, replace=True)
    assert made.read_bytes() == first
    with tarfile.open(made) as tar:
        assert {(m.uid, m.gid, m.uname, m.mtime) for m in tar} == {(0, 0, "", 0)}


def test_places_that_are_taken(made: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="already exists"):
        bundle(tmp_path / "ix", made)
    with pytest.raises(ReadOnly, match="already exists"):
        Index.unbundle(made, tmp_path / "ix")
