"""A change of an index with a delta reads only what it changes, and is a build whatever came in between."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.building import delta
from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.spec.documents import Documents
from tests.process import environment
from tests.support.histories import SETTINGS, answers, arrays_of, compare, is_delta
from tests.support.pages import built, page

pytestmark = pytest.mark.usefixtures("deltas_of_any_size")


def changed(path: Path) -> int:
    found = open_current(Layout(path)).delta
    assert found is not None
    return found.changed


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The ids of the documents that each change reads."""
    lists: list[list[str]] = []
    of = Documents.of

    def listing(cls: type[Documents], tables: Tables, ids: Sequence[str], *, cut: bool = False) -> Documents:
        lists.append(list(ids))
        return of(tables, ids, cut=cut)

    monkeypatch.setattr(Documents, "of", classmethod(listing))
    return lists


def test_only_the_new_documents_are_read(tmp_path: Path, read: list[list[str]]) -> None:
    """No matter who published the earlier changes: this object, another one, or one that was closed since."""
    path = tmp_path / "index"
    documents = built(path)
    with Index.open(path) as one, Index.open(path) as other:
        for n, index in enumerate((one, other, one, one)):
            documents[n] = page(n, f"Amundsen sailed the Maud to Page {n + 1}.")
            index.update(add=[documents[n]])
    documents[7] = page(7, "The Maud left.")
    with Index.open(path) as index:
        index.update(add=[documents[7]], remove="page-002")
    del documents[2]
    assert read == [["page-000"], ["page-001"], ["page-002"], ["page-003"], ["page-007"]]
    assert is_delta(path)
    compare(path, documents, tmp_path / "fresh")


def test_the_base_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index"
    built(path)
    with Index.open(path) as index:
        first = index._state.opened.generation.stages["links"].file("keywords_blob")
        monkeypatch.setattr(delta, "open_generation", None)
        for n in range(3):
            index.update(add=[page(n, "Amundsen sailed the Maud.")])
            found = index._state.opened.generation.delta
            assert found is not None and found.base["links"].file("keywords_blob") is first


def test_changes_of_one_document_stay_as_large_as_one(tmp_path: Path) -> None:
    path = tmp_path / "index"
    documents = built(path)
    sizes = []
    with Index.open(path) as index:
        for n in range(9):
            documents[4] = page(4, f"Amundsen sailed the Maud to Page {n} in year {n} of the ice.")
            index.update(add=[documents[4]])
            assert changed(path) == 2
            folder = open_current(Layout(path)).folder / "delta"
            sizes.append(sum(file.stat().st_size for file in folder.glob("[psv]*")))
        assert max(sizes) < 1.5 * sizes[0]
        index.update(remove="page-004")
        assert changed(path) == 1
    del documents[4]
    compare(path, documents, tmp_path / "fresh")


OTHER = """
import sys
from ketrag_fast import Document, Index
from ketrag_fast.building import delta
from ketrag_fast.errors import IndexDamaged
delta.LEAST = 0
with Index.open(sys.argv[1]) as index:
    index.update(add=[Document("page-003", "Another program sailed.", "Page 3")], remove="page-001")
    if sys.argv[2] == "fold":
        index.update(fold=True)
"""


@pytest.mark.parametrize("how", ["delta", "fold"])
def test_another_process_changes_the_index_in_between(tmp_path: Path, how: str) -> None:
    path = tmp_path / "index"
    documents = built(path)
    with Index.open(path) as index:
        documents[2] = page(2, "Amundsen sailed the Maud.")
        index.update(add=[documents[2]])
        subprocess.run([sys.executable, "-c", OTHER, str(path), how], env=environment(), check=True)
        documents[8] = page(8, "Nansen sailed the Maud.")
        index.update(add=[documents[8]])
        documents[3] = Document("page-003", "Another program sailed.", "Page 3")
        del documents[1]
        assert is_delta(path)
        compare(path, documents, tmp_path / "fresh")
        with Index.open(tmp_path / "fresh") as fresh:
            assert answers(index, False) == answers(fresh, False)


def test_another_index_takes_the_place_of_the_open_one(tmp_path: Path) -> None:
    """It has the same number of generations, and other documents."""
    path, other = tmp_path / "index", tmp_path / "other"
    built(path)
    documents = built(other, 9)
    with Index.open(path) as index:
        shutil.rmtree(path)
        shutil.copytree(other, path)
        documents[2] = page(2, "Amundsen sailed the Maud.")
        index.update(add=[documents[2]])
        compare(path, documents, tmp_path / "fresh")


def test_a_file_that_was_cut_short_is_not_used(tmp_path: Path) -> None:
    """A published generation is not made of it, though the open one still has all its bytes."""
    path = tmp_path / "index"
    built(path)
    with Index.open(path) as index:
        file = next((path / "gen-000001" / "links").glob("keywords_blob.*"))
        data = file.read_bytes()
        file.unlink()
        file.write_bytes(data[:-9])
        with pytest.raises(IndexDamaged):
            index.update(add=[page(2, "Amundsen sailed the Maud.")])
    assert [one.name for one in path.glob("gen-*")] == ["gen-000001"]


def lines(path: Path, documents: Sequence[Document]) -> Path:
    rows = [json.dumps({"id": one.id, "title": one.title, "text": one.text}) for one in documents]
    path.write_text("\n".join(rows) + "\n", "utf-8")
    return path


CHANGES: dict[str, list[Document]] = {
    "one of a file": [page(2, "Amundsen sailed the Maud.")],
    "two of a file, one of them as it was, and new ones": [
        page(4),
        page(1, "The Maud."),
        Document("new", "A new document of Nansen.", "New"),
        Document("new2", "Another one.", ""),
    ],
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("last", ["files", "program"])
def test_a_program_replaces_documents_of_a_file(
    what: str, last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They then belong to the program, even if the file came first; as after a whole build."""
    given = CHANGES[what]
    file = lines(tmp_path / "pages.jsonl", [page(n) for n in range(9)])
    own = Document("own", "A document of a program.", "Own")
    found: list[tuple[Any, ...]] = []
    for place, least in ((tmp_path / "delta", 0), (tmp_path / "whole", 1 << 60)):
        monkeypatch.setattr(delta, "LEAST", least)
        sources: list[str | Document] = [own, str(file)] if last == "files" else [str(file)]
        if last == "files":
            Index.build([own], place, settings=SETTINGS).close()
        Index.build(sources, place, settings=SETTINGS).close()
        with Index.open(place) as index:
            with monkeypatch.context() as patched:
                if not least:
                    patched.setattr(
                        "ketrag_fast.building.runner._read_sources", None
                    )  # a whole build calls it
                report = index.update(add=given)
            assert is_delta(place) == (not least) and report.changed and not report.failures
            numbers = (report.added, report.updated, report.removed, report.documents, report.warnings)
            listed = [(one.document, one.title) for one in index.inspect.documents()]
            found.append((numbers, listed, index.stats()["content_digest"], arrays_of(place)))
            with Tables(place / "index.sqlite", read_only=True) as tables:
                found[-1] += (tables.origins(one.id for one in given).keys(),)
            # The file has all documents: those of the program stay, or are those of the file again.
            index.update(add=[str(file)])
            found[-1] += (arrays_of(place),)
    one, other = found
    assert one[:3] == other[:3] and one[4] == other[4] and not one[4]
    for mine, theirs in ((one[3], other[3]), (one[5], other[5])):
        assert mine.keys() == theirs.keys()
        assert all(mine[name].tolist() == theirs[name].tolist() for name in mine)


def test_many_documents_of_a_file_at_once(tmp_path: Path) -> None:
    """More than are looked for one by one."""
    path, count = tmp_path / "index", delta._FEW + 5
    own, documents = Document("own", "A document."), [page(n) for n in range(2 * count)]
    Index.build([own], path, settings=SETTINGS).close()
    Index.build(lines(tmp_path / "pages.jsonl", documents), path, settings=SETTINGS).close()
    given = [page(n, f"Amundsen sailed the Maud to Page {n}.") for n in range(0, 2 * count, 2)]
    with Index.open(path) as index:
        index.update(add=given)
    assert is_delta(path)
    gone = {one.id for one in given}
    compare(path, [own, *given, *(one for one in documents if one.id not in gone)], tmp_path / "fresh")
