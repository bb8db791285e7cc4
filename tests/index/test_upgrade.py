"""An index of the previous format is refused by name; `ketrag upgrade` takes it over without its sources."""

from __future__ import annotations

import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import IndexDamaged, IndexIncompatible
from ketrag_fast.storage.layout import Layout
from ketrag_fast.types import Document
from tests.process import ketrag, python

FIXTURE = Path(__file__).parents[1] / "data" / "index-format-4.tar.xz"
"""Made by the last version that wrote format 4, with vectors of its own (`vectors/`), modes auto and knn."""
DOCUMENTS = [
    Document(
        "bridge", "The bridge crosses the Mira. Anton Heller built it. It has nine arches.", "Old bridge"
    ),
    Document("heller", "Heller was born in Kronstadt. He died there as a poor man.", "Anton Heller"),
    Document("bread", "Rye bread keeps for a week. Bakers add salt.", ""),
]


@pytest.fixture
def old(tmp_path: Path) -> tuple[Path, Settings]:
    with tarfile.open(FIXTURE) as files:
        files.extractall(tmp_path, filter="data")
    (tmp_path / "index" / "work").mkdir(exist_ok=True)
    return tmp_path / "index", Settings(embedder=f"vectors:{tmp_path / 'vectors'}")


def test_it_is_refused_and_the_hint_names_the_command_that_works(old: tuple[Path, Settings]) -> None:
    index, settings = old
    for work in (lambda: Index.open(index), lambda: Index.build([], index, settings=settings)):
        with pytest.raises(IndexIncompatible, match=r"has format 4; .* reads format 5") as caught:
            work()
        assert "`ketrag upgrade` upgrades it" in (caught.value.hint or "")
    done = ketrag("retrieve", "-i", str(index), "Who built the bridge?", cwd=index.parent)
    assert done.code != 0 and f"`ketrag upgrade -i {index}`" in done.err
    done = ketrag("upgrade", "-i", str(index), "--embedder", settings.embedder, cwd=index.parent)
    assert done.code == 0, done.err
    with Index.open(index, settings=settings) as opened:
        for mode in ("walk", "text", "fused", "knn", "bm25"):
            found = opened.retrieve("Who built the bridge?", mode=mode)
            assert found.passages[0].document == "bridge" and not found.warnings


def test_the_result_is_that_of_a_build(old: tuple[Path, Settings], tmp_path: Path) -> None:
    index, settings = old
    with Index.upgrade(index, settings=settings) as upgraded:
        report = upgraded.report
        assert report is not None and report.changed
        how = {stage.name: stage.how for stage in report.stages}
        # The stages of texts are reused, or made again from the texts of the index if their rules changed.
        assert {how["units"], how["links"]} <= {"reused", "ran"} and how["vectors"] == "ran"
        digest = upgraded.digest
    given = settings.having(modes="auto,knn")
    with Index.build(DOCUMENTS, tmp_path / "new", settings=given) as built:
        assert built.digest == digest
    with closing(sqlite3.connect(index / "index.sqlite")) as db:
        roles = db.execute("SELECT role, count(*) FROM vectors GROUP BY role").fetchall()
        assert roles == [] or roles == [("document", 10)]  # samples of the model at most
    with Index.upgrade(index, settings=settings) as again:
        assert again.report is not None and not again.report.changed and again.digest == digest


@pytest.mark.parametrize("step", ["replace_file", "_take_over_tables", "build"])
def test_killed_at_any_step_the_same_command_continues(old: tuple[Path, Settings], step: str) -> None:
    index, settings = old
    module = "building.reembed" if step == "build" else "storage.earlier_format"
    killed = (
        "import os, sys\n"
        f"import ketrag_fast.{module} as module\n"
        "from ketrag_fast import Index, Settings\n"
        f"module.{step} = lambda *_, **__: os._exit(9)\n"
        "Index.upgrade(sys.argv[1], settings=Settings(embedder=sys.argv[2]))\n"
    )
    assert python(killed, str(index), settings.embedder, cwd=index.parent).code == 9
    with Index.upgrade(index, settings=settings) as upgraded:
        assert upgraded.retrieve("Who built the bridge?", mode="walk").passages[0].document == "bridge"


def test_an_altered_manifest_and_other_formats_are_refused(old: tuple[Path, Settings]) -> None:
    index, settings = old
    manifest = Layout(index).generation(1) / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"documents": {', '"documents": { "more": 1,', 1))
    with pytest.raises(IndexDamaged, match="seal"):
        Index.upgrade(index, settings=settings)
    manifest.write_text(text.replace('"format": 4', '"format": 3'))
    with pytest.raises(IndexIncompatible, match="format 3"):
        Index.upgrade(index, settings=settings)
