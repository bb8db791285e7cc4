"""Office files, books and mails as small as they can be, written by the standard library."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from html import escape

_RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
_KIND = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_P = 'xmlns:p="p" xmlns:a="a" xmlns:r="r"'
_CORE = (
    '<cp:coreProperties xmlns:cp="cp" xmlns:dc="dc" xmlns:dcterms="t"><dc:title>{title}</dc:title>'
    "<dc:creator>Ann Author</dc:creator><dcterms:created>2024-05-06T07:08:09Z</dcterms:created>"
    "</cp:coreProperties>"
)


def archive(members: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, body in members.items():
            made.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), body, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def rels(entries: Sequence[tuple[str, str, str]]) -> str:
    rows = "".join(
        f'<Relationship Id="{name}" Type="{_KIND}/{kind}" Target="{path}"/>' for name, kind, path in entries
    )
    return f'<Relationships xmlns="{_RELS}">{rows}</Relationships>'


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'


def paragraph(text: str, style: str = "", more: str = "") -> str:
    about = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{about}{run(text)}{more}</w:p>"


def word_table(rows: Sequence[Sequence[str]]) -> str:
    cells = "".join(
        "<w:tr>" + "".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) + "</w:tr>" for row in rows
    )
    return f"<w:tbl>{cells}</w:tbl>"


def docx(body: str, title: str = "The Report", **more: str) -> bytes:
    styles = (
        f"<w:styles {_W}>"
        '<w:style w:styleId="Titel"><w:name w:val="Title"/></w:style>'
        '<w:style w:styleId="Ueber1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Ueber2"><w:name w:val="heading 2"/></w:style>'
        '<w:style w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="Ueber2"/></w:style>'
        "</w:styles>"
    )
    return archive(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": rels([("r1", "officeDocument", "word/document.xml")]),
            "word/document.xml": f"<w:document {_W}><w:body>{body}</w:body></w:document>",
            "word/styles.xml": styles,
            "docProps/core.xml": _CORE.format(title=title),
            **more,
        }
    )


def shape(texts: Sequence[str], place: str = "") -> str:
    kind = f'<p:nvSpPr><p:nvPr><p:ph type="{place}"/></p:nvPr></p:nvSpPr>' if place else "<p:nvSpPr/>"
    rows = "".join(f"<a:p><a:r><a:t>{escape(text)}</a:t></a:r></a:p>" for text in texts)
    return f"<p:sp>{kind}<p:txBody>{rows}</p:txBody></p:sp>"


def pptx(slides: Sequence[str], notes: Mapping[int, str] | None = None, hidden: Sequence[int] = ()) -> bytes:
    """`notes` by the number of their slide, from 1, and those `hidden`. The slides' files count backwards."""
    members: dict[str, str | bytes] = {
        "_rels/.rels": rels([("r1", "officeDocument", "ppt/presentation.xml")]),
        "docProps/core.xml": _CORE.format(title="The Talk"),
    }
    count = len(slides)
    ids = "".join(f'<p:sldId id="{300 + n}" r:id="s{n}"/>' for n in range(1, count + 1))
    members["ppt/presentation.xml"] = f"<p:presentation {_P}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"
    parts = [(f"s{n}", "slide", f"slides/slide{count + 1 - n}.xml") for n in range(1, count + 1)]
    members["ppt/_rels/presentation.xml.rels"] = rels(parts)
    for n, body in enumerate(slides, 1):
        name = f"slide{count + 1 - n}.xml"
        show = ' show="0"' if n in hidden else ""
        members[f"ppt/slides/{name}"] = (
            f"<p:sld {_P}{show}><p:cSld><p:spTree>{body}</p:spTree></p:cSld></p:sld>"
        )
        if notes and n in notes:
            members[f"ppt/slides/_rels/{name}.rels"] = rels([("n", "notesSlide", f"../notesSlides/n{n}.xml")])
            members[f"ppt/notesSlides/n{n}.xml"] = f"<p:notes {_P}>{shape([notes[n]], 'body')}</p:notes>"
    return archive(members)


def xlsx(
    sheets: Mapping[str, Sequence[str]],
    strings: Sequence[str] = (),
    *,
    hidden: Mapping[str, str] | None = None,
    columns: str = "",
) -> bytes:
    """Each sheet is its rows' XML. Format 1 shows a date, 2 a time of a day, 3 and 4 a duration.

    `hidden` are the states of sheets, `columns` the XML of each sheet's columns.
    """
    states = {name: f' state="{state}"' for name, state in (hidden or {}).items()}
    listed = "".join(
        f'<sheet name="{escape(name)}" sheetId="{n}"{states.get(name, "")} r:id="s{n}"/>'
        for n, name in enumerate(sheets, 1)
    )
    parts = [(f"s{n}", "worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1)]
    parts += [("st", "sharedStrings", "sharedStrings.xml"), ("sy", "styles", "styles.xml")]
    members: dict[str, str | bytes] = {
        "_rels/.rels": rels([("r1", "officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": f'<workbook xmlns:r="r"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": rels(parts),
        "xl/sharedStrings.xml": "<sst>" + "".join(f"<si><t>{escape(s)}</t></si>" for s in strings) + "</sst>",
        "xl/styles.xml": '<styleSheet><numFmts><numFmt numFmtId="170" formatCode="h:mm;@"/>'
        '<numFmt numFmtId="171" formatCode="[h]:mm"/></numFmts>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="170"/><xf numFmtId="171"/>'
        '<xf numFmtId="46"/></cellXfs></styleSheet>',
    }
    for n, rows in enumerate(sheets.values(), 1):
        members[f"xl/worksheets/sheet{n}.xml"] = (
            f"<worksheet>{columns}<sheetData>{''.join(rows)}</sheetData></worksheet>"
        )
    return archive(members)


def text_row(number: int, *cells: str) -> str:
    made = "".join(
        f'<c r="{chr(65 + place)}{number}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
        for place, cell in enumerate(cells)
        if cell
    )
    return f'<row r="{number}">{made}</row>'


ODF = (
    'xmlns:office="o" xmlns:text="t" xmlns:table="b" xmlns:draw="d" xmlns:style="s" xmlns:fo="f" '
    'xmlns:dc="c" xmlns:presentation="p" xmlns:xlink="x"'
)


def odt(body: str, styles: str = "", kind: str = "text", **more: str) -> bytes:
    """`styles` are the automatic styles, `more` further members, with `_` for the dot of their names."""
    content = (
        f"<office:document-content {ODF}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    )
    return archive(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": f"{content}</office:document-content>",
            "meta.xml": '<meta><dc:title xmlns:dc="d">Letter</dc:title></meta>',
            **{name.replace("_", "."): body for name, body in more.items()},
        }
    )


def odp(slides: Sequence[str], notes: Mapping[int, str], hidden: Sequence[int] = ()) -> bytes:
    """Each slide has a title, `notes` are by the number of their slide, from 1."""
    pages = ""
    for number, text in enumerate(slides, 1):
        box = f"<draw:frame><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>"
        note = box.replace(text, notes[number]) if number in notes else ""
        style = ' draw:style-name="Hidden"' if number in hidden else ""
        pages += f"<draw:page{style}>{box}<presentation:notes>{note}</presentation:notes></draw:page>"
    styles = (
        '<style:style style:name="Hidden"><style:drawing-page-properties presentation:visibility="hidden"/>'
        "</style:style>"
    )
    return odt(pages, styles, "presentation")


def ods(rows: Sequence[str], styles: str = "", more: str = "") -> bytes:
    """A spreadsheet with the sheet `S`; `more` are further sheets."""
    return odt(f'<table:table table:name="S">{"".join(rows)}</table:table>{more}', styles, "spreadsheet")


def ods_row(*cells: str | tuple[str, str], attributes: str = "") -> str:
    """A row of texts, and of numbers with what the cell shows."""
    made = ""
    for cell in cells:
        stored = f' office:value-type="float" office:value="{cell[0]}"' if isinstance(cell, tuple) else ""
        text = cell[1] if isinstance(cell, tuple) else cell
        made += f"<table:table-cell{stored}>{f'<text:p>{text}</text:p>' if text else ''}</table:table-cell>"
    return f"<table:table-row {attributes}>{made}</table:table-row>"


def epub(chapters: Sequence[str]) -> bytes:
    items = "".join(
        f'<item id="c{n}" href="text/c{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(1, len(chapters) + 1)
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(1, len(chapters) + 1))
    package = (
        '<package xmlns:dc="d"><metadata><dc:title>The Book</dc:title><dc:creator>B. Writer</dc:creator>'
        f"</metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    members: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container><rootfile full-path="OPS/book.opf"/></container>',
        "OPS/book.opf": package,
    }
    for n, body in enumerate(chapters, 1):
        members[f"OPS/text/c{n}.xhtml"] = f"<html><head><title>c{n}</title></head><body>{body}</body></html>"
    return archive(members)


def mail(text: str, *, html: str | None = None, attached: Mapping[str, bytes] | None = None) -> bytes:
    message = EmailMessage()
    message["Subject"] = "Quarterly figures"
    message["From"] = "Ann <ann@example.org>"
    message["To"] = "bob@example.org"
    message["Date"] = "Mon, 06 May 2024 07:08:09 +0200"
    message["Message-ID"] = "<1@example.org>"
    message.set_content(text)
    if html is not None:
        message.add_alternative(html, subtype="html")
    for name, data in (attached or {}).items():
        message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return message.as_bytes()
