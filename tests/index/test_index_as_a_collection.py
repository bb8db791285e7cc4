"""An open index behaves like a collection of its documents, and names the argument that was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.errors import ConfigError, InputError

SHIPS = (
    Document("fram", "Nansen sailed the Fram into the ice in 1893.", "Fram", {"year": 1893, "open": True}),
    Document("maud", "Amundsen sailed the Maud along the coast in 1918.", "Maud", {"year": 1918}),
)


def test_length_membership_iteration_and_get(tmp_path: Path) -> None:
    with Index.build(SHIPS, tmp_path / "index") as index:
        assert len(index) == index.count() == 2
        assert "fram" in index
        assert "gjoa" not in index
        assert 3 not in index
        assert list(index) == list(SHIPS)
        assert index.get("maud") == SHIPS[1]
        assert index.get("gjoa") is None
        assert index.count("year<1900") == index.count({"year": {"$lt": 1900}}) == 1
        with pytest.raises(InputError, match="month"):
            index.count("month=3")


def test_a_document_of_several_sections_is_one_document(tmp_path: Path) -> None:
    text = "".join(f"# Part {number}\n\n{'Ice drifted past the ship. ' * 60}\n\n" for number in range(8))
    (tmp_path / "log.md").write_text(text)
    with Index.build(tmp_path / "log.md", tmp_path / "index") as index:
        (name,) = (document.id for document in index)
        found = index.get(name)
        assert len(index) == 1
        assert found is not None
        assert found.text.strip() == text.strip()


def test_add_and_remove_switch_to_the_new_generation(tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("The Belgica wintered in the pack ice.")
    with Index.build(SHIPS, tmp_path / "index") as index:
        assert index.add(Document("gjoa", "Amundsen sailed the Gjøa."), note).added == 2
        assert len(index) == 4
        assert index.remove("maud", "note*").removed == 2
        assert index.remove(where="year=1893").removed == 1
        assert [document.id for document in index] == ["gjoa"]


def test_an_index_without_documents_is_true(tmp_path: Path) -> None:
    with Index.build(SHIPS, tmp_path / "index") as index:
        index.remove("*")
        assert len(index) == 0
        assert index


def test_callers_with_rights_see_their_documents_alone(tmp_path: Path) -> None:
    with Index.build(SHIPS, tmp_path / "index") as index, index.allowed("open=true") as own:
        assert [document.id for document in own] == ["fram"]
        assert (len(own), own.count(), "maud" in own, own.get("maud")) == (1, 1, False, None)


def test_repr_is_one_line_and_says_closed(tmp_path: Path) -> None:
    index = Index.build(SHIPS, tmp_path / "index")
    assert repr(index) == f"<Index {str(tmp_path / 'index')!r}: 2 documents, generation 1>"
    index.close()
    assert repr(index) == f"<Index {str(tmp_path / 'index')!r}: closed>"


def test_a_title_of_none_is_no_title(tmp_path: Path) -> None:
    untitled = Document("a", "A text.", None)  # type: ignore[arg-type]
    with Index.build([untitled], tmp_path / "index") as index:
        assert index.get("a") == Document("a", "A text.")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("top_k", "did you mean top (of search: limit)?"),
        ("k", "did you mean top (of search: limit)?"),
        ("where", "did you mean filter?"),
        ("budgett", "did you mean budget?"),
    ],
)
def test_a_wrong_argument_names_the_right_one(tmp_path: Path, name: str, hint: str) -> None:
    with Index.build(SHIPS, tmp_path / "index") as index:
        for call in (
            index.retrieve,
            index.search,
            index.ask,
            lambda text, **fields: index.retrieve_many([text], **fields),
        ):
            with pytest.raises(ConfigError, match=repr(name)) as caught:
                call("ship", **{name: 3})  # type: ignore[operator]
            assert caught.value.hint == hint


def test_an_argument_like_no_other_lists_all(tmp_path: Path) -> None:
    with Index.build(SHIPS, tmp_path / "index") as index, pytest.raises(ConfigError) as caught:
        index.retrieve("ship", zzz=1)  # type: ignore[call-arg]
    assert "budget" in (caught.value.hint or "")
