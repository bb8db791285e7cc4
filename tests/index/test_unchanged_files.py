"""Files of converted formats are parsed again only if they have changed."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.building import unchanged
from ketrag_fast.building.ingest import Change
from ketrag_fast.building.preview import preview
from ketrag_fast.readers import sandbox
from ketrag_fast.types import Failure
from tests.support.office_files import archive, docx, paragraph

OLD = 1_000_000_000_000_000_000
"""A time of change long ago, in nanoseconds."""


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The ids of the files that reader processes get, in order."""
    names: list[str] = []
    started = sandbox.Worker.read

    def read(self: sandbox.Worker, request: dict[str, Any], *rest: Any, **named: Any) -> str | None:
        names.append(request["id"])
        return started(self, request, *rest, **named)

    monkeypatch.setattr(sandbox.Worker, "read", read)
    yield names


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the files whose content is hashed."""
    names: list[str] = []
    digests = unchanged.digests_of

    def counted(paths: Sequence[str], root: Path | None) -> list[bytes]:
        names.extend(Path(path).name for path in paths)
        return digests(paths, root)

    monkeypatch.setattr(unchanged, "digests_of", counted)
    yield names


def put(path: Path, text: str, changed: int = OLD) -> None:
    path.write_bytes(docx(paragraph(text)))
    os.utime(path, ns=(changed, changed))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    base = tmp_path / "in"
    base.mkdir()
    for number in range(3):
        put(base / f"{number}.docx", f"The ship number {number} sailed south.")
    (base / "both.zip").write_bytes(archive({"a.txt": b"A crew of ten.", "b.txt": b"A crew of two."}))
    os.utime(base / "both.zip", ns=(OLD, OLD))
    (base / "note.md").write_text("# A note\n\nabout ships")
    time.sleep(0.05)  # so that a later change has another time
    return base


def build(folder: Path, place: Path, **options: object) -> str:
    with Index.build(folder, place, settings=Settings(threads=1), **options) as index:  # type: ignore[arg-type]
        return index.digest


def test_nothing_is_parsed_twice(folder: Path, tmp_path: Path, parsed: list[str], hashed: list[str]) -> None:
    digest = build(folder, tmp_path / "ix")
    assert sorted(parsed) == ["0.docx", "1.docx", "2.docx", "both.zip"]
    parsed.clear(), hashed.clear()
    assert build(folder, tmp_path / "ix") == digest
    assert parsed == hashed == []
    found = preview(tmp_path / "ix", Change(), Settings(threads=1))
    assert (found.documents, found.changes, parsed) == (6, False, [])


def digest_of(folder: Path, place: Path) -> str:
    """Return the content digest of a build from scratch."""
    with Index.build(folder, place, settings=Settings(threads=1)) as index:
        return str(index.stats()["content_digest"])


def test_a_renamed_file_is_not_parsed_again(folder: Path, tmp_path: Path, parsed: list[str]) -> None:
    index = Index.build(folder, tmp_path / "ix", settings=Settings(threads=1))
    parsed.clear()
    (folder / "1.docx").rename(folder / "renamed.docx")
    assert index.freshen("always").updated and parsed == []
    (hit,) = index.grep("number 1 sailed")
    assert hit.document == "renamed.docx"
    (folder / "sub").mkdir()  # all files are compared
    (folder / "renamed.docx").rename(folder / "sub" / "again.docx")
    (folder / "sub" / "copy.docx").write_bytes((folder / "0.docx").read_bytes())
    assert index.freshen("always").updated and parsed == []
    assert index.stats()["content_digest"] == digest_of(folder, tmp_path / "other")
    index.close()


def test_a_file_with_the_name_of_a_renamed_one_is_parsed(
    folder: Path, tmp_path: Path, parsed: list[str]
) -> None:
    """Its new text is stored before the renamed file is looked at, or after it."""
    index = Index.build(folder, tmp_path / "ix", settings=Settings(threads=1))
    (folder / "1.docx").rename(folder / "9.docx")
    (folder / "2.docx").rename(folder / "!.docx")
    put(folder / "1.docx", "The first walrus.")
    put(folder / "2.docx", "The second walrus.")
    parsed.clear()
    assert index.freshen("always").updated and {"1.docx", "2.docx"} <= set(parsed)
    assert index.stats()["content_digest"] == digest_of(folder, tmp_path / "other")
    index.close()


def test_changed_files_are_parsed(folder: Path, tmp_path: Path, parsed: list[str], hashed: list[str]) -> None:
    build(folder, tmp_path / "ix")
    size = (folder / "1.docx").stat().st_size
    put(folder / "1.docx", "The ship number 7 sailed south.", OLD + 1)
    assert (folder / "1.docx").stat().st_size == size
    put(folder / "2.docx", "The ship number 2 sailed south, and on and on and on.")  # another size, same time
    (folder / "0.docx").unlink()
    put(folder / "new.docx", "A new ship.")
    parsed.clear()
    digest = build(folder, tmp_path / "ix")
    assert sorted(parsed) == ["1.docx", "2.docx", "new.docx"]
    with Index.open(tmp_path / "ix") as index:
        texts = {passage.document: passage.text for passage in index.retrieve("ship", mode="bm25").passages}
    assert "number 7" in texts["1.docx"]
    assert "on and on" in texts["2.docx"]
    assert "0.docx" not in texts
    assert build(folder, tmp_path / "other") == digest


def test_touched_files_are_hashed_once(
    folder: Path, tmp_path: Path, parsed: list[str], hashed: list[str]
) -> None:
    digest = build(folder, tmp_path / "ix")
    os.utime(folder / "1.docx", ns=(OLD + 5, OLD + 5))
    parsed.clear(), hashed.clear()
    assert build(folder, tmp_path / "ix") == digest
    assert (parsed, hashed) == ([], ["1.docx"])
    hashed.clear()
    build(folder, tmp_path / "ix")
    assert (parsed, hashed) == ([], [])


def test_a_file_that_was_just_written_is_hashed(
    folder: Path, tmp_path: Path, parsed: list[str], hashed: list[str]
) -> None:
    """A second change in the same tick of the file system's clock keeps size and time."""
    now = time.time_ns() + 3_600_000_000_000
    put(folder / "1.docx", "The ship number 1 sailed south.", now)
    build(folder, tmp_path / "ix")
    put(folder / "1.docx", "The ship number 8 sailed south.", now)
    parsed.clear(), hashed.clear()
    build(folder, tmp_path / "ix")
    assert parsed == ["1.docx"]


def test_what_makes_files_be_read_again(folder: Path, tmp_path: Path, parsed: list[str]) -> None:
    place = tmp_path / "ix"
    digest = build(folder, place)
    every = sorted(parsed)
    parsed.clear()
    build(folder, place, rebuild=True)
    assert sorted(parsed) == every
    parsed.clear()
    Index.build(folder, place, settings=Settings(threads=1, fallback_encoding="latin-1")).close()
    assert sorted(parsed) == every
    build(folder, place)
    parsed.clear()
    with sqlite3.connect(place / "index.sqlite") as db:
        db.execute("UPDATE files SET notes = '[5', stat = x'05' WHERE file = '1.docx'")
        db.execute("UPDATE files SET stat = x'05' WHERE file = '2.docx'")
    assert build(folder, place) == digest
    assert sorted(parsed) == ["0.docx", "1.docx", "2.docx"], "the documents behind 0.docx may be its own"
    with sqlite3.connect(place / "index.sqlite") as db:
        db.execute("DROP TABLE files")
    parsed.clear()
    assert build(folder, place) == digest
    assert sorted(parsed) == every


def test_parts_that_were_not_read_are_reported_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken file is read again each time, and a file that was read in part is reported each time."""
    (folder / "broken.docx").write_bytes((folder / "1.docx").read_bytes()[:-40])
    started = sandbox.Worker.read

    def read(self: sandbox.Worker, request: dict[str, Any], *rest: Any, **named: Any) -> str | None:
        if request["id"] == "1.docx":
            rest[0](Failure("1.docx", "part", "page 2 cannot be read"))
        return started(self, request, *rest, **named)

    monkeypatch.setattr(sandbox.Worker, "read", read)
    reports = []
    for _ in range(2):
        with Index.build(folder, tmp_path / "ix", settings=Settings(threads=1)) as index:
            assert index.report is not None
            reports.append([(one.document, one.code) for one in index.report.failures])
    assert reports[0] == reports[1] == [("1.docx", "part"), ("broken.docx", "document")]


def test_purge_forgets_the_files(folder: Path, tmp_path: Path) -> None:
    build(folder, tmp_path / "ix")
    with Index.open(tmp_path / "ix") as index:
        index.update(remove="1.docx", purge=True)
    assert b"1.docx" not in (tmp_path / "ix" / "index.sqlite").read_bytes()
