"""What generations cost on disk, how long they stay, and what `ketrag doctor` says of leftovers."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import Cancelled, ConfigError, IndexDamaged
from ketrag_fast.storage.generation import MANIFEST
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import read_manifest
from tests import small_model
from tests.soak.small import has_delta, small
from tests.support.faults import flip, stop_at

DOCUMENTS = [
    Document(f"d{i}", f"The harbour of number {i} froze in winter w{i}.", f"Port {i}") for i in range(9)
]


def numbers(place: Path) -> list[int]:
    return Layout(place).generations()


def copied(folder: Path, target: Path, number: int) -> None:
    """Copy a generation under another number."""
    shutil.copytree(folder, target)
    file = target / MANIFEST
    file.write_text(json.dumps(replace(read_manifest(folder / MANIFEST), generation=number).sealed()))


def change(place: Path, times: int, settings: Settings | None = None) -> None:
    for time in range(times):
        text = f"Version {max(numbers(place))}.{time} of a text."
        Index.build(Document("x", text), place, settings=settings).close()


def test_generations_stay_by_number(tmp_path: Path) -> None:
    place = tmp_path / "ix"
    Index.build(DOCUMENTS, place, settings=Settings(keep_generations=4)).close()
    change(place, 5)  # remembered
    assert numbers(place) == [3, 4, 5, 6]
    with Index.open(place / "gen-000003") as old, Index.open(place) as now:
        assert old.inspect.document_count == now.inspect.document_count == 10
        change(place, 1, Settings(keep_generations=1))
        assert numbers(place) == [7]
        # Whoever has one open keeps it.
        assert old.retrieve("which harbour froze").passages
        assert now.retrieve("which harbour froze").passages
    change(place, 1)
    assert numbers(place) == [8]
    with pytest.raises(ConfigError):
        Settings(keep_generations=0)


def test_what_it_costs_on_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    place = tmp_path / "ix"
    settings = Settings(embedder=f"native:{model}", llm="heuristic", keep_generations=3)
    Index.build(DOCUMENTS, place, settings=settings).close()
    capsys.readouterr()
    assert main(["stats", "-i", str(place), "--json"]) == 0
    disk = json.loads(capsys.readouterr().out)["disk"]
    files = [path for path in place.rglob("*") if path.is_file()]
    assert disk["total"] == sum(path.stat().st_size for path in files)
    parts = (
        "arrays",
        "vectors",
        "documents",
        "kept_vectors",
        "kept_replies",
        "older",
        "work",
        "model",
        "other",
    )
    assert sum(disk[name] for name in parts) == disk["total"]
    rows = 20  # entities and samples of the model; those of texts are in the generation
    assert disk["vectors"] > 0 and disk["kept_vectors"] > 4 * 24 * rows / 2 and disk["kept_replies"] > 0
    assert disk["generations"] == [
        {
            "generation": 1,
            "bytes": disk["arrays"] + disk["vectors"],
            "own": disk["arrays"] + disk["vectors"],
            "current": True,
        }
    ]
    # A generation that shares files with another costs what it has alone, and removing it frees just that.
    with Index.build([], place, settings=Settings(modes="auto,g2cons")) as index:
        disk = index.stats()["disk"]
    first, second = disk["generations"]
    assert 0 < first["own"] < first["bytes"] - 20_000 and second["own"] < second["bytes"]
    assert disk["older"] == first["own"]
    shutil.rmtree(place / "gen-000001")
    with Index.open(place) as index:
        after = index.stats()["disk"]
    assert disk["total"] - after["total"] == first["own"]
    assert main(["stats", "-i", str(place)]) == 0
    assert "kept_vectors" in capsys.readouterr().out


def examined(place: Path, capsys: pytest.CaptureFixture[str], code: int = 0) -> dict[str, str | None]:
    capsys.readouterr()
    assert main(["doctor", "-i", str(place), "--json"]) == code
    return {one["what"]: one["note"] for one in json.loads(capsys.readouterr().out)["checks"]}


def test_doctor_says_what_was_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "ix"
    Index.build(DOCUMENTS, place).close()
    assert examined(place, capsys) == {"tables": None, "published": None, "generation 1": None}

    with pytest.raises(Cancelled):
        Index.build(Document("new", "A new text."), place, progress=stop_at("links"))
    (place / "index.owner").write_text('{"pid": 12, "host": "elsewhere"}')
    (place / "notes.txt").write_text("mine")
    (tmp_path / ".unbundle-abc").mkdir()
    found = examined(place, capsys)
    said = {name: note or "" for name, note in found.items()}
    assert "finished or begun stages" in said["work"]
    assert "other documents than what is published" in said["documents"]
    assert "process 12 on elsewhere" in said["builder"]
    assert "not part of the index" in said["stranger"]
    assert "killed" in said["unbundle"]
    copied(place / "gen-000001", place / "gen-000002", 2)
    (place / "notes.txt").unlink()
    (tmp_path / ".unbundle-abc").rmdir()
    assert main(["doctor", "-i", str(place)]) == 0
    assert "generation 2 is newer than what is published" in capsys.readouterr().out
    shutil.rmtree(place / "gen-000002")
    with Index.build([], place) as index:
        assert index.report is not None and index.report.changed
    assert all(note is None for note in examined(place, capsys).values())


def test_doctor_knows_an_unfinished_merge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Index.build(DOCUMENTS[:4], tmp_path / "a").close()
    Index.build(DOCUMENTS[4:], tmp_path / "b").close()

    with pytest.raises(Cancelled):
        Index.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "m", progress=stop_at("links"))
    assert "the same `ketrag merge`" in (examined(tmp_path / "m", capsys)["merge"] or "")


@pytest.mark.parametrize("current", ["gen-000002", "lost"])
def test_a_damaged_generation_is_never_replaced_by_an_older_one(tmp_path: Path, current: str) -> None:
    place = tmp_path / "ix"
    with Index.build(DOCUMENTS, place, settings=Settings(threads=1)) as index:
        assert "w3" in index.retrieve("harbour w3").text
        index.update(remove="d3")
    damaged = next((place / "gen-000002").glob("*/unit_texts_offsets.*"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    (place / "CURRENT").write_text(f"{current}\n")
    with pytest.raises(IndexDamaged, match="unit_texts_offsets"):
        Index.open(place)
    with pytest.raises(Cancelled):  # a build that ends early does not name the older one either
        Index.build([], place, progress=stop_at("units"))
    with pytest.raises(IndexDamaged, match="unit_texts_offsets"):
        Index.open(place)
    with Index.build([], place) as index:
        assert index.generation == 3 and "w3" not in index.retrieve("harbour w3").text


@pytest.mark.parametrize("delta", [False, True])
def test_a_lost_generation_is_never_replaced_by_an_older_one(tmp_path: Path, delta: bool) -> None:
    place = tmp_path / "ix"
    Index.build(DOCUMENTS, place, settings=Settings(threads=1, modes="bm25,walk")).close()
    with Index.open(place) as index, small() if delta else nullcontext():
        index.update(remove="d3")
    assert has_delta(place) == delta
    shutil.rmtree(place / "gen-000002")
    with pytest.raises(IndexDamaged, match=r"gen-000002, which CURRENT names, is lost"):
        Index.open(place)
    kept = [document for document in DOCUMENTS if document.id != "d3"]  # their texts are lost with it
    with pytest.raises(Cancelled):  # a build that ends early does not name the older one either
        Index.build(kept, place, progress=stop_at("units"))
    with pytest.raises(IndexDamaged, match="is lost"):
        Index.open(place)
    with Index.build(kept, place) as index:
        assert index.generation == 2 and "w3" not in index.retrieve("harbour w3").text


def test_a_name_in_current_that_is_older_than_what_is_there_opens_the_newest(tmp_path: Path) -> None:
    place = tmp_path / "ix"
    with Index.build(DOCUMENTS, place, settings=Settings(threads=1)) as index:
        index.update(remove="d3")
    shutil.rmtree(place / "gen-000001")
    for name in ("gen-000001", "gen-1", "gen-" + "9" * 5000, "gen-00000²", "", "../.."):
        (place / "CURRENT").write_text(f"{name}\n", "utf-8")
        with Index.open(place) as index:
            assert index.generation == 2


def test_a_manifest_of_another_generation_is_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "ix"
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("a", "b"):
        (docs / f"{name}.md").write_text(f"# {name}\n\nThe harbour of {name} froze.\n")
    Index.build(docs, place).close()
    (docs / "c.md").write_text("# c\n\nThe harbour of c froze.\n")
    with Index.build(docs, place) as index:
        digest = index.stats()["digest"]
    assert numbers(place) == [1, 2]
    first, second, aside = (
        place / "gen-000001" / MANIFEST,
        place / "gen-000002" / MANIFEST,
        tmp_path / "aside",
    )
    first.rename(aside)
    second.rename(first)
    aside.rename(second)
    with pytest.raises(
        IndexDamaged, match=r"gen-000002/manifest\.json .* the manifest of generation 1"
    ) as caught:
        Index.open(place)
    assert "ketrag index" in str(caught.value.hint)
    assert main(["doctor", "-i", str(place)]) == 4
    assert "the manifest of generation 1" in capsys.readouterr().out
    with Index.build(docs, place) as index:
        assert index.stats()["digest"] == digest
        assert index.report is not None
        assert "generation 2 was damaged" in " ".join(index.report.warnings)
    assert main(["doctor", "-i", str(place)]) == 0


def test_a_damaged_generation_goes_when_it_is_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, docs = tmp_path / "ix", tmp_path / "docs"
    docs.mkdir()
    for name in ("a", "b"):
        (docs / f"{name}.md").write_text(f"# {name}\n\nThe harbour of {name} froze.\n")
    Index.build(docs, place).close()
    flip(place / "gen-000001" / "links" / "keyword_units_indptr.npy")
    with Index.build(docs, place) as index:
        assert index.report is not None
        assert index.report.warnings == ("generation 1 was damaged and is removed",)
    assert numbers(place) == [2]
    assert main(["doctor", "-i", str(place)]) == 0
    (docs / "c.md").write_text("# c\n\nThe harbour of c froze.\n")
    Index.build(docs, place).close()
    flip(place / "gen-000002" / "links" / "keyword_units_indptr.npy")  # an older one: no build reads it
    capsys.readouterr()
    assert main(["doctor", "-i", str(place)]) == 4
    said = capsys.readouterr().out
    assert "generation 2: " in said
    assert f"ketrag index -i {place} --keep-generations 1" in said
    assert main(["index", "-i", str(place), "--keep-generations", "1"]) == 0
    assert main(["doctor", "-i", str(place)]) == 0


@pytest.mark.parametrize("other", [[], [Document("new", "Another text.")]])
def test_a_copied_generation_under_a_huge_number_is_dropped(tmp_path: Path, other: list[Document]) -> None:
    place = tmp_path / "ix"
    Index.build(DOCUMENTS, place).close()
    shutil.copytree(place / "gen-000001", place / "gen-1000000000000")
    with Index.build([*DOCUMENTS, *other], place) as index:
        assert index.report is not None
        assert "generation 1,000,000,000,000 was damaged" in " ".join(index.report.warnings)
    assert numbers(place) == [1, *(10**12 + 1 for _ in other)]
    assert main(["doctor", "-i", str(place)]) == 0
