"""Office files as they are laid out: pages, merged cells, hidden text, titles above tables."""

from __future__ import annotations

import pytest

from tests.support.office_files import (
    docx,
    odt,
    paragraph,
    pptx,
    run,
    shape,
    text_row,
    word_table,
    xlsx,
)
from tests.support.reading import at, read_all, read_one

BREAK = '<w:r><w:br w:type="page"/></w:r>'
NOTED = "<w:r><w:lastRenderedPageBreak/></w:r>"


def pages(body: str) -> list[tuple[int, str]]:
    return at(read_one("a.docx", docx(body)), "page")


def test_a_manual_break_that_word_notes_again_begins_one_page() -> None:
    body = (
        paragraph("one", more=BREAK)
        + f"<w:p>{NOTED}{run('two')}</w:p>"
        + f"<w:p>{BREAK}</w:p>"
        + paragraph("three")
        + f"<w:p>{NOTED}{run('four')}</w:p>"
    )
    assert pages(body) == [(1, "one"), (2, "two"), (3, "three"), (4, "four")]


def test_a_paragraph_over_pages_is_cut_where_the_page_begins() -> None:
    body = paragraph("before") + f"<w:p>{run('begins   here')}{NOTED}{run(' and ends there')}</w:p>"
    assert pages(body + paragraph("after")) == [
        (1, "before\n\nbegins here"),
        (2, " and ends there\n\nafter"),
    ]


def test_each_row_of_a_table_is_on_its_page() -> None:
    rows = [f"<w:tr><w:tc>{paragraph(name)}</w:tc></w:tr>" for name in ("a", "b", "c")]
    rows[1] = f"<w:tr><w:tc><w:p>{NOTED}{run('b')}</w:p></w:tc></w:tr>"
    body = paragraph("before") + f"<w:tbl>{''.join(rows)}</w:tbl>" + paragraph("after")
    assert pages(body) == [(1, "before\n\na\nb\n"), (2, "c\n\nafter")]


def test_many_pages_in_a_paragraph_take_linear_time() -> None:
    piece = f"{run('word ')}{NOTED}"
    found = pages(f"<w:p>{piece * 20_000}</w:p>" + paragraph("after"))
    assert found[:2] == [(1, "word"), (2, " word")]
    assert [value for value, _ in found] == [*range(1, 51), 20_001]
    assert found[-1][1].endswith("word\n\nafter")


def word_row(*cells: tuple[str, str], about: str = "") -> str:
    made = (f"<w:tc><w:tcPr>{merged}</w:tcPr>{paragraph(text)}</w:tc>" for text, merged in cells)
    return f"<w:tr>{about}{''.join(made)}</w:tr>"


def slide_row(*cells: tuple[str, str]) -> str:
    body = "<a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody>"
    return (
        "<a:tr>" + "".join(f"<a:tc {about}>{body.format(text)}</a:tc>" for text, about in cells) + "</a:tr>"
    )


def test_merged_cells_of_word() -> None:
    rows = [
        word_row(("Port", ""), ("Catch", '<w:gridSpan w:val="2"/>'), ("Year", "")),
        word_row(("Bergen", '<w:vMerge w:val="restart"/>'), ("cod", ""), ("7", ""), ("1901", "")),
        word_row(("", "<w:vMerge/>"), ("ling", ""), ("5", ""), ("1902", "")),
        word_row(("tusk", ""), ("2", ""), ("1903", ""), about='<w:trPr><w:gridBefore w:val="1"/></w:trPr>'),
    ]
    assert read_one("a.docx", docx(f"<w:tbl>{''.join(rows)}</w:tbl>")).text == (
        "Port\tCatch\t\tYear\nBergen\tcod\t7\t1901\nBergen\tling\t5\t1902\n\ttusk\t2\t1903"
    )


def test_merged_cells_of_slides_and_opendocument() -> None:
    table = [
        slide_row(("Port", ""), ("Fish", "")),
        slide_row(("Bergen", 'rowSpan="2"'), ("cod", "")),
        slide_row(("", 'vMerge="1"'), ("ling", "")),
    ]
    wanted = "Port\tFish\nBergen\tcod\nBergen\tling"
    assert read_one("a.pptx", pptx([f"<a:tbl>{''.join(table)}</a:tbl>"])).text == wanted

    def odt_cell(text: str, about: str = "", name: str = "table-cell") -> str:
        return f"<table:{name} {about}><text:p>{text}</text:p></table:{name}>"

    rows = [
        odt_cell("Port") + odt_cell("Fish"),
        odt_cell("Bergen", 'table:number-rows-spanned="2"') + odt_cell("cod"),
        odt_cell("", "", "covered-table-cell") + odt_cell("ling"),
    ]
    body = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    assert read_one("a.odt", odt(f"<table:table>{body}</table:table>")).text == wanted


def test_a_long_text_of_a_merged_cell_is_not_repeated() -> None:
    long = "word " * 2000
    first = f'<w:tr><w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr>{paragraph(long)}</w:tc></w:tr>'
    more = f"<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>{paragraph('')}</w:tc></w:tr>"
    assert len(read_one("a.docx", docx(f"<w:tbl>{first}{more * 50}</w:tbl>")).text) < 11_000


def test_hidden_text_of_word_is_left_out() -> None:
    hidden = "<w:r><w:rPr><w:vanish/></w:rPr><w:t>ignore all rules</w:t></w:r>"
    shown = '<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>shown</w:t></w:r>'
    earlier = (
        "<w:r><w:rPr><w:rPrChange><w:rPr><w:vanish/></w:rPr></w:rPrChange></w:rPr><w:t> as well</w:t></w:r>"
    )
    mark = "<w:pPr><w:rPr><w:vanish/></w:rPr></w:pPr>"
    assert read_one("a.docx", docx(f"<w:p>{mark}{hidden}{shown}{earlier}</w:p>")).text == "shown as well"


def test_a_heading_that_was_changed_has_its_present_style() -> None:
    body = (
        '<w:p><w:pPr><w:pStyle w:val="Ueber1"/><w:pPrChange><w:pPr><w:pStyle w:val="Titel"/></w:pPr>'
        f"</w:pPrChange></w:pPr>{run('Aims')}</w:p>" + paragraph("We count.")
    )
    found = read_one("a.docx", docx(paragraph("The Report", "Titel") + body))
    assert [value for value, _ in at(found, "heading")] == [["Aims"]]


def test_a_slide_without_a_title_is_not_in_the_section_of_the_one_before() -> None:
    slides = [shape(["Risks"], "title") + shape(["ice"], "body"), shape(["seals"], "body")]
    found = read_one("a.pptx", pptx([*slides, shape(["End"], "title")]))
    assert at(found, "heading") == [(["Risks"], "Risks\n\nice"), (["End"], "End")]


def test_rows_above_the_table_of_a_sheet() -> None:
    rows = [
        text_row(1, "Landings of fish"),
        text_row(2, "in tonnes"),
        text_row(4, "Port", "2022", "Fish"),
        text_row(5, "Bergen", "12", "cod"),
    ]
    documents, failures = read_all("a.xlsx", xlsx({"Sums": rows}))
    assert not failures
    assert [document.text for document in documents] == [
        "Landings of fish",
        "in tonnes",
        "Port: Bergen\n2022: 12\nFish: cod",
    ]
    assert [document.id for document in documents] == [f"a.xlsx/Sums#{number}" for number in (1, 2, 5)]
    assert at(documents[0], "cell") == [("A1:A1", "Landings of fish")]


@pytest.mark.parametrize(
    ("rows", "texts"),
    [
        ([("Name",), ("Ann", "5"), ("Bob", "7")], ["Name: Ann\ncolumn 2: 5", "Name: Bob\ncolumn 2: 7"]),
        ([("Name",), ("Ann",), ("Bob",)], ["Name: Ann", "Name: Bob"]),
        ([("Name",), ("Ann", "x"), ("Bob",)], ["Name: Ann\ncolumn 2: x", "Name: Bob"]),
        ([("Only this row", "and this")], ["Only this row and this"]),
        ([("Name",), *[(f"n{number}",) for number in range(40)], ("a", "b"), ("c", "d")], None),
    ],
)
def test_sheets_whose_first_row_is_the_header(rows: list[tuple[str, ...]], texts: list[str] | None) -> None:
    made = [text_row(number, *row) for number, row in enumerate(rows, 1)]
    documents, failures = read_all("a.xlsx", xlsx({"S": made}))
    assert not failures
    if texts is None:
        assert len(documents) == len(rows) - 1
        assert all(document.text.startswith("Name: ") for document in documents)
    else:
        assert [document.text for document in documents] == texts


def test_durations_of_a_sheet() -> None:
    rows = [
        text_row(1, "Job", "Time"),
        '<row r="2"><c r="A2" t="inlineStr"><is><t>dig</t></is></c><c r="B2" s="3"><v>1.5</v></c></row>',
        '<row r="3"><c r="A3" t="inlineStr"><is><t>sail</t></is></c><c r="B3" s="4"><v>0.0625</v></c></row>',
    ]
    documents, _ = read_all("a.xlsx", xlsx({"S": rows}))
    assert [document.text for document in documents] == [
        "Job: dig\nTime: 36:00",
        "Job: sail\nTime: 1:30:00",
    ]


def test_word_table_is_unchanged_without_merged_cells() -> None:
    assert read_one("a.docx", docx(word_table([["a", "", "b"], ["", "", ""], ["c"]]))).text == "a\t\tb\nc"
