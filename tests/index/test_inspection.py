"""What an open index tells without a question: documents, neighbours, vectors, tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import ConfigError, EmptyQuery, InputError, ModeUnavailable
from ketrag_fast.types import Context, Locator

TEXT = " ".join(f"Sentence number {n} tells of the ship Fram and of ice." for n in range(60))
DOCUMENTS = [Document("b/long.md", TEXT, "Long"), Document("a", "Short."), Document("Ünï", "x", "Straße")]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    path = tmp_path_factory.mktemp("looking") / "index"
    with Index.build(DOCUMENTS, path, settings=Settings(threads=1, modes="auto,text")) as found:
        yield found


def test_documents_in_pages_and_by_a_part_of_their_names(index: Index) -> None:
    every = index.inspect.documents()
    assert [one.document for one in every] == ["b/long.md", "a", "Ünï"]
    assert index.inspect.document_count == 3
    assert index.inspect.documents(1, 1) == every[1:2]
    assert index.inspect.documents(5) == []
    assert index.inspect.documents(count=0) == []
    assert [one.document for one in index.inspect.documents(containing="STRASSE")] == ["Ünï"]
    assert [one.document for one in index.inspect.documents(1, 5, containing="a")] == ["Ünï"]
    assert sum(one.units for one in every) == index.stats()["counts"]["chunks"]
    assert every[0].units > 3
    for wrong in ({"first": -1}, {"count": -1}, {"first": 1.5}):
        with pytest.raises((InputError, ConfigError), match=r"negative|whole"):
            index.inspect.documents(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("title", ["Guide", "Guide (2nd edition)", ""])
@pytest.mark.parametrize("start", ["", "A text before any heading."])
def test_a_document_with_sections_has_its_own_title(title: str, start: str, tmp_path: Path) -> None:
    parts = {("Install (short)",): TEXT, ("Install (short)", "Linux"): TEXT, ("Use",): TEXT}
    text = "\n\n".join([start, *parts.values()])
    places = [(len(start) + 2 + at * (len(TEXT) + 2), list(path)) for at, path in enumerate(parts)]
    marks = tuple(Locator(at, at + len(TEXT), "heading", path) for at, path in places)
    document = Document("g", text, title, locators=marks)
    settings = Settings(threads=1, modes="bm25")
    with Index.build([document], tmp_path / "index", settings=settings) as index:
        assert "Linux" in str(index.retrieve("ship", mode="bm25"))
        assert [one.title for one in index.inspect.documents()] == [title]


def test_documents_with_matching_metadata(tmp_path: Path) -> None:
    documents = [Document(f"d{n}", f"Ship {n}.", f"Ship {n}", {"year": 1890 + n}) for n in range(6)]
    documents.append(Document("e", TEXT, "Long", {"year": 1893}))
    with Index.build(documents, tmp_path / "index", settings=Settings(filter="year>=1893")) as index:
        listed = index.inspect.documents

        def ids(*given: object, **more: object) -> list[str]:
            return [one.document for one in listed(*given, **more)]  # type: ignore[arg-type]

        assert len(ids()) == 7, "a filter of the settings is for queries"
        assert ids(filter="year>=1893") == ids(filter={"year": {"$gte": 1893}}) == ["d3", "d4", "d5", "e"]
        assert ids(1, 2, filter="year>=1893") == ["d4", "d5"]
        assert ids(containing="ship", filter="year=1893") == ["d3"]
        assert ids(filter="year=1") == []
        with pytest.raises(InputError, match="no document has a field 'yaer'; known fields: year"):
            ids(filter="yaer=1")


def test_neighbours_stay_in_their_document(index: Index) -> None:
    long, short, _ = index.inspect.documents()
    whole = index.inspect.around(long.unit + 1, before=100, after=100)
    assert [unit for unit, _ in whole] == list(range(long.unit, long.unit + long.units))
    for _, span in whole:
        assert TEXT[span.start : span.end] == span.text
        assert (span.document, span.title) == ("b/long.md", "Long")
    assert index.inspect.around(long.unit + 1) == whole[:3]
    assert [unit for unit, _ in index.inspect.around(short.unit, 3, 3)] == [short.unit]
    for unit in (-1, 10**9):
        with pytest.raises(InputError, match="does not exist"):
            index.inspect.around(unit)


def test_vectors_are_those_that_questions_get(index: Index) -> None:
    made = index.inspect.vectors(["the ship Fram", "ice"])
    assert made.dtype == np.float32
    assert np.allclose(np.linalg.norm(made, axis=1), 1, atol=1e-4)
    assert np.array_equal(index.inspect.vectors(["ice"], "document")[0], made[1])
    with pytest.raises(InputError, match="got 'other'"):
        index.inspect.vectors(["a"], "other")  # type: ignore[arg-type]
    with pytest.raises(EmptyQuery):
        index.inspect.vectors([" "])
    index.inspect.warm()
    assert (
        index.inspect.tokens(["the ship Fram", "ice"])
        == index.inspect.tokens(["the ship Fram"]) + index.inspect.tokens(["ice"])
        == 4
    )


def test_an_index_without_vectors_says_so(tmp_path: Path) -> None:
    settings = Settings(threads=1, modes="bm25")
    with (
        Index.build(DOCUMENTS, tmp_path / "index", settings=settings) as index,
        pytest.raises(ModeUnavailable, match="no vectors"),
    ):
        index.inspect.vectors(["a"])


def test_the_context_comes_before_the_answer_and_may_stop_it(index: Index) -> None:
    seen: list[Context] = []
    answer = index.ask("the ship Fram", on_context=lambda context: bool(seen.append(context)))
    assert (answer.reason, seen) == ("cancelled", [answer.context])
    answer = index.ask("the ship Fram", on_context=lambda _: None)
    assert answer.reason == "no_model"
