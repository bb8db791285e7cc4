"""Values of forms, and text typed onto a page, are read with the text of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast.readers import SourceFile, items_of
from ketrag_fast.readers.pdf.parallel import LEAST_PAGES
from ketrag_fast.types import Document
from tests.support.parts import part
from tests.support.reading import at, read_all, read_one

FONT = b"/Resources<</Font<</F1 3 0 R>>>>"


def objects_of(*, drawn: bool, pages: int) -> bytes:
    """A file of equal pages: "Name:" with a text field, "City:" with a choice, and typed text below."""
    bodies = [
        b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[]/DR<</Font<</F1 3 0 R>>>>/DA(/F1 12 Tf 0 g)>>>>",
        b"",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        stream(b"", b"BT /F1 12 Tf 72 700 Td (Name:) Tj 0 -40 Td (City:) Tj ET"),
        stream(form(200), b"/Tx BMC q BT /F1 12 Tf 2 4 Td (Fridtjof Nansen) Tj ET Q EMC"),
        stream(form(228), b"BT /F1 12 Tf 2 4 Td (Typed on the page) Tj ET"),
    ]
    kids = []
    fields = []
    for number in range(pages):
        kids.append(len(bodies) + 1)
        text, typed, choice = (len(bodies) + place for place in (2, 3, 4))
        fields += [text, choice]
        common = b"/F 4/DA(/F1 12 Tf 0 g)"
        bodies += [
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R%s/Annots[%d 0 R %d 0 R %d 0 R]>>"
            % (FONT, text, typed, choice),
            b"<</Type/Annot/Subtype/Widget/FT/Tx/T(name%d)/V(Fridtjof Nansen)/Rect[250 696 450 714]%s%s>>"
            % (number, common, b"/AP<</N 5 0 R>>" if drawn else b""),
            b"<</Type/Annot/Subtype/FreeText/Contents(Typed)/Rect[72 500 300 520]%s/AP<</N 6 0 R>>>>"
            % common,
            b"<</Type/Annot/Subtype/Widget/FT/Ch/Ff 131072/T(city%d)/V(Oslo)/Opt[(Oslo)(Bergen)]"
            b"/Rect[250 656 450 674]%s>>" % (number, common),
        ]
    bodies[0] = bodies[0].replace(b"Fields[]", b"Fields[%s]" % b" ".join(b"%d 0 R" % one for one in fields))
    listed = b" ".join(b"%d 0 R" % one for one in kids)
    bodies[1] = b"<</Type/Pages/Kids[%s]/Count %d>>" % (listed, pages)
    return assemble(bodies)


def form(width: int) -> bytes:
    return b"/Type/XObject/Subtype/Form/BBox[0 0 %d 20]%s" % (width, FONT)


def stream(about: bytes, content: bytes) -> bytes:
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (about, len(content), content)


def assemble(bodies: list[bytes]) -> bytes:
    out, places = b"%PDF-1.7\n", []
    for number, body in enumerate(bodies, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(bodies) + 1, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % (len(bodies) + 1) + table + end


@pytest.mark.parametrize("drawn", [True, False])
def test_values_are_text(*, drawn: bool) -> None:
    part("pypdfium2", "documents")
    found = read_one("a.pdf", objects_of(drawn=drawn, pages=1))
    assert found.text == "Name:\tFridtjof Nansen\nCity:\tOslo\n\nTyped on the page"
    assert at(found, "page") == [(1, found.text)]


def test_values_are_text_in_each_process(tmp_path: Path) -> None:
    part("pypdfium2", "documents")
    pages = LEAST_PAGES + 40
    path = tmp_path / "a.pdf"
    path.write_bytes(objects_of(drawn=False, pages=pages))
    (found,) = items_of(SourceFile(path, path.name, processes=2), "pdf")
    assert isinstance(found, Document)
    # The first line is the same on all pages: a running head, which is left out.
    assert found.text.count("Oslo") == found.text.count("Typed") == pages


def boxes_of() -> bytes:
    """Check boxes and radio buttons with a printed label, and text fields with and without one."""
    drawn = stream(b"/Type/XObject/Subtype/Form/BBox[0 0 12 12]", b"0 0 m 12 12 l S")
    states = b"/AP<</N<</On 5 0 R/Off 5 0 R>>>>/F 4"
    text = b"/F 4/DA(/F1 12 Tf 0 g)/FT/Tx"
    labels = b"BT /F1 12 Tf 92 700 Td (Member) Tj 0 -40 Td (Owns a boat) Tj -20 -40 Td (Street) Tj ET"
    widget = b"<</Type/Annot/Subtype/Widget"
    annotations = [
        widget + b"/FT/Btn/T(member)/V/On/AS/On/Rect[72 698 84 710]%s>>" % states,
        widget + b"/FT/Btn/T(boat)/TU(Owns a boat)/V/Off/AS/Off/Rect[72 658 84 670]%s>>" % states,
        widget + b"/T(f1_02)/TU(Street)/V(Pier 9)%s/Rect[250 616 450 634]>>" % text,
        widget + b"/T(iban)/TU(IBAN of the payer)/V(NO93 8601)%s/Rect[150 576 450 594]>>" % text,
        widget + b"/T(f1_03)/V(Turku)%s/Rect[150 536 450 554]>>" % text,
        widget + b"/FT/Btn/T(hidden)/V/On/AS/On/Rect[72 498 84 510]/AP<</N<</On 5 0 R>>>>/F 2>>",
    ]
    kids = b" ".join(b"%d 0 R" % (6 + number) for number in range(len(annotations)))
    form_fields = b"/AcroForm<</Fields[%s]/DR<</Font<</F1 3 0 R>>>>/DA(/F1 12 Tf 0 g)>>" % kids
    return assemble(
        [
            b"<</Type/Catalog/Pages 2 0 R%s>>" % form_fields,
            b"<</Type/Pages/Kids[%d 0 R]/Count 1>>" % (6 + len(annotations)),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            stream(b"", labels),
            drawn,
            *annotations,
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R%s/Annots[%s]>>" % (FONT, kids),
        ]
    )


def test_boxes_have_a_state_and_fields_without_a_label_their_name() -> None:
    part("pypdfium2", "documents")
    text = read_one("a.pdf", boxes_of()).text
    assert "[x] Member" in text and "[ ] Owns a boat" in text and text.count("[") == 2
    assert "Street\tPier 9" in text and "IBAN of the payer: NO93 8601" in text
    assert text.rstrip().endswith("Turku") and "f1" not in text


def page_with(*annotations: bytes, catalog: bytes = b"", more: tuple[bytes, ...] = ()) -> bytes:
    """One page with the text "Base text.", its annotations, and further objects from number 5 on."""
    return assemble(
        [
            b"<</Type/Catalog/Pages 2 0 R%s>>" % catalog,
            b"<</Type/Pages/Kids[4 0 R]/Count 1>>",
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 5 0 R%s/Annots[%s]>>"
            % (FONT, b" ".join(annotations)),
            stream(b"", b"BT /F1 12 Tf 72 700 Td (Base text.) Tj ET"),
            *more,
        ]
    )


def test_comments_on_a_page() -> None:
    part("pypdfium2", "documents")
    box = b"/Type/Annot/Rect[300 500 320 520]"
    found = read_one(
        "a.pdf",
        page_with(
            b"<<%s/Subtype/Text/T(Ida)/Contents(Too high,\rcheck it)>>" % box,
            b"<<%s/Subtype/Highlight/QuadPoints[72 710 130 710 72 698 130 698]/Contents(True?)>>" % box,
            b"<<%s/Subtype/FreeText/Contents(Typed)>>" % box,
            b"<<%s/Subtype/FreeText/Contents(Base)>>" % box,
            b"<<%s/Subtype/Text/F 2/Contents(Hidden)>>" % box,
            b"<<%s/Subtype/Popup/Contents(Popup)>>" % box,
            b"<<%s/Subtype/Text>>" % box,
        ),
    )
    comments = ["Comment by Ida: Too high,\ncheck it", "Comment: True?", "Comment: Typed"]
    assert found.text.split("\n\n") == ["Base text.", *comments]
    assert at(found, "part") == [("comments", text) for text in comments]
    assert [page for page, _ in at(found, "page")] == [1, 1, 1, 1]


XFA = (
    b'<xdp:xdp xmlns:xdp="x"><template><subform name="f"><field name="Owner"><caption><value><text>Owner of'
    b' the boat:</text></value></caption></field></subform></template><xfa:datasets xmlns:xfa="y">'
    b"<xfa:data><f><Owner>Helga Brandt</Owner><Length>9.4</Length><Empty/><Note>Base text.</Note></f>"
    b"</xfa:data></xfa:datasets></xdp:xdp>"
)


@pytest.mark.parametrize("is_array", [False, True])
def test_the_fields_of_an_xfa_form(*, is_array: bool) -> None:
    part("pypdfium2", "documents")
    cut = [XFA.index(b"<template"), XFA.index(b"<xfa:datasets"), XFA.index(b"</xdp:xdp")]
    packets = [XFA[: cut[0]], XFA[cut[0] : cut[1]], XFA[cut[1] : cut[2]], XFA[cut[2] :]]
    names = b"[(preamble) 6 0 R (template) 7 0 R (datasets) 8 0 R (postamble) 9 0 R]"
    catalog = b"/AcroForm<</Fields[]/XFA %s>>" % (names if is_array else b"6 0 R")
    more = tuple(stream(b"", one) for one in (packets if is_array else [XFA]))
    found = read_one("a.pdf", page_with(catalog=catalog, more=more))
    assert at(found, "part") == [("form", "Owner of the boat: Helga Brandt\nLength: 9.4")]


def test_a_damaged_xfa_form_and_attached_files_are_reported() -> None:
    part("pypdfium2", "documents")
    catalog = (
        b"/AcroForm<</Fields[]/XFA 6 0 R>>/Names<</EmbeddedFiles<</Names[(d)<</Type/Filespec/F(data.csv)"
    )
    catalog += b"/UF(data.csv)/EF<</F 7 0 R>>>>]>>>>"
    more = (stream(b"", b"<a><datasets>"), stream(b"/Type/EmbeddedFile", b"a,b"))
    documents, failures = read_all("a.pdf", page_with(catalog=catalog, more=more))
    assert [one.text for one in documents] == ["Base text."]
    assert failures[0] == "a.pdf: not read: 1 attached file (data.csv)"
    assert failures[1].startswith("a.pdf: the XFA form cannot be read: the form is not XML")
