"""Workbooks with number formats, styles of heads and merged cells, from rows of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from tests.support.office_files import archive, rels

Cell = str | float | tuple[float, str] | None
"""A text, a number, a number with its format, or nothing."""


def column(place: int) -> str:
    return chr(65 + place)


def sheet_rows(rows: Mapping[int, Sequence[Cell]], formats: Sequence[str], strong: Sequence[int]) -> str:
    out = []
    for number, cells in rows.items():
        made = ""
        for place, cell in enumerate(cells):
            name = f'r="{column(place)}{number}"'
            style = len(formats) + 1 if number in strong else 0
            if isinstance(cell, tuple):
                made += f'<c {name} s="{formats.index(cell[1]) + 1}"><v>{cell[0]!r}</v></c>'
            elif isinstance(cell, str):
                made += f'<c {name} s="{style}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
            elif cell is not None:
                made += f'<c {name} s="{style}"><v>{cell!r}</v></c>'
        out.append(f'<row r="{number}">{made}</row>')
    return "".join(out)


def workbook(
    rows: Mapping[int, Sequence[Cell]],
    *,
    merged: Sequence[str] = (),
    strong: Sequence[int] = (),
    more: Mapping[str, str] | None = None,
    extra_rows: str = "",
) -> bytes:
    """A file with one sheet `S`. Rows of `strong` are bold, `merged` are ranges such as `A1:A2`."""
    formats = sorted({cell[1] for cells in rows.values() for cell in cells if isinstance(cell, tuple)})
    declared = "".join(
        f'<numFmt numFmtId="{170 + n}" formatCode="{escape(code)}"/>' for n, code in enumerate(formats)
    )
    styles = "".join(f'<xf numFmtId="{170 + n}"/>' for n in range(len(formats)))
    ranges = "".join(f'<mergeCell ref="{own}"/>' for own in merged)
    return archive(
        {
            "_rels/.rels": rels([("r1", "officeDocument", "xl/workbook.xml")]),
            "xl/workbook.xml": '<workbook xmlns:r="r"><sheets><sheet name="S" r:id="s1"/></sheets>'
            "</workbook>",
            "xl/_rels/workbook.xml.rels": rels(
                [("s1", "worksheet", "worksheets/sheet1.xml"), ("sy", "styles", "styles.xml")]
            ),
            "xl/styles.xml": f"<styleSheet><numFmts>{declared}</numFmts>"
            f'<fonts><font/><font><b/></font></fonts><cellXfs><xf numFmtId="0"/>{styles}'
            '<xf numFmtId="0" fontId="1"/></cellXfs></styleSheet>',
            "xl/worksheets/sheet1.xml": "<worksheet><sheetData>"
            f"{sheet_rows(rows, formats, strong)}{extra_rows}</sheetData>"
            f"<mergeCells>{ranges}</mergeCells></worksheet>",
            **(more or {}),
        }
    )
