"""Binary workbooks (`.xlsb`): values as the program shows them, hidden parts, comments and damage."""

from __future__ import annotations

import struct

import pytest

from ketrag_fast.readers.office.cell_formats import format_of, shown
from tests.support.binary_sheets import (
    COLUMN,
    MERGED,
    NUMBER,
    SHARED,
    SHORT,
    TEXT,
    TRUTH,
    book,
    cell,
    record,
    row,
    short,
    wide,
)
from tests.support.reading import at, read_all


def test_values_are_what_the_program_shows() -> None:
    formats = ("0.0%", "00000", "dd.mm.yyyy hh:mm", "0.00")
    sheet = row(1) + b"".join(cell(SHARED, n, struct.pack("<I", n), 5) for n in range(7))
    sheet += row(2) + cell(TEXT, 0, wide("Rope_x000D_")) + cell(NUMBER, 1, struct.pack("<d", 0.125), 1)
    sheet += cell(SHORT, 2, short(7042), 2) + cell(SHORT, 3, short(-250, hundredths=True), 4)
    sheet += cell(9, 4, struct.pack("<d", 45356.60416666666) + bytes(4), 3) + cell(TRUTH, 5, b"\1")
    sheet += cell(11, 6, b"\x07")
    names = ("item", "share", "code", "change", "at", "paid", "sum")
    (found,), failures = read_all("a.xlsb", book(sheet, strings=names, formats=formats))
    assert failures == []
    assert found.id == "a.xlsb/S#2"
    assert found.text.split("\n") == [
        "item: Rope",
        "share: 12.5%",
        "code: 07042",
        "change: -2.50",
        "at: 2024-03-05 14:30",
        "paid: TRUE",
        "sum: #DIV/0!",
    ]
    assert (found.metadata["share"], found.metadata["change"], found.metadata["code"]) == (
        0.125,
        -2.5,
        "07042",
    )
    assert at(found, "cell") == [("A2:G2", found.text)]


@pytest.mark.parametrize("number", [0.0, 1.5, -3.25, 1e100, 45356.0])
def test_short_numbers(number: float) -> None:
    (packed,) = struct.unpack("<q", struct.pack("<d", number))
    value = struct.pack("<i", (packed >> 32) & ~3)
    (kept,) = struct.unpack("<d", bytes(4) + value)
    sheet = row(1) + cell(TEXT, 0, wide("a")) + cell(TEXT, 1, wide("b"))
    sheet += row(2) + cell(TEXT, 0, wide("x")) + cell(SHORT, 1, value)
    (found,), _ = read_all("a.xlsb", book(sheet))
    assert found.text == f"a: x\nb: {shown(repr(kept), format_of(0, None))}"


def test_merged_cells_repeat_and_hidden_rows_and_columns_are_reported() -> None:
    sheet = record(COLUMN, struct.pack("<4IH", 2, 2, 9, 0, 1))
    for number, texts in enumerate(
        (("Team", "Name", "Secret"), ("Red", "Ada", "x"), ("", "Bob", "y"), ("Tan", "Cy", "z")), 1
    ):
        sheet += row(number, hidden=number == 4)
        sheet += b"".join(cell(TEXT, n, wide(text)) for n, text in enumerate(texts) if text)
    sheet += record(MERGED, struct.pack("<4I", 1, 2, 0, 0)) + record(
        MERGED, struct.pack("<4I", 9, 2, 70_000, 0)
    )
    documents, failures = read_all("a.xlsb", book(sheet))
    assert [one.text for one in documents] == ["Team: Red\nName: Ada", "Team: Red\nName: Bob"]
    assert failures == ["a.xlsb/S: 1 row and 1 column"]


def test_comments() -> None:
    sheet = row(1) + cell(TEXT, 0, wide("a")) + cell(TEXT, 1, wide("b"))
    sheet += row(2) + cell(TEXT, 0, wide("x")) + cell(TEXT, 1, wide("y"))
    comments = record(632, wide("Ida")) + record(635, struct.pack("<5I", 0, 1, 1, 0, 0) + bytes(16))
    comments += record(637, bytes(1) + wide("Ida:\nCheck this")) + record(636)
    (found,), failures = read_all("a.xlsb", book(sheet, comments=comments))
    assert failures == []
    assert found.text == "a: x\nb: y\nComment on A2 by Ida: Check this"


def test_days_since_1904_and_a_hidden_sheet() -> None:
    sheet = row(1) + cell(TEXT, 0, wide("a")) + cell(TEXT, 1, wide("day"))
    sheet += row(2) + cell(TEXT, 0, wide("x")) + cell(NUMBER, 1, struct.pack("<d", 43894.0), 1)
    made = book(sheet, formats=("yyyy-mm-dd",), since_1904=True)
    assert read_all("a.xlsb", made)[0][0].text == "a: x\nday: 2024-03-05"
    assert read_all("a.xlsb", book(sheet, state=1)) == ([], ["a.xlsb/S: the sheet"])


@pytest.mark.parametrize("cut", [1, 5, 9, 30])
def test_records_that_are_cut_off_are_reported(cut: int) -> None:
    sheet = row(1) + cell(TEXT, 0, wide("a")) + cell(TEXT, 1, wide("b")) + row(2) + cell(TEXT, 0, wide("x"))
    made = book(sheet + record(TEXT, bytes(40))[:-cut])
    _, failures = read_all("a.xlsb", made.replace(record(146), b""))
    assert all("cut off" in one or "cell with text" in one for one in failures)
    documents, failures = read_all("a.xlsb", book(sheet + record(99, bytes(3))[:-1]))
    assert len(documents) <= 1
    assert len(failures) <= 1


def test_a_record_of_a_gigabyte_is_refused() -> None:
    sheet = row(1) + cell(TEXT, 0, wide("a")) + b"\x05\xff\xff\xff\x7f"
    _, failures = read_all("a.xlsb", book(sheet))
    assert any("a record is longer than 20,000,000 bytes" in one for one in failures)
