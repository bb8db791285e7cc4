"""Hidden sheets, rows, columns and slides are left out and reported, unless a setting asks for them."""

from __future__ import annotations

from pathlib import Path

from ketrag_fast import Index, Settings
from ketrag_fast.readers import SourceFile, items_of
from ketrag_fast.types import Document
from tests.support.office_files import pptx, shape, text_row, xlsx

ROWS = [
    text_row(1, "ship", "price", "note"),
    text_row(2, "Fram", "10", "open"),
    text_row(3, "Maud", "20", "secret").replace("<row ", '<row hidden="1" '),
    text_row(4, "Gjøa", "30", "open"),
]
BOOK = xlsx(
    {"Ships": ROWS, "Costs": ROWS[:2], "Old": ROWS[:2]},
    hidden={"Costs": "hidden", "Old": "veryHidden"},
    columns='<cols><col min="1" max="1"/><col min="2" max="2" hidden="1"/></cols>',
)
SLIDES = [shape(["One"], "title"), shape(["Two is secret"], "title"), shape(["Three"], "title")]


def deck() -> bytes:
    return pptx([SLIDES[0], SLIDES[1], SLIDES[2]], {2: "Notes of two."}, hidden=(2,))


def texts(name: str, data: bytes, *, hidden: bool) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
    items = list(items_of(SourceFile(Path(name), name, data=data, hidden=hidden), name.rpartition(".")[2]))
    documents = {item.id: item.text for item in items if isinstance(item, Document)}
    return documents, [
        (item.document, item.code, item.message) for item in items if not isinstance(item, Document)
    ]


def test_sheets_rows_and_columns() -> None:
    documents, notes = texts("a.xlsx", BOOK, hidden=False)
    assert documents == {
        "a.xlsx/Ships#2": "ship: Fram\nnote: open",
        "a.xlsx/Ships#4": "ship: Gjøa\nnote: open",
    }
    assert notes == [
        ("a.xlsx/Ships", "hidden", "1 row and 1 column"),
        ("a.xlsx/Costs", "hidden", "the sheet"),
        ("a.xlsx/Old", "hidden", "the sheet"),
    ]
    documents, notes = texts("a.xlsx", BOOK, hidden=True)
    assert documents["a.xlsx/Ships#3"] == "ship: Maud\nprice: 20\nnote: secret"
    assert (len(documents), notes) == (5, [])


def test_slides() -> None:
    documents, notes = texts("a.pptx", deck(), hidden=False)
    assert documents == {"a.pptx": "One\n\nThree"}
    assert notes == [("a.pptx", "hidden", "slide 2")]
    documents, notes = texts("a.pptx", deck(), hidden=True)
    assert "secret" in documents["a.pptx"]
    assert "Notes of two." in documents["a.pptx"]
    assert notes == []


def test_the_setting(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.xlsx").write_bytes(BOOK)
    (folder / "b.pptx").write_bytes(deck())
    with Index.build(folder, tmp_path / "ix", settings=Settings(threads=1)) as index:
        assert index.report is not None
        assert (index.report.documents, index.report.failures) == (3, ())
        (warning,) = index.report.warnings
        assert warning.startswith("left out what is hidden in a.xlsx/Ships (1 row and 1 column), ")
        assert warning.endswith("b.pptx (slide 2); -o hidden=read reads it")
    with Index.build(folder, tmp_path / "ix", settings=Settings(threads=1, hidden="read")) as index:
        assert index.report is not None
        assert (index.report.documents, index.report.warnings) == (6, ())
