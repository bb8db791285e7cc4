"""A damaged index: a typed error that names the file, never a wrong answer and never a crash."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.building.stages import blame_damage
from ketrag_fast.errors import IndexDamaged, IndexIncompatible, KetragError, StageError
from ketrag_fast.index.health import examine
from ketrag_fast.storage.arrays import BLOCK
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import SEAL, seal_of
from ketrag_fast.systems.papers.noderag.inspection import NodeSources
from tests.process import POLAR, command, ketrag, python
from tests.support.array_files import array_files
from tests.support.copied import copy_confirmed


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with chunks that are split: it has every array that there is."""
    path = tmp_path_factory.mktemp("damage") / "index"
    settings = Settings(chunk_tokens=120, split_level=2, cut="windows", modes="all")
    Index.build(POLAR / "articles", path, settings=settings).close()
    return path


@pytest.fixture
def index(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "index"))


def arrays(index: Path) -> list[Path]:
    found = array_files(index)
    assert any(path.suffix == ".pack" for path in found)
    assert len(found) > 60
    return found


def test_every_array_that_is_cut_short_or_gone_is_named(index: Path) -> None:
    for file in arrays(index):
        data = file.read_bytes()
        file.write_bytes(data[:-1])
        for verify in ("full", "blocks", "sizes"):
            with pytest.raises(IndexDamaged) as caught:
                Index.open(index, settings=Settings(verify=verify))
            assert file.name in str(caught.value)
            assert caught.value.hint
        file.unlink()
        with pytest.raises(IndexDamaged, match=file.name):
            Index.open(index)
        file.write_bytes(data)
    Index.open(index).close()


FULL = Settings(verify="full")


QUESTION = "Which ship did Amundsen and Scott sail to the Ross Ice Shelf?"


def change(data: bytearray) -> None:
    """Flip a bit in every block."""
    for at in range(len(data) - 1, -1, -BLOCK):
        data[at] ^= 1


def test_a_changed_bit_is_never_answered_from(index: Path) -> None:
    """Each array, changed in every block, while an opened index verifies what it reads: a question gets the
    context of the undamaged index, or an error that names the file.
    """
    with Index.open(index, settings=FULL) as opened:
        modes = opened.modes
        right = {mode: opened.retrieve(QUESTION, mode=mode, budget=900) for mode in modes}
    read: dict[str, set[str]] = {mode: set() for mode in modes}
    for file in arrays(index):
        data = bytearray(file.read_bytes())
        change(data)
        file.write_bytes(data)
        for mode in modes:
            try:
                with Index.open(index) as opened:
                    found = opened.retrieve(QUESTION, mode=mode, budget=900)
                    places = [(p.document, p.start, p.end, p.title, p.text) for p in found.passages]
            except IndexDamaged as error:
                assert file.name in str(error)
                assert error.hint
                read[mode].add(f"{file.parent.name}.{file.stem}")
                continue
            assert found.text == right[mode].text, (file, mode)
            assert places == [(p.document, p.start, p.end, p.title, p.text) for p in right[mode].passages]
        change(data)
        file.write_bytes(data)
    assert not any(name.startswith(("vectors.", "keywords.", "knn.")) for name in read["bm25"] | read["walk"])
    assert {"links.keyword_units_tf", "links.keywords_blob", "units.unit_texts_blob"} <= read["bm25"]
    assert {"links.unit_keywords_indices", "links.unit_keywords_tf", "links.unit_length"} <= read["walk"]
    assert {"vectors.unit_codes", "vectors.unit_vectors", "vectors.basis"} <= read["text"]
    assert {"keywords.vectors", "words.word_units_indices"} <= read["keyword"]
    assert {"knn.graph_indices", "chunk_vectors.chunk_vectors"} <= read["knn"]


_UNCHECKED = """
import pathlib, random, sys, faulthandler
faulthandler.enable()
from ketrag_fast import Index, Settings
from ketrag_fast.errors import KetragError, InternalError
index, seed, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
chance, wrong, answered = random.Random(seed), [], 0
settings = Settings(verify="sizes")
for file in sorted([*index.glob("gen-*/*/*.npy"), *index.glob("gen-*/*/*.pack")]):
    data = bytearray(file.read_bytes())
    start = 128 if len(data) > 128 else 0
    for turn in range(rounds):
        changed = bytearray(data)
        for _ in range(chance.choice([1, 1, 8])):
            low = 0 if turn == 0 else start
            place = chance.randrange(low, len(data)) if low < len(data) else chance.randrange(len(data))
            changed[place] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, changed[place] ^ 1])
        file.write_bytes(changed)
        print(file.name, turn, flush=True)
        try:
            with Index.open(index, settings=settings) as opened:
                for mode in opened.modes:
                    question = "Which ship did Amundsen and Scott sail to the Ross Ice Shelf?"
                    try:
                        context = opened.retrieve(question, mode=mode, budget=400, deadline=5.0)
                        [passage.text for passage in context.passages]
                        answered += 1
                    except InternalError as error:
                        wrong.append((file.name, mode, repr(error)))
                    except KetragError:
                        pass
                    except BaseException as error:
                        wrong.append((file.name, mode, repr(error)[:300]))
        except InternalError as error:
            wrong.append((file.name, "open", repr(error)))
        except KetragError:
            pass
        except BaseException as error:
            wrong.append((file.name, "open", repr(error)[:300]))
    file.write_bytes(data)
assert answered > 0
for line in sorted(set(wrong)):
    print(line, file=sys.stderr)
sys.exit(1 if wrong else 0)
"""


def unchecked(index: Path, seed: int, rounds: int) -> None:
    done = python(_UNCHECKED, str(index), str(seed), str(rounds), cwd=index.parent, timeout=1800)
    assert done.code == 0, (done.code, done.out[-200:], done.err[-4000:])


def test_changed_bytes_never_crash_a_reader_that_skips_checksums(index: Path) -> None:
    unchecked(index, seed=1, rounds=2)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_changed_bytes_never_crash_a_reader(index: Path, seed: int) -> None:
    unchecked(index, seed, rounds=100)


@pytest.mark.parametrize("verify", ["full", "blocks"])
def test_damage_through_the_command_and_its_repair(whole: Path, tmp_path: Path, verify: str) -> None:
    index = copy_confirmed(whole, tmp_path / "index")
    largest = max(arrays(index), key=lambda path: path.stat().st_size)
    file = largest if verify == "full" else next(index.glob("gen-*/links/unit_length.npy"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    done = ketrag("retrieve", "Who?", "-i", str(index), "--json", "--verify", verify, cwd=index.parent)
    assert (done.code, done.out) == (4, "")
    error = json.loads(done.err)
    assert error["code"] == "index_damaged"
    assert file.name in error["message"]
    assert error["hint"]
    assert command("index", "-i", str(index), cwd=index.parent).code == 0
    Index.open(index, settings=FULL).close()
    assert command("retrieve", "Who led the Fram?", "-i", str(index), cwd=index.parent).code == 0


def test_index_of_a_newer_format(index: Path) -> None:
    manifest = next(index.glob("gen-*/manifest.json"))
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 99}))
    with pytest.raises(IndexIncompatible, match="format 99"):
        Index.open(index)
    for argv in (["retrieve", "Who?"], ["stats"], ["index"]):
        done = command(*argv, "-i", str(index), cwd=index.parent)
        assert (done.code, done.out) == (4, ""), argv
        assert "99" in done.err
        assert "hint: use the version that wrote it" in done.err


def test_damaged_tables_leave_the_reader_alone(index: Path) -> None:
    (index / "index.sqlite").write_bytes(b"no database" * 999)
    with Index.open(index) as opened:
        assert opened.retrieve("Who led the Fram?").passages
    done = command("index", "-i", str(index), cwd=index.parent)
    assert done.code == 4
    assert "index.sqlite is damaged" in done.err
    assert "hint:" in done.err


def test_folder_that_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("Mine.")
    (tmp_path / "file").write_text("x")
    for name in ("nowhere", "other", "file"):
        done = command("retrieve", "Who?", "-i", name, cwd=tmp_path)
        assert (done.code, done.out) == (4, ""), name
        assert "no index in" in done.err
        assert "ketrag index" in done.err
    for name in ("other", "file"):
        done = command("index", "other", "-i", name, cwd=tmp_path)
        assert (done.code, done.out) == (1, ""), name
        assert "hint:" in done.err
    assert (tmp_path / "other" / "letter.txt").read_text() == "Mine."


def test_a_changed_bit_that_a_stage_meets_is_damage(index: Path) -> None:
    """Under `sizes` a build reads damaged arrays; what its stages say of them is not a fault of theirs."""
    (file,) = index.glob("gen-*/words/sent_words_indptr.npy")
    data = bytearray(file.read_bytes())
    data[-1] ^= 0x20  # the top byte of the last end
    file.write_bytes(data)
    settings = Settings(verify="sizes", seed=1)
    with pytest.raises(IndexDamaged, match="stage words is damaged: indptr") as caught:
        Index.build([], index, settings=settings)
    assert "--verify full" in str(caught.value.hint)
    with (
        pytest.raises(IndexDamaged, match="stage words is damaged: x"),
        blame_damage(open_current(Layout(index))),
    ):
        raise StageError("x")  # the check of a result, as soon as one follows from the damage
    Index.build([], index, settings=settings.having(verify="full")).close()
    with pytest.raises(StageError), blame_damage(open_current(Layout(index))):
        raise StageError("nothing is damaged")


def found_by_the_doctor(index: Path) -> list[str]:
    return [str(finding.error) for finding in examine(index) if finding.error is not None]


def test_the_doctor_names_a_lost_generation(index: Path) -> None:
    assert found_by_the_doctor(index) == []
    shutil.rmtree(next(index.glob("gen-*")))
    assert any("is lost" in error for error in found_by_the_doctor(index))
    assert command("doctor", "-i", str(index), cwd=index.parent).code != 0


def test_the_doctor_names_a_setting_that_cannot_be_read(index: Path) -> None:
    manifest = next(index.glob("gen-*/manifest.json"))
    data = json.loads(manifest.read_text())
    data["settings"]["llm"] = ""
    data[SEAL] = seal_of(data)
    manifest.write_text(json.dumps(data))
    with pytest.raises(KetragError):
        Index.open(index)
    (error,) = found_by_the_doctor(index)
    assert "llm" in error


def test_a_node_whose_chunks_are_lost_is_damage(tmp_path: Path) -> None:
    settings = Settings(system="noderag", llm="heuristic", verify="sizes")
    Index.build(POLAR / "articles", tmp_path / "index", settings=settings).close()
    (rows,) = (tmp_path / "index").glob("gen-*/noderag_graph/unit_chunks_indptr.npy")
    data = rows.read_bytes()
    rows.write_bytes(data[:128] + bytes(len(data) - 128))
    with (
        Index.open(tmp_path / "index", settings=Settings(verify="sizes")) as opened,
        pytest.raises(IndexDamaged, match="has no chunk"),
    ):
        NodeSources(opened._opened.generation.stages).unit(0)


def test_replies_in_the_wrong_place_are_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two pages of the replies are exchanged: SQLite misses some rows and finds others."""
    place = tmp_path / "ix"
    settings = Settings(system="noderag", llm="heuristic")
    Index.build(POLAR / "articles", place, settings=settings).close()
    file = place / "index.sqlite"
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        root = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'replies'").fetchone()[0]
        size = db.execute("PRAGMA page_size").fetchone()[0]
    data = bytearray(file.read_bytes())
    start = (root - 1) * size
    assert data[start] == 2  # an interior page: its cells begin with the numbers of the pages below
    cells = [int.from_bytes(data[at : at + 2], "big") for at in (start + 12, start + 14)]
    one, other = (data[start + cell : start + cell + 4] for cell in cells)
    assert one != other
    data[start + cells[0] : start + cells[0] + 4], data[start + cells[1] : start + cells[1] + 4] = other, one
    file.write_bytes(data)
    for rebuild in (False, True):
        with pytest.raises(IndexDamaged, match="replies") as caught:
            Index.build(POLAR / "articles", place, settings=settings, rebuild=rebuild)
        assert "doctor" in str(caught.value.hint)
    assert main(["doctor", "-i", str(place)]) == 4
    assert "replies" in capsys.readouterr().out
    with Index.open(place) as index:
        assert index.retrieve("Which ship did Amundsen sail?").passages
