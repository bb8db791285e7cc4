"""OpenDocument files: sheets with the values that their cells show, slides, and the parts around a text."""

from __future__ import annotations

import pytest

from tests.support.office_files import ODF, odp, ods, ods_row, odt
from tests.support.parts import part
from tests.support.reading import at, read_all, read_one

STYLES = (
    '<style:style style:name="Up"><style:text-properties style:text-position="super 58%"/></style:style>'
    '<style:style style:name="Down"><style:text-properties style:text-position="-33% 58%"/></style:style>'
    '<style:style style:name="Head"><style:text-properties fo:font-weight="bold"/></style:style>'
    '<style:style style:name="Off"><style:table-properties table:display="false"/></style:style>'
)


def cell(text: str, kind: str, stored: str, more: str = "") -> str:
    name = "value" if kind in ("float", "percentage", "currency") else f"{kind}-value"
    value = f'office:value-type="{kind}" office:{name}="{stored}"'
    return f"<table:table-cell {value} {more}><text:p>{text}</text:p></table:table-cell>"


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (cell("12.5%", "percentage", "0.125"), "12.5%"),
        (cell("07042", "float", "7042"), "07042"),
        (cell("(1,234.50)", "currency", "-1234.5"), "(1,234.50)"),
        (cell("05.03.24", "date", "2024-03-05"), "2024-03-05"),
        (cell("05.03.24 14:30", "date", "2024-03-05T14:30:00"), "2024-03-05 14:30"),
        (cell("05.03.24 14:30:07", "date", "2024-03-05T14:30:07"), "2024-03-05 14:30:07"),
        (cell("Tuesday", "date", "2024-03-05T14:30:00"), "2024-03-05"),
        (cell("02:30 PM", "date", "1899-12-30T14:30:00"), "14:30"),
        (cell("09:05", "time", "PT09H05M00S"), "09:05"),
        (cell("36:00:00", "time", "PT36H00M00S"), "36:00:00"),
        (cell("WAHR", "boolean", "true"), "WAHR"),
        (cell("", "boolean", "true"), "TRUE"),
    ],
)
def test_values_are_what_the_cell_shows(made: str, text: str) -> None:
    rows = [ods_row("a", "b"), f"<table:table-row><table:table-cell/>{made}</table:table-row>"]
    documents, failures = read_all("a.ods", ods(rows))
    assert failures == []
    assert documents[-1].text == f"b: {text}"


def test_numbers_of_formatted_cells_are_metadata() -> None:
    rows = [ods_row("share", "zip"), ods_row(("0.125", "12.5%"), ("7042", "07042"))]
    found = read_one("a.ods", ods(rows))
    assert found.metadata == {"share": 0.125, "zip": "07042"}
    assert at(found, "cell") == [("A2:B2", found.text)]


def test_tables_merged_cells_and_comments_of_a_sheet() -> None:
    note = "<office:annotation><dc:creator>Ida</dc:creator><dc:date>2024</dc:date><text:p>ask</text:p></office:annotation>"  # noqa: E501
    first = f'<table:table-cell table:number-rows-spanned="2">{note}<text:p>North</text:p></table:table-cell>'
    empty = '<table:table-row table:number-rows-repeated="3"><table:table-cell table:number-columns-repeated="1024"/></table:table-row>'  # noqa: E501
    rows = [
        ods_row("Region", "Sales"),
        f"<table:table-row>{first}{cell('11', 'float', '11')}</table:table-row>",
        f"<table:table-row><table:covered-table-cell/>{cell('12', 'float', '12')}</table:table-row>",
        empty,
        ods_row("Ship", "Year"),
        ods_row("Fram", ("1892", "1892")),
        ods_row("secret", ("1", "1"), attributes='table:visibility="collapse"'),
    ]
    hidden = '<table:table table:name="T" table:style-name="Off">' + ods_row("x") + "</table:table>"
    documents, failures = read_all("a.ods", ods(rows, STYLES, hidden))
    assert {one.id: one.text for one in documents} == {
        "a.ods/S#2": "Region: North\nSales: 11\nComment on A2 by Ida: ask",
        "a.ods/S#3": "Region: North\nSales: 12",
        "a.ods/S#8": "Ship: Fram\nYear: 1892",
    }
    assert failures == ["a.ods/S: 1 row", "a.ods/T: the sheet"]


def test_several_sheets_and_formulas_without_values() -> None:
    formula = '<table:table-row><table:table-cell table:formula="of:=[.A1]"/></table:table-row>'
    second = f'<table:table table:name="T">{ods_row("c", "d")}{ods_row("3", "4")}{formula}</table:table>'
    documents, failures = read_all("a.ods", ods([ods_row("a", "b"), ods_row("1", "2")], more=second))
    assert [(one.id, one.text) for one in documents] == [
        ("a.ods/S#2", "a: 1\nb: 2"),
        ("a.ods/T#2", "c: 3\nd: 4"),
    ]
    assert len(failures) == 1
    assert "a formula has no stored value (A3)" in failures[0]


def test_a_row_that_repeats_a_million_times() -> None:
    rows = [ods_row("a", "b"), ods_row("1", "2", attributes='table:number-rows-repeated="1048000"')]
    documents, failures = read_all("a.ods", ods(rows))
    assert len(documents) == 1_000
    assert failures == ["a.ods/S: 1,047,000 copies of equal rows are left out"]


def test_a_sheet_without_text() -> None:
    assert read_all("a.ods", ods([])) == ([], ["a.ods: no sheet has a cell with text"])


def test_slides_and_notes() -> None:
    documents, failures = read_all("a.odp", odp(["one", "two", "three"], {3: "note"}, hidden=[2]))
    (found,) = documents
    assert at(found, "slide") == [(1, "one"), (3, "three\n\nnote")]
    assert at(found, "part") == [("notes", "note")]
    assert failures == ["a.odp: slide 2"]


def test_parts_around_a_text() -> None:
    note = "<office:annotation><dc:creator>Ida</dc:creator><text:p>Harrier</text:p></office:annotation>"
    box = "<draw:frame><draw:text-box><text:p>Boxed</text:p></draw:text-box></draw:frame>"
    body = (
        '<text:p>Holds 10<text:span text:style-name="Up">6</text:span> l of '
        f'H<text:span text:style-name="Down">2</text:span>O.{note}</text:p>'
        f"<text:p>Before {box}after.</text:p>"
    )
    head = (
        f"<office:document-styles {ODF}><style:header><text:p>Doc-ID QX-88-1</text:p></style:header>"
        "<style:footer><text:p>Page <text:page-number>1</text:page-number></text:p></style:footer>"
        "<style:footer-left><text:p>3</text:p></style:footer-left></office:document-styles>"
    )
    found = read_one("a.odt", odt(body, STYLES, styles_xml=head))
    assert found.text.split("\n\n") == [
        "Holds 10^6 l of H2O.",
        "Boxed",
        "Before after.",
        "Comment by Ida: Harrier",
        "Doc-ID QX-88-1",
    ]
    assert at(found, "part")[:2] == [("comments", "Comment by Ida: Harrier"), ("header", "Doc-ID QX-88-1")]


def test_charts_and_formulas() -> None:
    part("resiliparse", "documents")
    frames = "".join(f'<draw:frame><draw:object xlink:href="./{name}"/></draw:frame>' for name in "FC")
    formula = '<math xmlns="m"><mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup></math>'
    chart = (
        f'<office:document-content {ODF} xmlns:chart="h"><chart:title><text:p>Paddlers</text:p></chart:title>'
        f"<table:table>{ods_row('', '2024')}{ods_row('Spring', '19')}</table:table></office:document-content>"
    )
    members = {"F/content_xml": formula, "C/content_xml": chart}
    found = read_one("a.odt", odt(f"<text:p>So {frames} holds.</text:p>", **members))
    assert found.text == "So E = mc^2 holds.\n\nPaddlers\n\n\t2024\nSpring\t19"


def test_encrypted_files_are_refused() -> None:
    for kind, name in (("text", "a.odt"), ("presentation", "a.odp"), ("spreadsheet", "a.ods")):
        data = odt("", kind=kind, **{"META-INF/manifest_xml": "<m><encryption-data/></m>"})
        assert read_all(name, data) == ([], [f"{name}: encrypted: it needs a password"])
