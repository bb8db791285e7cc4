"""Parts inside Office files: form fields, controls, descriptions, embedded files, and pictures."""

from __future__ import annotations

import io
import struct
import sys
from types import ModuleType

import pytest

from ketrag_fast.readers import ALONE
from ketrag_fast.readers.office.embedded import native_file
from tests.support.office_files import (
    archive,
    docx,
    odp,
    ods,
    ods_row,
    odt,
    paragraph,
    pptx,
    rels,
    run,
    shape,
)
from tests.support.parts import part
from tests.support.reading import read_all, read_one
from tests.support.sheets import workbook

WORKBOOK = workbook({1: ["Ship", "Year"], 2: ["Fram", 1892.0], 3: ["Maud", 1917.0]})


def field(data: str) -> str:
    begin = f'<w:r><w:fldChar w:fldCharType="begin"><w:ffData>{data}</w:ffData></w:fldChar></w:r>'
    return f'{begin}<w:r><w:instrText>X</w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        (field("<w:checkBox><w:checked/></w:checkBox>") + run(" Member"), "[x] Member"),
        (field('<w:checkBox><w:default w:val="1"/></w:checkBox>') + run(" Member"), "[x] Member"),
        (
            field('<w:checkBox><w:default w:val="1"/><w:checked w:val="0"/></w:checkBox>') + run(" Dog"),
            "[ ] Dog",
        ),
        (
            run("Bird: ")
            + field(
                '<w:ddList><w:result w:val="1"/><w:listEntry w:val="Skua"/>'
                '<w:listEntry w:val="Tern"/></w:ddList>'
            ),
            "Bird: Tern",
        ),
        (run("Name: ") + field('<w:name w:val="T"/><w:textInput/>') + run("Ida"), "Name: Ida"),
    ],
)
def test_form_fields_of_word(runs: str, text: str) -> None:
    assert read_one("a.docx", docx(f"<w:p>{runs}</w:p>")).text == text


def control(about: str, text: str) -> str:
    return f"<w:sdt><w:sdtPr>{about}</w:sdtPr><w:sdtContent>{run(text)}</w:sdtContent></w:sdt>"


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        (control('<w:alias w:val="Colour"/>', "Green"), "Colour: Green"),
        (run("Hue: ") + control('<w:alias w:val="Colour"/>', "Green"), "Hue: Green"),
        (control('<w:alias w:val="Colour"/>', "Green") + run(" is it"), "Green is it"),
        (control('<w:alias w:val="Title"/><w:dataBinding/>', "The Plan"), "The Plan"),
        (run("City:") + control("<w:showingPlcHdr/>", " Click to enter text"), "City:"),
    ],
)
def test_content_controls_of_word(runs: str, text: str) -> None:
    assert read_one("a.docx", docx(f"<w:p>{runs}</w:p>")).text == text


def test_signs_of_word() -> None:
    signs = run("5 ") + '<w:r><w:sym w:font="Symbol" w:char="F06D"/></w:r>' + run("m ")
    signs += '<w:r><w:sym w:font="Wingdings" w:char="F0FE"/><w:sym w:font="Nobody" w:char="zz"/></w:r>'
    ruby = f"<w:r><w:ruby><w:rt>{run('とう')}</w:rt><w:rubyBase>{run('東')}</w:rubyBase></w:ruby></w:r>"
    assert read_one("a.docx", docx(f"<w:p>{signs}{ruby}</w:p>")).text == "5 μm ☑東"


def with_parts(parts: list[tuple[str, str, str]], **members: bytes) -> bytes:
    names = {f"word/{path}": members[name] for name, _, path in parts}
    return docx(paragraph("Text."), **{"word/_rels/document.xml.rels": rels(parts), **names})


def test_embedded_files_are_read_and_the_rest_is_reported() -> None:
    parts = [
        ("a", "package", "embeddings/Ships.xlsx"),
        ("b", "aFChunk", "chunk.txt"),
        ("c", "image", "media/image1.png"),
        ("d", "oleObject", "embeddings/oleObject1.bin"),
        ("e", "package", "embeddings/own.xyz"),
    ]
    made = with_parts(parts, a=WORKBOOK, b=b"A chunk of text.", c=b"png", d=b"\x00\x01", e=b"\x00\x01")
    documents, failures = read_all("a.docx", made)
    assert [one.id for one in documents] == [
        "a.docx",
        "a.docx/chunk.txt",
        "a.docx/Ships.xlsx/S#2",
        "a.docx/Ships.xlsx/S#3",
    ]
    assert documents[3].text == "Ship: Maud\nYear: 1917"
    assert failures == [
        "a.docx/own.xyz: no reader for .xyz files",
        "a.docx: not read: 1 embedded object (oleObject1.bin); 1 picture (image1.png)",
    ]
    assert not ALONE & {"docx", "pptx"}  # their embedded files are documents, too


def test_embedded_files_in_embedded_files_end_at_three_levels() -> None:
    made = with_parts([("a", "package", "in.xlsx")], a=WORKBOOK)
    for _ in range(5):
        made = with_parts([("a", "package", "in.docx")], a=made)
    documents, failures = read_all("a.docx", made)
    assert [one.id.count("/") for one in documents] == [0, 1, 2, 3]
    assert failures == [
        "a.docx/in.docx/in.docx/in.docx/in.docx: embedded files are nested more than 3 levels deep"
    ]


def test_the_file_in_an_object() -> None:
    class Storage:
        def __init__(self, data: bytes) -> None:
            self.streams = {"\1Ole10Native": packed} if data == OLE else {}

        def __enter__(self) -> Storage:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def exists(self, name: str) -> bool:
            return name in self.streams

        def openstream(self, name: str) -> io.BytesIO:
            return io.BytesIO(self.streams[name])

    content = b"Ship;Year\nFram;1892\n"
    temporary = b"C:\\t\\ships.csv\0"
    packed = struct.pack("<IH", 99, 2) + b"ships.csv\0C:\\own\\ships.csv\0" + b"\0\0\3\0"
    packed += struct.pack("<I", len(temporary)) + temporary + struct.pack("<I", len(content)) + content
    module = ModuleType("olefile")
    module.OleFileIO = Storage  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "olefile", module)
        assert native_file("oleObject1.bin", OLE) == ("ships.csv", content)
        assert native_file("oleObject1.bin", OLE + b"x") == ("oleObject1.bin", OLE + b"x")
    assert native_file("a.bin", b"other") == ("a.bin", b"other")


def test_a_damaged_object_is_reported_as_unread() -> None:
    part("olefile", "documents")
    made = with_parts([("d", "oleObject", "embeddings/oleObject1.bin")], d=OLE + bytes(600))
    documents, failures = read_all("a.docx", made)
    assert [one.text for one in documents] == ["Text."]
    assert failures == ["a.docx: not read: 1 embedded object (oleObject1.bin)"]


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def test_descriptions_of_pictures() -> None:
    about = '<w:r><w:drawing><wp:docPr xmlns:wp="w" descr="{}"/></w:drawing></w:r>'
    body = paragraph("Below.", more=about.format("Map of  the bay"))
    body += paragraph("End.", more=about.format("Sky Description automatically generated"))
    assert read_one("a.docx", docx(body)).text == "Below.\n\nPicture: Map of the bay\n\nEnd."
    picture = '<p:pic><p:nvPicPr><p:cNvPr descr="Map of the bay"/></p:nvPicPr></p:pic>'
    assert read_one("a.pptx", pptx([shape(["Route"]) + picture])).text == "Route\n\nPicture: Map of the bay"
    frame = "<draw:frame><draw:image/><svg:desc xmlns:svg='s'>Map of the bay</svg:desc></draw:frame>"
    text = "Picture: Map of the bay"
    assert read_one("a.odt", odt(f"<text:p>One.{frame}</text:p>")).text == f"One.\n\n{text}"
    assert text in read_one("a.odp", odp([frame], {})).text


def test_pictures_of_open_document_files_are_reported() -> None:
    image = '<text:p>One.<draw:frame><draw:image xlink:href="Pictures/a.png"/></draw:frame></text:p>'
    for name, made in (
        ("a.odt", odt(image, **{"Pictures/a_png": "x"}).replace(b"a_png", b"a.png")),
        ("a.ods", ods([ods_row("x", "y"), ods_row("a", "1")])),
    ):
        documents, failures = read_all(name, made)
        assert documents
        assert failures == ([f"{name}: not read: 1 picture (a.png)"] if name == "a.odt" else [])


def test_fields_of_an_open_document_form() -> None:
    fields = '<form:text form:label="Owner" form:current-value="Ida"/><form:text form:name="Berth"/>'
    fields += (
        '<form:checkbox form:label="Member" form:current-state="checked"/><form:radio form:label="Guest"/>'
    )
    forms = f"<office:forms><form:form xmlns:form='f' form:name='x'>{fields}</form:form></office:forms>"
    found = read_one("a.odt", odt(f"{forms}<text:p>End.</text:p>"))
    assert found.text.split("\n\n") == ["Owner: Ida", "Berth:", "[x] Member", "[ ] Guest", "End."]


def test_headers_text_boxes_and_pictures_of_a_sheet() -> None:
    codes = '&amp;L&amp;"Arial,Bold"&amp;12Fleet &amp;&amp; Co&amp;RPage &amp;P'
    head = f"<headerFooter><oddHeader>{codes}</oddHeader></headerFooter>"
    drawing = "<xdr:wsDr xmlns:xdr='x' xmlns:a='a'><xdr:sp><xdr:cNvPr id='1'/><xdr:txBody><a:p>"
    drawing += "<a:r><a:t>See </a:t></a:r><a:r><a:t>note</a:t></a:r></a:p></xdr:txBody></xdr:sp><xdr:pic>"
    drawing += "<xdr:cNvPr descr='Map of the bay'/></xdr:pic></xdr:wsDr>"
    more = {
        "xl/worksheets/_rels/sheet1.xml.rels": rels([("d", "drawing", "../drawings/drawing1.xml")]),
        "xl/drawings/drawing1.xml": drawing,
    }
    made = workbook({1: ["Ship", "Year"], 2: ["Fram", 1892.0]}, more=more)
    members = archive_members(made)
    members["xl/worksheets/sheet1.xml"] = members["xl/worksheets/sheet1.xml"].replace(
        b"</worksheet>", head.encode() + b"</worksheet>"
    )
    documents, failures = read_all("a.xlsx", archive(members))
    assert failures == []
    assert {one.id: one.text for one in documents[1:]} == {
        "a.xlsx/S#shapes": "See note\nPicture: Map of the bay",
        "a.xlsx/S#header": "Fleet & Co",
    }


def archive_members(data: bytes) -> dict[str, bytes]:
    import zipfile

    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}
