"""Files that have not changed since they were read: what is compared, hashed, placed and stored."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Settings
from ketrag_fast.building import unchanged as module
from ketrag_fast.building.unchanged import (
    REMOVED,
    FileLedger,
    changed_rows,
    documents_of,
    escaped_id,
    reader_number,
)
from ketrag_fast.readers import SourceFile
from ketrag_fast.storage.document_table import Known
from ketrag_fast.storage.known_files import GAP, NO_DIGEST, STAT_BYTES, KnownFile, digests_of, stats_of
from ketrag_fast.types import Failure

OLD = 1_000_000_000_500_000_000
"""A time of change long ago, in nanoseconds."""
READER = 7


def write(folder: Path, *names: str) -> dict[str, str]:
    """Write files whose content is their name; return their paths by their ids."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
        os.utime(folder / name, ns=(OLD, OLD))
    return {name: str(folder / name) for name in names}


def known(paths: dict[str, str], places: Sequence[int] = (), **changes: Any) -> list[KnownFile]:
    """The rows of files that were read as they are now, with one document each."""
    stats, digests = stats_of(list(paths.values())), digests_of(list(paths.values()), None)
    each = zip(paths.items(), places or range(10, 1_000, 10), stats, digests, strict=False)
    rows = [
        KnownFile(1, place, name, path, stat, digest, READER, 1) for (name, path), place, stat, digest in each
    ]
    return [replace(row, **changes) for row in rows]


def ledger(paths: dict[str, str], rows: Sequence[KnownFile], **options: Any) -> FileLedger:
    documents = options.pop("documents", {name: [name] for name in paths})
    return FileLedger(1, rows, paths, documents, READER, root=options.pop("root", None), **options)


def stored(*names: str, content: str = "x") -> dict[str, Known]:
    return {name: Known(1, 1, at, content) for at, name in enumerate(names)}


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, str]:
    return write(tmp_path, "a.md", "b.md", "c.md")


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files written by a test are taken for old: their times are those that `write` sets."""
    monkeypatch.setattr("ketrag_fast.storage.known_files.settled", lambda stat, now: stat)


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch)


def is_unchanged(made: FileLedger, paths: dict[str, str], name: str, **content: str) -> bool:
    return made.is_unchanged(SourceFile(Path(paths[name]), name), stored(*paths, **content))


def test_a_file_that_is_as_it_was_is_not_hashed(
    paths: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ledger(paths, known(paths))
    monkeypatch.setattr(module, "digests_of", lambda *_: pytest.fail("hashed"))
    for name, path in paths.items():
        assert is_unchanged(made, paths, name) and made.digest_of(name) == b""
        state = made.files[name]
        assert (state.path, state.documents, state.place, state.notes, state.count) == (
            path,
            [name],
            None,
            [],
            0,
        )
        assert state.row is not None and state.row.file == name and state.stat == stats_of([path])[0]


@pytest.mark.parametrize("at", range(0, STAT_BYTES, 8))
@pytest.mark.parametrize("more", [1, -1])
def test_another_stat_makes_the_hash_decide(paths: dict[str, str], at: int, more: int) -> None:
    """Size, both times and inode: an older file is as suspect as a newer one."""
    rows = known(paths)
    number = int.from_bytes(rows[0].stat[at : at + 8], "little", signed=True) + more
    stat = rows[0].stat[:at] + number.to_bytes(8, "little", signed=True) + rows[0].stat[at + 8 :]
    rows[0] = replace(rows[0], stat=stat)
    same = ledger(paths, rows)
    assert is_unchanged(same, paths, "a.md") and same.digest_of("a.md") == rows[0].digest
    rows[0] = replace(rows[0], digest=rows[1].digest)
    assert not is_unchanged(ledger(paths, rows), paths, "a.md")
    assert is_unchanged(ledger(paths, rows), paths, "b.md")


def test_a_file_that_changed_just_before_it_was_read_is_hashed(paths: dict[str, str]) -> None:
    rows = known(paths)
    unknown = (-2).to_bytes(8, "little", signed=True)
    rows = [replace(row, stat=row.stat[:8] + unknown + row.stat[16:]) for row in rows]
    made = ledger(paths, rows)
    made.files["a.md"].stat = rows[0].stat
    assert is_unchanged(made, paths, "a.md") and made.files["a.md"].digest == rows[0].digest
    assert not is_unchanged(ledger(paths, [replace(rows[0], digest=rows[1].digest)]), paths, "a.md")


def test_with_thorough_the_contents_decide(paths: dict[str, str]) -> None:
    rows = known(paths)
    rows[1] = replace(rows[1], digest=rows[0].digest)
    plain, made = ledger(paths, rows), ledger(paths, rows, thorough=True)
    assert is_unchanged(plain, paths, "b.md") and not is_unchanged(made, paths, "b.md")
    assert is_unchanged(made, paths, "a.md") and is_unchanged(made, paths, "c.md")


@pytest.mark.parametrize(
    "changes",
    [
        {"reader": READER + 1},
        {"documents": 2},
        {"documents": 0},
        {"documents": -1},
        {"notes": (Failure("a.md", REMOVED, "x"),)},
        {"notes": (Failure("a.md", "part", "x"), Failure("a.md", REMOVED, "x"))},
    ],
    ids=repr,
)
def test_rows_that_do_not_fit(paths: dict[str, str], changes: dict[str, Any]) -> None:
    assert not is_unchanged(ledger(paths, known(paths, **changes)), paths, "a.md")


def test_what_failed_is_read_again(paths: dict[str, str]) -> None:
    for code, documents in (("document", 0), ("part", 0), ("document", 1), ("part", 1)):
        wanted = (code, documents) != ("document", 0)
        rows = known(paths, notes=(Failure("a.md", code, "x"),), documents=documents)
        made = ledger(paths, rows, documents={"a.md": ["a.md"] * documents})
        assert is_unchanged(made, paths, "a.md") is wanted, (code, documents)


def test_documents_without_content_and_new_files_are_read(paths: dict[str, str]) -> None:
    made = ledger(paths, known(paths)[:2])
    assert is_unchanged(made, paths, "b.md") and not is_unchanged(made, paths, "c.md")
    assert not is_unchanged(made, paths, "b.md", content="")


def test_a_file_that_is_read_with_another_one_is_read(tmp_path: Path) -> None:
    paths = write(tmp_path, "corpus.jsonl", "citations.tsv", "a.jsonl")
    with_companion = {name: paths[name] for name in ("corpus.jsonl", "a.jsonl")}
    from ketrag_fast.readers.files import has_companion

    made = ledger(with_companion, known(with_companion))
    for name in with_companion:
        assert is_unchanged(made, with_companion, name) is not has_companion(paths[name])


def test_a_file_that_cannot_be_read_now(tmp_path: Path, paths: dict[str, str]) -> None:
    rows = known(paths)
    digest = rows[0].digest
    for name in ("a.md", "b.md"):
        Path(paths[name]).unlink()
    documents = {"a.md": ["a.md"], "b.md": [], "c.md": ["c.md"]}
    made = ledger(paths, rows, documents=documents)
    found = {name: made.is_unreadable(SourceFile(Path(path), name)) for name, path in paths.items()}
    assert found == {"a.md": True, "b.md": False, "c.md": False}
    rows[0] = replace(rows[0], digest=NO_DIGEST)
    assert not is_unchanged(ledger(paths, rows, documents=documents), paths, "a.md")
    made.keep("a.md")
    assert made.files["a.md"].digest == digest


def test_only_files_below_the_root_are_hashed(tmp_path: Path) -> None:
    paths = write(tmp_path, "in/a.md", "out/b.md")
    (tmp_path / "in" / "link.md").symlink_to(tmp_path / "out" / "b.md")
    paths["in/link.md"] = str(tmp_path / "in" / "link.md")
    made = ledger(paths, [], root=tmp_path / "in")
    assert [made.digest_of(name) == NO_DIGEST for name in paths] == [False, True, True]
    made = ledger(paths, [], root=None)
    assert NO_DIGEST not in {made.digest_of(name) for name in paths}


def test_files_are_hashed_together_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next 256 files that may be read, until they have 32 MB."""
    assert (module._TOGETHER, module._TOGETHER_BYTES) == (256, 32 << 20)
    paths = write(tmp_path, "a.md", "b.MD", "c.unknown", "d.txt", "e.md", "f.md")
    together: list[list[str]] = []

    def noted(some: Sequence[str], root: Path | None) -> list[bytes]:
        together.append([Path(path).name for path in some])
        return digests_of(some, root)

    monkeypatch.setattr(module, "digests_of", noted)
    for most, size, wanted in (
        (10, 1 << 20, [["a.md", "b.MD", "d.txt", "e.md", "f.md"], ["c.unknown"]]),
        (2, 1 << 20, [["a.md", "b.MD"], ["c.unknown", "d.txt", "e.md"], ["f.md"]]),
        (10, 4, [["a.md", "b.MD"], ["c.unknown", "d.txt"], ["e.md", "f.md"]]),
        (10, 8, [["a.md", "b.MD", "d.txt"], ["c.unknown", "e.md", "f.md"]]),
        (10, 5, [["a.md", "b.MD", "d.txt"], ["c.unknown", "e.md", "f.md"]]),
    ):
        monkeypatch.setattr(module, "_TOGETHER", most)
        monkeypatch.setattr(module, "_TOGETHER_BYTES", size)
        together.clear()
        made = ledger(paths, [])
        digests = {name: made.digest_of(name) for name in paths}
        assert digests == dict(zip(paths, digests_of(list(paths.values()), None), strict=True))
        assert together == wanted, (most, size)
    Path(paths["d.txt"]).write_text("d" * 100)
    monkeypatch.setattr(module, "_TOGETHER_BYTES", 50)
    together.clear()
    made = ledger(paths, [])
    assert [made.digest_of(name) for name in paths]
    assert together == [["a.md", "b.MD", "d.txt"], ["c.unknown", "e.md", "f.md"]]


def places(made: FileLedger, *names: str) -> list[int]:
    return [made.place_of(name) for name in names]


def test_known_files_keep_their_positions(paths: dict[str, str]) -> None:
    made = ledger(paths, known(paths, [10, 20, 30]))
    assert places(made, "a.md", "b.md", "c.md") == [10, 20, 30]
    made = ledger(paths, known(paths, [10, 20, 30]))
    made.place_of("a.md")
    made.end(20)  # its documents are at 10 to 19
    assert places(made, "b.md") == [20]
    made.end(15)
    assert places(made, "c.md") == [30], "an earlier end changes nothing"
    made = ledger(paths, known(paths, [10, 20, 30]))
    made.place_of("a.md")
    made.end(21)
    assert places(made, "b.md", "c.md") == [25, 30], "between the documents of its neighbours"
    made = ledger(paths, known(paths, [0, 20, 30]))
    assert places(made, "a.md") == [0]


def test_new_files_get_positions_between_known_ones(tmp_path: Path) -> None:
    paths = write(tmp_path, "a.md", "b.md", "c.md", "d.md")
    rows = {row.file: row for row in known(paths, [10, 20, 30, 40])}
    first = -1 + GAP
    for there, wanted in (
        ("", [first, first + GAP, first + 2 * GAP, first + 3 * GAP]),
        ("ad", [10, 25, 32, 40]),
        ("d", [19, 29, 34, 40]),
        ("a", [10, 10 + GAP, 10 + 2 * GAP, 10 + 3 * GAP]),
        ("bc", [9, 20, 30, 30 + GAP]),
    ):
        made = ledger(paths, [rows[f"{name}.md"] for name in there])
        assert places(made, *paths) == wanted, there
        assert [state.place for state in made.files.values()] == wanted
    far = ledger(paths, known({"d.md": paths["d.md"]}, [10 * GAP]))
    assert places(far, "a.md") == [-1 + GAP], "at most the gap"
    full = ledger(paths, known({"a.md": paths["a.md"], "d.md": paths["d.md"]}, [10, 11]))
    assert places(full, *paths) == [10, 11, 11 + GAP, 11 + 2 * GAP]
    tight = ledger(paths, known({"a.md": paths["a.md"], "d.md": paths["d.md"]}, [10, 12]))
    assert places(tight, *paths) == [10, 11, 12, 12 + GAP]


def test_files_before_a_file_are_placed_with_it(paths: dict[str, str]) -> None:
    made = ledger(paths, known(paths, [10, 20, 30]))
    assert made.place_of("b.md") == 20 and made.files["a.md"].place == 10 and made.files["c.md"].place is None
    made.place_rest()
    assert made.files["c.md"].place == 30
    made.place_rest()
    assert [state.place for state in made.files.values()] == [10, 20, 30]


def test_positions_that_all_machines_agree_on(paths: dict[str, str]) -> None:
    """Those of a shard have the number of the file above 32 bits."""
    made = ledger(paths, [])
    assert made.place_of("b.md", 5) == 5 << 32 and made.files["a.md"].place == 0
    made.end((6 << 32) + 3)
    assert made.place_of("c.md", 6) == (6 << 32) + 3
    made = ledger(paths, [])
    assert made.place_of("a.md", 0) == 0 and made.place_of("c.md", 2) == 2 << 32
    assert made.files["b.md"].place == 1


def test_new_rows(paths: dict[str, str]) -> None:
    before = [*known(paths, [10, 20, 30]), KnownFile(1, -1, "", "/in", b"old")]
    before[1] = replace(before[1], stat=bytes(STAT_BYTES))
    made = ledger(paths, before)
    assert made.digest_of("b.md") == before[1].digest
    made.place_rest()
    note = Failure("b.md", "part", "x")
    made.files["b.md"].notes.append(note)
    made.files["b.md"].count = 3
    made.files["c.md"].is_lost = True
    now = stats_of(list(paths.values()))
    assert made.rows(["/in", "/in/sub"], [b"new", b"sub"]) == [
        KnownFile(1, -1, "", "/in", b"new"),
        KnownFile(1, -2, "", "/in/sub", b"sub"),
        KnownFile(1, 10, "a.md", paths["a.md"], now[0], before[0].digest, READER, 0),
        KnownFile(1, 20, "b.md", paths["b.md"], now[1], before[1].digest, READER, 3, (note,)),
    ]
    fresh = ledger(paths, [])
    (first, *_) = fresh.rows([], [])
    assert (first.place, first.digest) == (0, NO_DIGEST), "before it is placed and hashed"
    fresh.keep("a.md")
    assert fresh.files["a.md"].digest == b""


def test_files_of_which_nothing_is_stored(paths: dict[str, str]) -> None:
    assert [state.documents for state in ledger(paths, [], documents={}).files.values()] == [(), (), ()]


def test_a_file_whose_id_was_in_use_is_read_again(paths: dict[str, str]) -> None:
    note = Failure("a.md", "part", f"the id{module.IN_USE}")
    assert not is_unchanged(ledger(paths, known(paths, notes=(note,))), paths, "a.md")


def test_folders_are_no_files(paths: dict[str, str]) -> None:
    folder = KnownFile(1, -1, "", paths["a.md"], b"", documents=1)
    made = ledger(paths, [folder])
    assert made.files["a.md"].row is None and made.place_of("a.md") == -1 + GAP


def test_documents_belong_to_the_file_before_them() -> None:
    rows = [KnownFile(1, place, name, name, b"") for name, place in (("b", 20), ("a", 10), ("c", 30))]
    rows.append(KnownFile(1, -1, "", "/in", b""))
    documents = {"z": 9, "1": 10, "3": 20, "2": 19, "4": 21, "5": 1_000}
    some = [(name, Known(1, 1, place, "x")) for name, place in documents.items()]
    assert documents_of(rows, some) == {"a": ["1", "2"], "b": ["3", "4"], "c": ["5"]}
    assert documents_of([], some) == {} and documents_of(rows, []) == {"a": [], "b": [], "c": []}


def test_rows_to_write_and_to_delete() -> None:
    one, two, three = (KnownFile(1, place, str(place), "p", b"") for place in (1, 2, 3))
    other = KnownFile(2, 1, "1", "p", b"")
    assert changed_rows([one, two], [one, two]) == ([], [])
    assert changed_rows([one, two, other], [one, replace(two, stat=b"x"), three]) == (
        [replace(two, stat=b"x"), three],
        [(2, 1)],
    )
    assert changed_rows([], [one]) == ([one], []) and changed_rows([one], []) == ([], [(1, 1)])


def test_what_decides_what_files_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Settings()
    inside = tmp_path / "repository"
    (inside / ".git").mkdir(parents=True)
    monkeypatch.setattr("ketrag_fast.readers.ocr.check_ocr", lambda languages: f"Tesseract for {languages}")
    every = [
        reader_number(plain, str(tmp_path)),
        reader_number(plain, str(inside)),
        *(
            reader_number(Settings(**{name: value}), str(tmp_path))
            for name, value in {
                "read_text": 9,
                "read_seconds": 9,
                "read_memory": 1 << 10,
                "fallback_encoding": "latin-1",
                "hidden": "read",
                "generated": "read",
                "ocr": "eng",
            }.items()
        ),
        reader_number(Settings(ocr="deu"), str(tmp_path)),
    ]
    assert len(set(every)) == len(every) and all(-(1 << 63) <= number < 1 << 63 for number in every)
    assert min(every) < 0 < max(every) and max(map(abs, every)) > 1 << 60
    assert reader_number(plain, str(tmp_path)) == every[0]
    monkeypatch.setattr("ketrag_fast.readers.ocr.check_ocr", {"eng": "Tesseract 6"}.__getitem__)
    assert reader_number(Settings(ocr="eng"), str(tmp_path)) not in every
    monkeypatch.setattr(module, "readers_version", lambda: "another")
    assert reader_number(plain, str(tmp_path)) != every[0]


def test_ids_that_are_no_text_are_escaped() -> None:
    assert escaped_id("Größe.md") == "Größe.md" and escaped_id("a\udcff.md") == "a\\udcff.md"
