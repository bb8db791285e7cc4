"""Files that are larger or deeper than any that a person writes are read within limits or refused."""

from __future__ import annotations

import pytest

from tests.support.office_files import archive, docx, ods, ods_row, odt, paragraph, run
from tests.support.parts import part
from tests.support.pdf_files import Page, pdf
from tests.support.reading import read_all, read_one
from tests.unit.readers.pdf.test_forms import assemble, stream

DEEP = 1_000


def forwarded(levels: int) -> bytes:
    data = b"From: a@b\nSubject: innermost\n\nInnermost text.\n"
    for _ in range(levels):
        data = b"From: a@b\nSubject: s\nMIME-Version: 1.0\nContent-Type: message/rfc822\n\n" + data
    return data


def parts_in_parts(levels: int) -> bytes:
    data = b"Content-Type: text/plain\n\nInnermost text.\n"
    for n in range(levels):
        data = b"Content-Type: multipart/mixed; boundary=B%d\n\n--B%d\n%b\n--B%d--\n" % (n, n, data, n)
    return b"From: a@b\nSubject: s\nMIME-Version: 1.0\n" + data


@pytest.mark.parametrize("nested", [forwarded, parts_in_parts])
def test_a_mail_of_a_thousand_levels(nested: object) -> None:
    assert callable(nested)
    assert read_all("a.eml", nested(DEEP)) == ([], ["a.eml: its parts are nested too deeply"])


def test_a_mail_of_thirty_levels() -> None:
    documents, failures = read_all("a.eml", forwarded(30))
    assert [one.id.count("/") for one in documents] == [0, 1, 2, 3]
    assert len(failures) == 1
    assert "attachments are nested more than 3 levels deep" in failures[0]
    assert read_one("a.eml", parts_in_parts(30)).text == "Innermost text."


def test_a_formula_of_five_hundred_levels() -> None:
    part("resiliparse", "documents")
    formula = f"<math>{'<mfrac><mrow>' * 500}<mi>x</mi>{'</mrow><mn>2</mn></mfrac>' * 500}</math>"
    text = "<p>" + "The tank of the pump is filled each week by the keeper. " * 9 + "</p>"
    page = f"<html><body><article>{text}<p>So {formula} holds.</p></article></body></html>"
    frame = '<text:p>So <draw:frame><draw:object xlink:href="./F"/></draw:frame> holds.</text:p>'
    for found in (
        read_one("a.html", page.encode()),
        read_one("a.odt", odt(frame, **{"F/content_xml": formula})),
    ):
        assert "x/2)/2" in found.text
        assert found.text.endswith(" holds.")


def test_a_formula_of_five_hundred_levels_in_word() -> None:
    ends = "</m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f>"
    formula = f'<m:oMath xmlns:m="m">{"<m:f><m:num>" * 500}<m:r><m:t>x</m:t></m:r>{ends * 500}</m:oMath>'
    found = read_one("a.docx", docx(f"<w:p>{run('So ')}{formula}{run(' holds.')}</w:p>{paragraph('End.')}"))
    assert "x/2)/2" in found.text
    assert found.text.endswith("/2 holds.\n\nEnd.")


def test_a_chart_that_contains_itself() -> None:
    inner = "<office:document-content xmlns:office='o' xmlns:text='t' xmlns:draw='d' xmlns:xlink='x'>"
    inner += '<text:p>Title <draw:object xlink:href="./C"/></text:p></office:document-content>'
    body = '<text:p>Text. <draw:object xlink:href="./C"/></text:p>'
    assert read_one("a.odt", odt(body, **{"C/content_xml": inner})).text == "Text.\n\nTitle"


def test_ten_thousand_merged_ranges_of_a_whole_sheet() -> None:
    cell = '<table:table-cell table:number-rows-spanned="1048576" table:number-columns-spanned="16384">'
    row = f"<table:table-row>{cell}<text:p>a</text:p></table:table-cell></table:table-row>"
    documents, failures = read_all("a.ods", ods([ods_row("x", "y"), *[row] * 10_000]))
    assert failures == []
    assert len(documents) == 10_000


def test_cells_that_repeat_a_hundred_million_times() -> None:
    repeats = "table:number-columns-repeated='1000'"
    cells = f"<table:table-cell {repeats}><text:p>a</text:p></table:table-cell>"
    rows = f"<table:table-row table:number-rows-repeated='1000'>{cells}</table:table-row>" * 100
    documents, failures = read_all("a.ods", ods([rows]))
    assert 0 < len(documents) < 5_000
    assert "more than 20,000,000 characters" in failures[0]


def test_an_archive_of_many_files_without_a_reader() -> None:
    documents, failures = read_all(
        "a.zip", archive({"a.md": "text"} | {f"{n}.png": "\0" for n in range(1_500)})
    )
    assert [one.id for one in documents] == ["a.zip/a.md"]
    assert len(failures) == 1_001
    assert failures[-1] == "a.zip: 500 further members without a reader"


def form_of(fields: int) -> bytes:
    """One page whose fields are in five columns, each with a value of its own."""
    widgets = [
        b"<</Type/Annot/Subtype/Widget/FT/Tx/F 4/T(f%d)/V(v%d)/DA(/F1 8 Tf 0 g)/Rect[%d %d %d %d]>>"
        % (number, number, x, y, x + 80, y + 9)
        for number in range(fields)
        for x, y in [(20 + number % 5 * 100, 20 + number // 5 * 10)]
    ]
    kids = b" ".join(b"%d 0 R" % (5 + number) for number in range(fields))
    font = b"/Font<</F1 3 0 R>>"
    return assemble(
        [
            b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[%b]/DR<<%b>>/DA(/F1 9 Tf 0 g)>>>>" % (kids, font),
            b"<</Type/Pages/Kids[%d 0 R]/Count 1>>" % (5 + fields),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            stream(b"", b"BT /F1 12 Tf 20 10040 Td (Form) Tj ET"),
            *widgets,
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 10080]/Contents 4 0 R/Resources<<%b>>/Annots[%b]>>"
            % (font, kids),
        ]
    )


def test_a_form_of_five_thousand_fields() -> None:
    part("pypdfium2", "documents")
    found = read_one("a.pdf", form_of(5_000))
    values = [word for word in found.text.split() if word.startswith("v") and word[1:].isdigit()]
    assert sorted(values, key=lambda value: int(value[1:])) == [f"v{number}" for number in range(5_000)]


def test_a_bitmap_font_of_sixty_thousand_glyphs() -> None:
    part("pypdfium2", "documents")
    glyphs = " ".join(f"/g{number} 4 0 R" for number in range(60_000))
    font = (
        "/Type /Font /Subtype /Type3 /FontBBox [0 0 600 700] /FontMatrix [0.001 0 0 0.001 0 0] /FirstChar 0"
        f" /LastChar 255 /Widths [{' '.join(['600'] * 256)}] /CharProcs << {glyphs} >> /Encoding << /Type"
        f" /Encoding /Differences [0 {' '.join(f'/g{number}' for number in range(256))}] >>"
    )
    page = Page().text(60, 80, "qzxj wvkq zzxq jjqx qqzx")
    documents, failures = read_all("a.pdf", pdf([page], font=font))
    assert documents == []
    assert len(failures) == 1
    assert "their fonts have no Unicode map" in failures[0]
