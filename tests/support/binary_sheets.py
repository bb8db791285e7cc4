"""Binary workbooks (`.xlsb`), written record by record."""

from __future__ import annotations

import struct

from tests.support.office_files import archive, rels

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


def sample() -> bytes:
    """A workbook with a row of names and two of values."""
    rows = (("item", "price"), ("rope", "12.50"), ("anchor", "99.00"))
    cells = [
        row(number) + b"".join(cell(TEXT, column, wide(text)) for column, text in enumerate(texts))
        for number, texts in enumerate(rows, 1)
    ]
    return book(b"".join(cells))
