"""Office files and books that unpack to gigabytes, nest or repeat cost little, and say what was wrong."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="memory is measured with `resource`")

Member = tuple[str, str, str, str, int]
"""Name, beginning, repeated text, end, and number of repetitions."""
_URN = "urn:oasis:names:tc:opendocument:xmlns"
_OFFICE = "http://schemas.openxmlformats.org"
_OPEN = f'xmlns:office="{_URN}:office:1.0" xmlns:text="{_URN}:text:1.0" xmlns:table="{_URN}:table:1.0"'
_SHAPES = f'xmlns:a="{_OFFICE}/drawingml/2006/main" xmlns:p="{_OFFICE}/presentationml/2006/main"'
_LINKS = f'xmlns:r="{_OFFICE}/officeDocument/2006/relationships"'
_RELATIONS = f'xmlns="{_OFFICE}/package/2006/relationships"'
_TYPE = f"{_OFFICE}/officeDocument/2006/relationships"
_CONTENT = "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"
_PAGE = '<html xmlns="http://www.w3.org/1999/xhtml"><body>'
_CHUNK = 1_000_000

_READ = """
import json, resource, sys, time
from pathlib import Path
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers import SourceFile, items_of, known_kind
from ketrag_fast.types import Document

path = Path(sys.argv[1])
file = SourceFile(path, path.name)
items = list(items_of(file, known_kind(file)))
documents = [item for item in items if isinstance(item, Document)]
used = resource.getrusage(resource.RUSAGE_SELF)
peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
if sys.platform == "linux":  # `getrusage` counts what the process that started this one had
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
print(json.dumps({
    "characters": sum(len(item.text) for item in documents),
    "failures": [f"{item.code}: {item.message}" for item in items if not isinstance(item, Document)],
    "seconds": used.ru_utime + used.ru_stime,
    "bytes": peak,
}))
"""


def deflated(start: str, repeated: str, end: str, times: int) -> tuple[bytes, int]:
    """A deflate stream with much repeated text, of which one part is compressed; and what it unpacks to."""
    parts, size = b"", 0
    each = max(1, _CHUNK // max(1, len(repeated)))
    for text, count, last in (
        (start, 1, False),
        (repeated * each, times // each, False),
        (repeated * (times % each), 1, False),
        (end, 1, True),
    ):
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        data = packer.compress(text.encode()) + packer.flush(zlib.Z_FINISH if last else zlib.Z_FULL_FLUSH)
        parts += data * count
        size += len(text) * count
    return parts, size


def package(members: list[Member], claimed: int | None = None) -> bytes:
    """A ZIP file. With `claimed`, each member with repetitions says that it unpacks to so many bytes."""
    body = table = b""
    for name, start, repeated, end, times in members:
        data, size = deflated(start, repeated, end, times)
        # The checksum of a member with repetitions is wrong: nothing may read that far.
        crc = zlib.crc32((start + end).encode()) if not times else 0
        shown = claimed if claimed and times else size
        about = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, crc, len(data), shown, len(name), 0)
        table += b"PK\1\2" + struct.pack("<H", 20) + about + struct.pack("<HHHII", 0, 0, 0, 0, len(body))
        table += name.encode()
        body += b"PK\3\4" + about + name.encode() + data
    count = len(members)
    return body + table + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, count, count, len(table), len(body), 0)


def plain(name: str, text: str) -> Member:
    return name, text, "", "", 0


def opendocument(kind: str, start: str, repeated: str, end: str, times: int) -> list[Member]:
    head = f"<office:document-content {_OPEN}><office:body><office:{kind}>"
    tail = f"</office:{kind}></office:body></office:document-content>"
    mime = plain("mimetype", f"application/vnd.oasis.opendocument.{kind}")
    return [mime, ("content.xml", head + start, repeated, end + tail, times)]


def slides(start: str, repeated: str, end: str, times: int) -> list[Member]:
    def relation(kind: str, target: str) -> str:
        one = f'<Relationship Id="r1" Type="{_TYPE}/{kind}" Target="{target}"/>'
        return f"<Relationships {_RELATIONS}>{one}</Relationships>"

    types = f'<Types xmlns="{_OFFICE}/package/2006/content-types"><Override'
    ids = '<p:sldIdLst><p:sldId id="256" r:id="r1"/></p:sldIdLst>'
    tree, close = f"<p:sld {_SHAPES}><p:cSld><p:spTree>", "</p:spTree></p:cSld></p:sld>"
    return [
        plain(
            "[Content_Types].xml",
            f'{types} PartName="/ppt/presentation.xml" ContentType="{_CONTENT}"/></Types>',
        ),
        plain("_rels/.rels", relation("officeDocument", "ppt/presentation.xml")),
        plain("ppt/presentation.xml", f"<p:presentation {_SHAPES} {_LINKS}>{ids}</p:presentation>"),
        plain("ppt/_rels/presentation.xml.rels", relation("slide", "slides/slide1.xml")),
        ("ppt/slides/slide1.xml", tree + start, repeated, end + close, times),
    ]


def book(start: str, repeated: str, end: str, times: int, spine: int = 1) -> list[Member]:
    root = '<rootfile full-path="o.opf" media-type="application/oebps-package+xml"/>'
    listed = '<item id="c" href="c.xhtml" media-type="application/xhtml+xml"/>'
    container = f'<container xmlns="{_URN}:container"><rootfiles>{root}</rootfiles></container>'
    order = '<itemref idref="c"/>' * spine
    return [
        plain("mimetype", "application/epub+zip"),
        plain("META-INF/container.xml", container),
        plain(
            "o.opf",
            f'<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><manifest>{listed}</manifest>'
            f"<spine>{order}</spine></package>",
        ),
        (
            "c.xhtml",
            f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{start}',
            repeated,
            f"{end}</body></html>",
            times,
        ),
    ]


_ROW = (
    '<table:table-row table:number-rows-repeated="1000000">'
    '<table:table-cell table:number-columns-repeated="1000"><text:p>cell</text:p></table:table-cell>'
    "</table:table-row>"
)
_CELL = "<table:table-row><table:table-cell><text:p>word</text:p></table:table-cell></table:table-row>"
_SHAPE = "<p:sp><p:txBody><a:p><a:r><a:t>word word</a:t></a:r></a:p></p:txBody></p:sp>"
_TABLE, _TABLE_END = "<table:table>", "</table:table>"
_INNER, _INNER_END = (
    "<table:table><table:table-row><table:table-cell>",
    "</table:table-cell></table:table-row></table:table>",
)


def result(tmp_path: Path, name: str, data: bytes) -> dict[str, Any]:
    """What a process of its own reads; it may take 5 s of the processor and 0.5 GB."""
    (tmp_path / name).write_bytes(data)
    run = subprocess.run(
        [sys.executable, "-c", _READ, str(tmp_path / name)], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(run.stdout)
    assert found["seconds"] < 5 and found["bytes"] < 500_000_000, found
    return found


def bomb(name: str) -> list[Member]:
    if name == "a.pptx":
        return slides("", _SHAPE, "", 2_000_000_000 // len(_SHAPE))
    if name == "a.epub":
        return book("", "<p>word word</p>", "", 2_000_000_000 // 16)
    if name == "a.ods":
        return opendocument("spreadsheet", _TABLE, _CELL, _TABLE_END, 2_000_000_000 // len(_CELL))
    kind = "text" if name == "a.odt" else "presentation"
    return opendocument(kind, "", "<text:p>word word</text:p>", "", 2_000_000_000 // 26)


@pytest.mark.parametrize("name", ["a.ods", "a.odt", "a.odp", "a.pptx", "a.epub"])
def test_a_member_that_unpacks_to_gigabytes(name: str, tmp_path: Path) -> None:
    found = result(tmp_path, name, package(bomb(name)))
    (failure,) = found["failures"]
    assert failure.startswith("document: ") and "unpacks to more than 100 times its size" in failure
    assert found["characters"] == 0


@pytest.mark.parametrize("name", ["a.ods", "a.odt", "a.odp", "a.pptx", "a.epub"])
def test_a_member_that_unpacks_to_more_than_it_claims(name: str, tmp_path: Path) -> None:
    found = result(tmp_path, name, package(bomb(name), claimed=5_000))
    (failure,) = found["failures"]
    assert failure.startswith("document: ") and "damaged archive" in failure
    assert found["characters"] == 0


@pytest.mark.parametrize("name", ["a.ods", "a.odt", "a.odp", "a.pptx"])
def test_twenty_thousand_levels(name: str, tmp_path: Path) -> None:
    if name == "a.pptx":
        members = slides("<p:grpSp>" * 20_000 + _SHAPE, "", "</p:grpSp>" * 20_000, 0)
    else:
        kind = {"a.ods": "spreadsheet", "a.odt": "text", "a.odp": "presentation"}[name]
        nested = f"{_INNER * 20_000}<text:p>deep</text:p>{_INNER_END * 20_000}"
        members = opendocument(kind, nested, "", "", 0)
    (failure,) = result(tmp_path, name, package(members))["failures"]
    assert failure.startswith("document: ") and "nested more than 400 levels" in failure


def test_a_book_of_many_levels_or_with_one_page_many_times_is_read(tmp_path: Path) -> None:
    nested = book("<div>" * 200_000 + "deep", "", "</div>" * 200_000, 0)
    assert result(tmp_path, "deep.epub", package(nested))["characters"] == 4
    page = book("<p>" + "word " * 20_000 + "</p>", "", "", 0, spine=100_000)
    assert result(tmp_path, "spine.epub", package(page))["characters"] == 99_999


@pytest.mark.parametrize("kind", ["spreadsheet", "text", "presentation"])
def test_ten_thousand_rows_that_each_repeat_a_million_times(kind: str, tmp_path: Path) -> None:
    name = {"spreadsheet": "a.ods", "text": "a.odt", "presentation": "a.odp"}[kind]
    rows = package(opendocument(kind, _TABLE + _ROW * 10_000, "", _TABLE_END, 0))
    found = result(tmp_path, name, rows)
    if kind == "spreadsheet":
        (failure,) = found["failures"]
        assert failure.startswith("part: the file gives more than")
        assert 0 < found["characters"] <= 20_000_000
    else:  # a repeated row of a text is read once
        assert (found["failures"], found["characters"]) == ([], 49_999)
