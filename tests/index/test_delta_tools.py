"""What else reads or changes an index, on one with a delta."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.building import delta
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.index.health import examine
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from tests.support.changed import bundle
from tests.support.histories import is_delta

SETTINGS = Settings(modes="bm25,walk", language="english")
QUESTION = "Who built the Fram, and who sailed the Maud?"


def page(n: int, text: str = "") -> Document:
    about = text or f"Page {n} says that Nansen built the Fram in the year {1880 + n}."
    return Document(f"page-{n:02}", about, f"Page {n}", {"team": "a" if n % 2 else "b"})


BEFORE = [page(n) for n in range(20)]
AFTER = [page(n, "Amundsen sailed the Maud to Page 7.") if n == 3 else page(n) for n in range(20) if n != 5]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index with a delta: one document changed, one removed, one added and removed again."""
    monkeypatch.setattr(delta, "LEAST", 0)
    path = tmp_path / "index"
    with Index.build(BEFORE, path, settings=SETTINGS) as opened:
        opened.update(add=[AFTER[3], Document("new", "A new document.", "New")])
        opened.update(remove=["page-05", "new"])
    assert is_delta(path)
    return path


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    path = tmp_path / "fresh"
    Index.build(AFTER, path, settings=SETTINGS).close()
    return path


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def digest(path: Path) -> str:
    with Index.open(path) as opened:
        return opened.digest


def contexts(index: Index, **more: Any) -> list[str]:
    return [index.retrieve(QUESTION, mode=mode, **more).text for mode in ("bm25", "walk")]


def same(path: Path, fresh: Path, ask: Callable[[Index], Any]) -> None:
    with Index.open(path) as one, Index.open(fresh) as other:
        assert ask(one) == ask(other)


@pytest.mark.parametrize("verify", ["blocks", "sizes", "full"])
def test_readers_with_any_verification(index: Path, fresh: Path, verify: str) -> None:
    settings = Settings(verify=verify)
    with Index.open(index, settings=settings) as one, Index.open(fresh) as other:
        assert contexts(one) == contexts(other)


def test_many_questions_filters_rights_and_lists(index: Path, fresh: Path) -> None:
    same(index, fresh, lambda one: [c.text for c in one.retrieve_many([QUESTION, "Page 7"] * 3)])
    same(index, fresh, lambda one: contexts(one, filter="team=a"))
    same(index, fresh, lambda one: contexts(one, allow="team=a"))
    same(index, fresh, lambda one: [listed.document for listed in one.inspect.documents()])
    same(index, fresh, lambda one: one.inspect.document_count)
    same(index, fresh, lambda one: one.stats()["counts"] if "counts" in one.stats() else one.stats()["sizes"])


def test_a_build_folds_the_delta_and_gives_the_bytes_of_a_build_from_scratch(
    index: Path, fresh: Path
) -> None:
    with Index.build([], index) as built:
        assert built.report is not None and built.report.changed
    assert not is_delta(index) and digest(index) == digest(fresh)


def test_a_full_delta_is_folded(index: Path, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "MOST", 3)
    with Index.open(index) as opened:
        opened.update(remove=["page-07"])
    assert not is_delta(index)
    with Index.open(fresh) as opened:
        opened.update(remove=["page-07"])
    monkeypatch.setattr(delta, "MOST", 0)
    with Index.open(fresh) as opened:
        opened.update(remove=["page-09"])
    with Index.open(index) as opened:
        opened.update(remove=["page-09"])
    assert digest(index) == digest(fresh)


def test_a_purge_folds_and_leaves_no_trace(index: Path) -> None:
    with Index.open(index) as opened:
        opened.update(remove=["page-03", "page-04"], purge=True)
    assert not is_delta(index)
    for file in (path for path in index.rglob("*") if path.is_file()):
        data = file.read_bytes()
        assert b"Amundsen sailed the Maud" not in data and b"page-03" not in data, file
    with Index.open(index) as opened:
        assert "Maud" not in "".join(contexts(opened))


def test_doctor_reads_the_delta(index: Path) -> None:
    assert all(finding.error is None for finding in examine(index))
    folder = open_current(Layout(index)).folder / "delta"
    for file in [path for path in folder.iterdir() if path.suffix != ".b3"]:
        good = file.read_bytes()
        file.chmod(0o600)
        file.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        assert any(isinstance(finding.error, IndexDamaged) for finding in examine(index)), file
        with pytest.raises(IndexDamaged):
            Index.open(index)
        file.write_bytes(good)
    assert all(finding.error is None for finding in examine(index))


def test_a_bundle_has_the_delta(index: Path, fresh: Path, tmp_path: Path) -> None:
    bundle(index, tmp_path / "one.ketrag")
    Index.unbundle(tmp_path / "one.ketrag", tmp_path / "copy")
    assert is_delta(tmp_path / "copy")
    same(tmp_path / "copy", fresh, contexts)


def test_a_merge_of_indexes_with_deltas(index: Path, fresh: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    Index.build(
        [Document("z", "The Gjøa was small.", "Gjøa", {"team": "a"})], other, settings=SETTINGS
    ).close()
    Index.merge([index, other], tmp_path / "merged").close()
    Index.merge([fresh, other], tmp_path / "wanted").close()
    assert digest(tmp_path / "merged") == digest(tmp_path / "wanted")


def test_a_stopped_change_is_not_lost(index: Path, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, Index.open(index) as opened:
        patched.setattr(delta.Deltas, "publish", interrupt)
        with pytest.raises(KeyboardInterrupt):
            opened.update(remove=["page-11"])
    with Index.open(index) as opened:
        opened.update(remove=["page-12"])  # the tables have more changes than these: they are published, too
    with Index.open(fresh) as opened:
        opened.update(remove=["page-11", "page-12"])
    same(index, fresh, contexts)


def test_a_stopped_write_changes_nothing(index: Path, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, Index.open(index) as opened:
        patched.setattr(delta, "write_stage", interrupt)
        with pytest.raises(KeyboardInterrupt):
            opened.update(remove=["page-11"])
    same(index, fresh, contexts)
    with Index.open(index) as opened:
        assert opened.update(add=[AFTER[3]]).changed is False
        assert [failure.code for failure in opened.update(remove=["none"]).failures] == ["unknown"]
    assert is_delta(index)


def test_changes_that_a_delta_cannot_hold_are_ordinary_builds(index: Path, tmp_path: Path) -> None:
    german = "Das Schiff fuhr nach Norden und kehrte im Winter nicht mehr nach Hause zurück."
    auto = tmp_path / "auto"
    Index.build(BEFORE, auto, settings=Settings(modes="bm25,walk")).close()
    with Index.open(auto) as opened:
        opened.update(add=[Document("new", "A new document of Nansen.", "New")])
    assert is_delta(auto)
    with Index.open(auto) as opened:
        opened.update(add=[Document("de", german, "Schiff")])
    assert not is_delta(auto)
    with Index.open(auto) as opened:
        opened.update(add=[Document("de2", f"{german} Im Winter.", "Schiff")])
    assert is_delta(auto)  # it is no longer the first
    with Index.open(index) as opened:
        opened.update(where={"team": "a"}, fold=True)
    assert not is_delta(index)


def test_a_reader_keeps_what_it_opened(index: Path) -> None:
    with Index.open(index) as reader, Index.open(index) as writer:
        before = contexts(reader)
        for n in range(6, 12):
            writer.update(remove=[f"page-{n:02}"])
        assert contexts(reader) == before
        assert reader.refresh() and contexts(reader) == contexts(writer)
    assert len(list(os.scandir(index / "work"))) == 0


def test_what_a_killed_build_left_goes_with_the_next_change(index: Path) -> None:
    left = index / "work" / "gen-000001"
    left.mkdir()
    (left / "manifest.json").write_text("{}")
    with Index.open(index) as opened:
        report = opened.update(remove=["page-11"])
    assert [stage.name for stage in report.stages] == ["delta"]
    assert list((index / "work").iterdir()) == []
