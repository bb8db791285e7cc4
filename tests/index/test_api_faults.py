"""Faults that a user of the Python interface met: what was dropped, ignored or closed without a word."""

from __future__ import annotations

import errno
import pickle
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import (
    ConfigError,
    IndexDamaged,
    IndexLocked,
    IndexMissing,
    InputError,
    KetragError,
    StorageFailed,
    StorageFull,
)
from ketrag_fast.storage.io_errors import convert_os_error
from ketrag_fast.storage.layout import MERGE, Layout
from ketrag_fast.storage.tables import Tables
from tests.soak.small import has_delta, small

DOCUMENTS = [
    Document(f"d{i}", f"The harbour of number {i} froze in winter w{i}.", f"Port {i}", {"n": i})
    for i in range(40)
]
BIG = 2**53


def test_documents_of_a_generator_are_added_to_an_index_with_deltas(tmp_path: Path) -> None:
    with small(), Index.build(DOCUMENTS[:30], tmp_path / "ix") as index:
        index.update(remove="d0")
        assert has_delta(tmp_path / "ix")
        done = index.update(add=(document for document in DOCUMENTS[30:]))
        assert done.added == 10
        assert index.update(add=(document for document in DOCUMENTS[:1])).added == 1  # one that was removed
        more = (Document(f"e{i}", f"A text about ship {i}.") for i in range(3))
        report = Index.build(more, tmp_path / "ix").report
        assert report is not None
        assert report.added == 3


@pytest.mark.parametrize("wrong", [None, 5, [None], [("a", "x")], [{"id": "a", "text": "x"}], b"x", {"a": 1}])
def test_what_is_no_source_is_refused(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(InputError, match="neither a path nor a Document") as caught:
        Index.build(wrong, tmp_path / "ix")  # type: ignore[arg-type]
    assert "Document(id, text)" in str(caught.value.hint)
    assert not (tmp_path / "ix").exists()


def test_views_are_closed_one_by_one(tmp_path: Path) -> None:
    with Index.build(DOCUMENTS, tmp_path / "ix") as index:
        with index.allowed("n>20") as one, index.allowed("n>20") as other:
            one.close()
            assert other.retrieve("winter w30").passages
        with pytest.raises(InputError, match="closed"):
            one.retrieve("winter w30")
        assert index.retrieve("winter w30", allow="n>20").passages
        with index.allowed("n>20") as again:
            assert "w30" in again.retrieve("winter w30").text


@pytest.mark.parametrize("name", ["ALLOW", "chunk-tokens", " budget"])
def test_a_setting_in_another_spelling_is_refused(name: str) -> None:
    right = name.strip().lower().replace("-", "_")
    with pytest.raises(ConfigError, match="unknown setting") as caught:
        Settings(**{name: "n>1"})
    assert caught.value.hint == f"did you mean {right}?"
    with pytest.raises(ConfigError):
        Settings().having(**{name: "n>1"})


def test_large_integers_are_compared_exactly(tmp_path: Path) -> None:
    owners = [BIG, BIG + 1, BIG + 2, 5, 5.5, -(BIG + 1), 10**400]
    documents = [
        Document(f"d{i}", f"A ship of owner {i}.", metadata={"owner": owner})
        for i, owner in enumerate(owners)
    ]
    with Index.build(documents, tmp_path / "ix") as index:

        def seen(condition: object) -> list[int]:
            found = index.retrieve("ship", filter=condition, budget=2000)  # type: ignore[arg-type]
            return sorted(int(passage.document[1:]) for passage in found.passages)

        for i, owner in enumerate(owners[:-1]):
            assert seen({"owner": owner}) == [i]
            assert seen(f"owner={owner}") == [i]
        assert seen({"owner": {"$in": [BIG + 1, 5, *range(1000, 1020)]}}) == [1, 3]
        assert seen(f"owner>{BIG}") == [1, 2, 6]
        assert seen(f"owner>={BIG + 1}") == [1, 2, 6]
        assert seen(f"owner<{-BIG}") == [5]
        assert seen(f"owner!={BIG + 1}") == [0, 2, 3, 4, 5, 6]
        assert index.retrieve("ship", allow={"owner": BIG}).passages[0].document == "d0"
        assert index.update(where={"owner": BIG + 1}).removed == 1


def test_a_large_integer_equals_no_float_of_a_column(tmp_path: Path) -> None:
    documents = [Document(f"d{i}", f"A ship {i}.", metadata={"owner": float(BIG + 2 * i)}) for i in range(3)]
    with Index.build(documents, tmp_path / "ix") as index:
        assert not index.retrieve("ship", filter={"owner": BIG + 1}).passages
        found = index.retrieve("ship", filter=f"owner>={BIG + 1}").passages
        assert {passage.document for passage in found} == {"d1", "d2"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_is_none_is_a_missing_value(tmp_path: Path, value: float) -> None:
    documents = [Document("a", "A ship.", metadata={"v": value}), Document("b", "A ship.", metadata={"v": 7})]
    with Index.build(documents, tmp_path / "ix") as index:
        for condition in ("v>5", "v exists", "v<9"):
            found = index.retrieve("ship", filter=condition).passages
            assert [passage.document for passage in found] == ["b"], condition


def test_merge_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    Index.build(DOCUMENTS[:2], tmp_path / "a").close()
    Index.build([Document("d0", "Another text.")], tmp_path / "b").close()
    parts = [tmp_path / "a", tmp_path / "b"]
    for wrong in ("x", "LAST", True):
        with pytest.raises(ConfigError, match="prefer must be"):
            Index.merge(parts, tmp_path / "m", prefer=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a list of indexes"):
        Index.merge(str(tmp_path / "a"), tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_context_can_be_sent_to_another_process(tmp_path: Path) -> None:
    with Index.build(DOCUMENTS, tmp_path / "ix") as index:
        context = index.retrieve("Which winter was w3?")
        again = pickle.loads(pickle.dumps(context))
        assert again == context
        assert list(again.passages) == list(context.passages)


@pytest.mark.parametrize("change", ["documents", "folder"])
def test_a_damaged_base_of_a_delta_is_repaired_by_the_change(tmp_path: Path, change: str) -> None:
    docs, place = tmp_path / "docs", tmp_path / "ix"
    docs.mkdir()
    for document in DOCUMENTS:
        (docs / f"{document.id}.md").write_text(f"# {document.title}\n\n{document.text}\n")
    with small():
        Index.build(docs, place).close()
        for file in sorted((place / "gen-000001" / "links").glob("keyword_units_ind*")):
            data = bytearray(file.read_bytes())
            data[len(data) // 2] ^= 1
            file.write_bytes(data)
        if change == "documents":
            with Index.open(place) as index:
                assert index.update(add=[Document("new", "A new text of ship w99.")]).added == 1
        else:
            (docs / "new.md").write_text("A new text of ship w99.\n")
            Index.build([], place).close()
        with Index.open(place, settings=Settings(verify="full")) as index:
            assert "w99" in index.retrieve("ship w99").text


def test_every_error_of_a_disk_is_typed() -> None:
    for number, name in errno.errorcode.items():
        error = convert_os_error(OSError(number, name, "a/file"), Path("a"))
        if number == errno.EINTR:
            continue
        assert error is not None, name
        assert "a/file" in str(error), name
    locked = convert_os_error(OSError(errno.ENOLCK, "No locks available", "ix/index.lock"), Path("ix"))
    assert isinstance(locked, StorageFailed)
    assert "local disk" in str(locked.hint)


def test_an_unfinished_merge_is_not_an_unfinished_build(tmp_path: Path) -> None:
    place = tmp_path / "m"
    Layout(place).create()
    Tables(Layout(place).tables).close()
    (place / "work").mkdir(exist_ok=True)
    (place / "work" / MERGE).write_text("{}")
    for is_build in (False, True):
        with pytest.raises(IndexMissing, match="never finished") as caught:
            Index.build(DOCUMENTS, place) if is_build else Index.open(place)
        assert "`ketrag merge`" in str(caught.value.hint)


def test_tables_that_change_while_they_are_read_are_not_damaged(tmp_path: Path) -> None:
    place = tmp_path / "ix"
    documents = [Document(f"d{i}", f"A text {i}.", "long title " * 80 + str(i)) for i in range(4000)]
    Index.build(documents, place).close()
    with Index.open(place) as reader, Index.open(place) as writer:
        stored = iter(reader.inspect.stored())
        next(stored)
        writer.update(remove=[f"d{i}" for i in range(0, 4000, 2)])
        try:
            assert len(list(stored)) == 3999
        except IndexLocked as error:
            assert error.hint is not None
        except IndexDamaged as error:
            pytest.fail(f"not damaged: {error}")


@pytest.mark.parametrize(("code", "error"), [(errno.EIO, StorageFailed), (errno.ENOSPC, StorageFull)])
def test_a_merge_on_a_failing_disk_ends_with_a_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, error: type[KetragError]
) -> None:
    for name, documents in (("a", DOCUMENTS[:2]), ("b", DOCUMENTS[2:4])):
        Index.build(documents, tmp_path / name).close()
    unlink = Path.unlink

    def failing(path: Path, missing_ok: bool = False) -> None:
        if path.name.startswith("merging.sqlite"):
            raise OSError(code, "reason", str(path))
        unlink(path, missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", failing)
        with pytest.raises(error, match=r"merging\.sqlite"):
            Index.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "m")
    with Index.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "m") as merged:
        assert merged.stats()["counts"]["documents"] == 4
