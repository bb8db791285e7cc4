"""Many changes are kept in two levels: a large delta that stays as it is, and a small one after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.building import delta
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.index.health import examine
from ketrag_fast.storage.delta import BEFORE, DELTA, Delta
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from tests.support.histories import SETTINGS, answers, compare, is_delta
from tests.support.pages import built, page


@pytest.fixture(autouse=True)
def two_levels(deltas_of_any_size: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "RECENT", 4)


def opened(path: Path) -> Delta:
    generation = open_current(Layout(path))
    found = generation.delta
    assert found is not None and generation.verify == "blocks"
    return found


def change(index: Index, documents: list[Document], *numbers: int) -> None:
    for n in numbers:
        documents[n] = page(n, f"Amundsen sailed the Maud to Page {n} in {n + 1900}, or to Place {n * n}.")
    index.update(add=[documents[n] for n in numbers])


def file_of(path: Path, stage: str) -> Path:
    return next((open_current(Layout(path)).folder / stage).glob("index.*"))


def test_each_level_holds_its_changes(tmp_path: Path) -> None:
    """The large level is the same file until the small one is large, too; then both become one."""
    path = tmp_path / "index"
    documents = built(path, 16)
    with Index.open(path) as index:
        change(index, documents, 1, 2)
        assert (opened(path).changed, opened(path).recent, BEFORE in opened(path).stages) == (4, 4, False)
        first = file_of(path, DELTA).stat().st_ino
        change(index, documents, 3)
        assert (opened(path).changed, opened(path).recent) == (6, 2)
        change(index, documents, 3)  # the small level is written again
        change(index, documents, 4)
        assert (opened(path).changed, opened(path).recent) == (8, 4)
        assert file_of(path, BEFORE).stat().st_ino == first
        compare(path, documents, tmp_path / "fresh")
        change(index, documents, 5)
        assert (opened(path).changed, opened(path).recent, BEFORE in opened(path).stages) == (10, 10, False)
        compare(path, documents, tmp_path / "again")
        index.update(remove="page-000")
        del documents[0]
        assert (opened(path).changed, opened(path).recent) == (11, 1)
        compare(path, documents, tmp_path / "last")
        with Index.open(path) as other, Index.open(tmp_path / "last") as fresh:
            assert answers(other, False) == answers(index, False) == answers(fresh, False)
            index.update(fold=True)
            assert index.digest == fresh.digest and not is_delta(path)


def test_the_large_level_stays_open(tmp_path: Path) -> None:
    """A reader does not put its arrays together again, unless they are those of another index."""
    path = tmp_path / "index"
    documents = built(path)
    with Index.open(path) as index, Index.open(path) as reader:
        change(index, documents, 1, 2)
        change(index, documents, 3)
        reader.refresh()
        levels = [one._state.opened.generation.delta for one in (index, reader)]
        change(index, documents, 4)
        reader.refresh()
        for before, one in zip(levels, (index, reader), strict=True):
            after = one._state.opened.generation.delta
            assert before is not None and after is not None and after.below is before.below
        Index.build(documents, path, rebuild=True, settings=SETTINGS).close()
        for numbers in ((5, 6), (7,)):
            change(index, documents, *numbers)
        reader.refresh()
        now = reader._state.opened.generation.delta
        assert now is not None and levels[1] is not None and now.below is not levels[1].below
        compare(path, documents, tmp_path / "fresh")
        with Index.open(tmp_path / "fresh") as fresh:
            assert answers(reader, False) == answers(fresh, False)


@pytest.mark.parametrize("stage", [BEFORE, DELTA])
@pytest.mark.parametrize("how", ["cut", "lost", "altered"])
def test_a_damaged_level(stage: str, how: str, tmp_path: Path) -> None:
    path = tmp_path / "index"
    documents = built(path)
    with Index.open(path) as index:
        change(index, documents, 1, 2)
        change(index, documents, 3)
    file = file_of(path, stage)
    data = file.read_bytes()
    file.unlink()
    if how != "lost":
        file.write_bytes(data[:-9] if how == "cut" else data.replace(b'"fingerprints"', b'"fingerprintz"'))
    with pytest.raises(IndexDamaged, match=stage):
        Index.open(path)
    assert [one.what for one in examine(path) if one.error is not None] == ["generation 3"]
