"""Binary workbooks (`.xlsb`), written record by record."""

from __future__ import annotations

import struct

import pytest

from ketrag_fast.readers.office.cell_formats import format_of, shown
from tests.support.office_files import archive, rels
from tests.support.reading import at, read_all

ROW, COLUMN, MERGED = 0, 60, 176
SHORT, ERROR, TRUTH, NUMBER, TEXT, SHARED = 2, 3, 4, 5, 6, 7


def record(kind: int, data: bytes = b"") -> bytes:
    head = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
    size, length = len(data), b""
    while True:
        length += bytes([size & 0x7F | (0x80 if size > 0x7F else 0)])
        size >>= 7
        if not size:
            return head + length + data


def wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def row(number: int, *, hidden: bool = False) -> bytes:
    return record(ROW, struct.pack("<IIHBBB", number - 1, 0, 300, 0, 0x10 if hidden else 0, 0))


def cell(kind: int, column: int, value: bytes, style: int = 0) -> bytes:
    return record(kind, struct.pack("<II", column, style) + value)


def short(number: int, *, hundredths: bool = False) -> bytes:
    return struct.pack("<i", number << 2 | 2 | hundredths)


def book(
    sheet: bytes,
    *,
    strings: tuple[str, ...] = (),
    formats: tuple[str, ...] = (),
    state: int = 0,
    since_1904: bool = False,
    comments: bytes = b"",
) -> bytes:
    """A workbook with one sheet `S`. Style n + 1 has format n, the last style is bold."""
    styles = [(0, 0), *((170 + n, 0) for n in range(len(formats))), (0, 1)]
    parts = [
        ("s1", "worksheet", "worksheets/s.bin"),
        ("s2", "sharedStrings", "strings.bin"),
        ("s3", "styles", "st.bin"),
    ]
    members = {
        "_rels/.rels": rels([("r", "officeDocument", "xl/workbook.bin")]),
        "xl/_rels/workbook.bin.rels": rels(parts),
        "xl/workbook.bin": record(153, struct.pack("<I", since_1904))
        + record(156, struct.pack("<II", state, 1) + wide("s1") + wide("S")),
        "xl/strings.bin": b"".join(record(19, bytes(1) + wide(text)) for text in strings),
        "xl/st.bin": b"".join(
            record(44, struct.pack("<H", 170 + n) + wide(code)) for n, code in enumerate(formats)
        )
        + record(43, struct.pack("<HHH", 200, 0, 400))
        + record(43, struct.pack("<HHH", 200, 0, 700))
        + record(45, struct.pack("<I", 0))
        + record(47, struct.pack("<4H", 0, 0, 1, 0))  # of a named style, which no cell has
        + record(617)
        + b"".join(record(47, struct.pack("<4H", 0, number, font, 0)) for number, font in styles)
        + record(618),
        "xl/worksheets/s.bin": record(145) + sheet + record(146),
    }
    if comments:
        members["xl/worksheets/_rels/s.bin.rels"] = rels([("c", "comments", "../comments1.bin")])
        members["xl/comments1.bin"] = comments
    return archive(members)


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
        "paid: true",
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
