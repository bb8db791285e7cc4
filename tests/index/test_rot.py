"""What lies on the disk rots: in the tables, in the manifest, in the place of a file, in the work folder."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import ConfigError, IndexDamaged, KetragError
from ketrag_fast.index.health import examine
from ketrag_fast.storage.arrays import BLOCKS
from ketrag_fast.types import Document
from tests import small_model
from tests.process import command, ketrag, python
from tests.support.array_files import array_files
from tests.support.faults import run_sql

TEXTS = {"a.txt": "Nansen built the Fram in Larvik.", "b.txt": "Amundsen sailed the Maud eastwards."}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def index(source: Path, tmp_path: Path) -> Path:
    Index.build(source, tmp_path / "index").close()
    return tmp_path / "index"


@pytest.mark.parametrize("column", ["text", "title", "metadata"])
def test_a_stored_text_that_is_altered_is_never_published(index: Path, source: Path, column: str) -> None:
    before = Index.open(index).digest
    if column == "text":
        run_sql(index, "INSERT INTO texts SELECT key, '{} Larvig' FROM documents WHERE id = 'a.txt'")
    else:
        run_sql(index, f"UPDATE documents SET {column} = '{{}} Larvig' WHERE id = 'a.txt'")
    (source / "c.txt").write_text("Something new.")
    with pytest.raises(IndexDamaged, match=r"a\.txt") as caught:
        Index.build([], index).close()
    (source / "c.txt").unlink()
    assert caught.value.hint and "--rebuild" in caught.value.hint
    with Index.build([], index, rebuild=True) as repaired:
        assert repaired.digest == before
        assert "Larvig" not in repaired.retrieve("Who built the Fram?").text


def test_a_document_of_a_program_must_be_handed_over_again(tmp_path: Path) -> None:
    path = tmp_path / "index"
    Index.build([Document("x", "Nansen built the Fram.")], path).close()
    run_sql(path, "INSERT INTO texts SELECT key, 'Nobody built the Fram.' FROM documents")
    with pytest.raises(IndexDamaged, match="'x'"):
        Index.build([], path, rebuild=True)
    with Index.build([Document("x", "Nansen built the Fram.")], path, rebuild=True) as index:
        assert "Nansen" in index.retrieve("Who built the Fram?").text


def flips(data: bytes, count: int) -> Iterator[bytes]:
    step = max(len(data) // count, 1)
    for turn, place in enumerate(range(0, len(data), step)):
        changed = bytearray(data)
        changed[place] ^= 1 << turn % 8
        yield bytes(changed)


def test_any_flip_in_the_tables_is_repaired_or_a_typed_error(index: Path) -> None:
    with Index.open(index) as opened:
        digest = opened.digest
    whole = (index / "index.sqlite").read_bytes()
    kept = {path: path.read_bytes() for path in index.rglob("*") if path.is_file()}
    typed = 0
    for changed in flips(whole, 12):
        for path in index.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path, data in kept.items():
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_bytes(data)
        (index / "index.sqlite").write_bytes(changed)
        try:
            with Index.build([], index, rebuild=True) as built:
                texts = [p.text for p in built.retrieve("Who built the Fram? Who sailed?").passages]
                assert set(texts) <= set(TEXTS.values())
        except KetragError as error:
            assert error.hint, error
            typed += 1
        with Index.open(index) as opened:
            assert opened.digest == digest or opened.generation > 1
    assert typed


def test_a_changed_setting_is_found_whatever_is_verified(index: Path) -> None:
    manifest = next(index.glob("gen-*/manifest.json"))
    data = json.loads(manifest.read_text())
    for altered in (
        {**data, "settings": {**data["settings"], "encoding": "o200k_base"}},
        {**{name: data[name] for name in data if name != "seal"}, "seaL": data["seal"]},
        {name: data[name] for name in data if name != "seal"},
    ):
        manifest.write_text(json.dumps(altered))
        for verify in ("full", "blocks", "sizes"):
            with pytest.raises(IndexDamaged, match="manifest"):
                Index.open(index, settings=Settings(verify=verify))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_pipes_and_devices_in_the_place_of_files(index: Path, tmp_path: Path) -> None:
    names = ["CURRENT", "index.sqlite", *(str(p.relative_to(index)) for p in index.glob("gen-*/*.json"))]
    names += [str(p.relative_to(index)) for p in [*index.glob("gen-*/units/*.npy")][:2]]
    for name in names:
        aside = (index / name).rename(tmp_path / "aside")
        for make in (lambda path: os.mkfifo(path), lambda path: path.symlink_to("/dev/zero")):
            make(index / name)
            done = ketrag("retrieve", "Fram?", "-i", str(index), cwd=tmp_path, timeout=60)
            assert "Traceback" not in done.err
            assert done.code == (0 if name in ("CURRENT", "index.sqlite") else 4), (name, done.err)
            (index / name).unlink()
        aside.rename(index / name)
    os.mkfifo(tmp_path / "settings.toml")
    for place in (str(tmp_path / "settings.toml"), "/dev/zero"):
        done = ketrag("stats", "-i", str(index), "--config", place, cwd=tmp_path, timeout=60)
        assert (done.code, "Traceback" in done.err) == (2, False), done.err
    assert ConfigError.code == "config"


@pytest.mark.parametrize("there", [False, True])
def test_a_link_in_the_place_of_the_tables_is_not_followed(index: Path, tmp_path: Path, there: bool) -> None:
    """SQLite would make the file that it leads to, or write into it."""
    other = tmp_path / "elsewhere"
    if there:
        other.write_bytes(b"")
    (index / "index.sqlite").unlink()
    (index / "index.sqlite").symlink_to(other)
    with pytest.raises(IndexDamaged, match="not a regular file"):
        Index.build([Document("x", "The Fram.")], index).close()
    assert other.exists() == there and (not there or other.read_bytes() == b"")
    with Index.open(index) as opened:
        assert opened.retrieve("Fram").passages


def test_no_more_files_is_no_damage(index: Path, tmp_path: Path) -> None:
    code = """
import os, resource, sys
from ketrag_fast import Index, KetragError
with Index.open(sys.argv[1]) as opened:
    opened.retrieve("Fram?")
seen, held = set(), len(os.listdir("/proc/self/fd"))
for free in range(1, 12):
    resource.setrlimit(resource.RLIMIT_NOFILE, (held + free - 2, 4096))
    try:
        with Index.open(sys.argv[1]) as opened:
            opened.retrieve("Fram?")
        seen.add("open")
    except KetragError as error:
        seen.add(error.code)
assert seen <= {"open", "too_many_files"}, seen
"""
    if not Path("/proc/self/fd").exists():
        pytest.skip("only Linux says which files are open")
    done = python(code, str(index), cwd=tmp_path)
    assert done.code == 0, done.err


def test_links_lead_out_of_a_source_only_where_it_is_asked_for(source: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.txt").write_text("The secret of Svalbard.")
    (source / "out").symlink_to(tmp_path / "secret")
    (source / "out.txt").symlink_to(tmp_path / "secret" / "key.txt")
    (source / "up").symlink_to(source)
    (source / "in.txt").symlink_to(source / "a.txt")
    with Index.build(source, tmp_path / "index") as index:
        assert index.report is not None
        assert {f.document for f in index.report.failures} == {"out", "out.txt"}
        assert all("--follow-links" in f.message for f in index.report.failures)
        assert not index.retrieve("Svalbard secret").passages
    pattern = str(source / "**" / "*.txt")
    with Index.build(pattern, tmp_path / "other") as index:
        assert not index.retrieve("Svalbard secret").passages
    done = command("index", str(source), "-i", str(tmp_path / "more"), "--follow-links", cwd=tmp_path)
    assert done.code == 0, done.err
    with Index.open(tmp_path / "more") as index:
        assert index.retrieve("Svalbard secret").passages


def test_the_doctor_finds_each_damage_and_changes_nothing(index: Path) -> None:
    def look() -> tuple[int, dict[str, str | None]]:
        found = ketrag("doctor", "-i", str(index), "--json", cwd=index.parent)
        checks = json.loads(found.out)["checks"]
        return found.code, {row["what"]: row["error"] and row["error"]["message"] for row in checks}

    assert look() == (0, {"tables": None, "published": None, "generation 1": None})
    text = ketrag("doctor", "-i", str(index), cwd=index.parent).out
    assert text.splitlines() == [
        "documents and caches: ok",
        "name of the published generation: ok",
        "generation 1: ok",
        f"source: {index.parent / 'docs'} (confirmed)",
    ]
    array = max(array_files(index), key=lambda path: path.stat().st_size)
    whole = array.read_bytes()
    array.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    code, found = look()
    assert code == 4 and array.name in str(found["generation 1"]) and found["tables"] is None
    array.write_bytes(whole)
    run_sql(index, "INSERT INTO texts SELECT key, 'Larvig' FROM documents WHERE id = 'a.txt'")
    code, found = look()
    assert code == 4 and "a.txt" in str(found["tables"]) and found["generation 1"] is None
    for name, error in (
        ("gen-1", "does not name a generation"),
        ("gen-999999", "is lost, and all other generations are older"),
    ):
        (index / "CURRENT").write_text(name)
        code, found = look()
        assert code == 4 and error in str(found["published"])
    assert ketrag("doctor", "-i", str(index / "nothing"), cwd=index.parent).code == 4


def damages(index: Path) -> list[str]:
    return [str(finding.error) for finding in examine(index) if finding.error is not None]


def test_the_doctor_compares_block_hashes(tmp_path: Path) -> None:
    """They are only read by queries, which then verify whole files."""
    texts = (Document(f"d{n}", " ".join(f"w{n * 7 + k}" for k in range(400)), "t") for n in range(300))
    Index.build(texts, tmp_path / "index").close()
    (file, *_) = tmp_path.glob(f"index/gen-000001/*/{BLOCKS}")
    whole = file.read_bytes()
    assert not damages(tmp_path / "index")
    for at in (0, 9, len(whole) // 2, len(whole) - 1):
        file.unlink()  # a link to it may be elsewhere
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        (error,) = damages(tmp_path / "index")
        assert BLOCKS in error, at
    file.unlink()
    assert BLOCKS in damages(tmp_path / "index")[0]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE settings SET value = '\"qerson\"' WHERE name = 'entity_types'",
        "UPDATE settings SET name = 'seee' WHERE name = 'seed'",
        "DELETE FROM settings WHERE name = 'seed'",
        "UPDATE failures SET message = 'another'",
        "DELETE FROM failures",
        "UPDATE runs SET seconds = seconds + 1",
        "UPDATE runs SET started = '2001' || substr(started, 5)",
        "UPDATE runs SET report = replace(report, 'added', 'adddd')",
        "UPDATE runs SET generation = 7",
    ],
)
def test_the_doctor_compares_settings_failures_and_reports(change: str, source: Path, tmp_path: Path) -> None:
    (source / "c.pdf").write_bytes(b"%PDF-1.7 no more")
    Index.build(source, tmp_path / "index").close()
    assert not damages(tmp_path / "index")
    run_sql(tmp_path / "index", change)
    (error,) = damages(tmp_path / "index")
    assert "altered" in error


def test_the_doctor_looks_at_what_is_kept_and_writes_nothing(source: Path, tmp_path: Path) -> None:
    model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    path = tmp_path / "index"
    settings = Settings(threads=1, llm="heuristic", embedder=f"native:{model}")
    Index.build(source, path, settings=settings).close()

    def damage() -> str:
        before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
        found = [str(finding.error) for finding in examine(path) if finding.error is not None]
        assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before
        return " ".join(found)

    assert damage() == ""
    whole = (path / "index.sqlite").read_bytes()
    for statement, what in (
        ("UPDATE replies SET text = x'7b7d'", "2 cached replies are altered"),
        ("UPDATE vectors SET vector = zeroblob(length(vector))", "cached vectors are altered"),
        ("UPDATE vectors SET text = randomblob(16)", "cached vectors are altered"),
        ("UPDATE vector_models SET engine = '['", "is not JSON"),
        ("UPDATE settings SET value = 'NaN{' WHERE name = 'seed'", "'seed' is not JSON"),
        ("UPDATE runs SET report = ''", "the report of run 1 is not JSON"),
        ("UPDATE readers SET identity = '7'", "is invalid"),
        ("DROP TABLE settings", "no such table: settings"),
        ("PRAGMA user_version = 0", "no tables of an index"),
    ):
        run_sql(path, statement)
        assert what in damage(), statement
        (path / "index.sqlite").write_bytes(whole)
    (path / "index.sqlite").write_bytes(b"")
    assert "no tables of an index" in damage()
    assert (path / "index.sqlite").read_bytes() == b""


def test_altered_vectors_are_made_again_and_altered_replies_said(source: Path, tmp_path: Path) -> None:
    model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    path = tmp_path / "index"
    settings = Settings(threads=1, llm="heuristic", embedder=f"native:{model}")
    with Index.build(source, path, settings=settings) as built:
        digest = built.digest
    run_sql(path, "UPDATE vectors SET vector = zeroblob(length(vector))")
    with Index.build([], path, rebuild=True) as again:
        assert again.digest == digest
    run_sql(path, "UPDATE replies SET text = x'7b7d' WHERE chunk = (SELECT min(chunk) FROM replies)")
    with pytest.raises(IndexDamaged, match="1 cached replies were altered") as caught:
        Index.build([], path, rebuild=True)
    assert caught.value.hint and "run the same command again" in caught.value.hint
    with Index.build([], path, rebuild=True) as again:
        assert again.digest == digest


def test_rows_and_their_order_in_the_tables_must_fit(index: Path) -> None:
    """The order of the documents is read from an index of the tables, and may not say other than the rows."""
    with closing(sqlite3.connect(index / "index.sqlite")) as db:
        place = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'documents_order'").fetchone()[0]
    file = index / "index.sqlite"
    data = bytearray(file.read_bytes())
    data[(place - 1) * 4096 : place * 4096] = bytes([10, 0, 0, 0, 0, 16, 0, 0]) + bytes(4088)  # no entries
    file.write_bytes(data)
    with pytest.raises(IndexDamaged, match=r"index\.sqlite is damaged"):
        Index.build([], index, rebuild=True)


def test_headers_that_are_altered_are_typed_whatever_is_verified(index: Path) -> None:
    """NumPy reads headers as literals of Python: what it makes of others is not for users."""
    kinds: set[str] = set()
    for array in sorted(index.glob("gen-*/*/*.npy"))[::9]:
        whole = array.read_bytes()
        size = int.from_bytes(whole[8:10], "little")
        for turn, header in enumerate(
            (
                b"\xff" * size,
                b"(" * size,
                b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }".ljust(size),
                b"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }".ljust(size),
                b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(size),
                b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }".ljust(size),
                b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }".ljust(size),
                whole[10 : 10 + size].replace(b"<", b">").replace(b"|", b"<"),
            )
        ):
            head = whole[:8] + (b"\xff\xff" if turn == 0 else whole[8:10])
            array.write_bytes(head + header[:size] + whole[10 + size :])
            for verify in ("full", "blocks", "sizes"):
                try:
                    with Index.open(index, settings=Settings(verify=verify)) as opened:
                        for mode in opened.modes:
                            opened.retrieve("Who built the Fram?", mode=mode)
                        opened.inspect.arrays()[array.parent.name][array.stem]
                except IndexDamaged as error:
                    assert array.name in str(error)
                    kinds.add(verify)
                else:
                    same = header[:size] == whole[10 : 10 + size]
                    # Bytes have no order: without checksums "<u1" is as good as "|u1".
                    assert same or (b"<u1" in header and verify == "sizes"), (array, header, verify)
        array.write_bytes(whole)
    assert kinds == {"full", "blocks", "sizes"}


def test_a_schema_that_is_no_text_any_more(index: Path) -> None:
    file = index / "index.sqlite"
    data = file.read_bytes()
    at = data.index(b"CREATE TABLE sources")
    for harmed in (b"\xe3\xff\x80", b"\x00\x00\x00", b"((("):
        file.write_bytes(data[: at + 29] + harmed + data[at + 32 :])
        with pytest.raises(IndexDamaged, match=r"index\.sqlite is damaged"):
            Index.build([], index)
