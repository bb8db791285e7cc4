"""Any text survives XML, CSV and JSON lines, apart from characters that the format cannot hold."""

from __future__ import annotations

import csv
import io
import json
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.interchange.graph_files import _put_json_line as _put
from ketrag_fast.interchange.graph_files import attribute, content, quote

# Stored texts are UTF-8, so they have no halves of surrogate pairs.
TEXTS = st.text(st.characters(exclude_categories=("Cs",))) | st.text(
    "\"'<>&\r\n\t\0\x0b=+-@;,]]>\u202e\u2028\ufffe"
)
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@given(TEXTS)
def test_xml(text: str) -> None:
    wanted = _FORBIDDEN.sub("\ufffd", text)
    element = ET.fromstring(f'<a b="{attribute(text)}">{content(text)}</a>')
    assert (element.text or "") == wanted
    assert element.attrib["b"] == wanted


@given(st.lists(TEXTS, min_size=1))
def test_csv(texts: list[str]) -> None:
    line = ",".join(quote(text) for text in texts) + "\n"
    (row,) = csv.reader(io.StringIO(line, newline=""), strict=True)
    assert row == [("'" if text.startswith(FORMULA) else "") + text.replace("\0", "\ufffd") for text in texts]
    assert not any(cell.startswith(FORMULA) for cell in row)


FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\0", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What spreadsheets run (OWASP, "CSV injection"), and NUL, which some of them drop."""


@pytest.mark.parametrize(
    "text", ["=HYPERLINK(1)", "+1", "-1+2", "@SUM(1)", "\t=1", "\r=1", "\uff1d1", "\0=1"]
)
def test_no_cell_is_a_formula(text: str) -> None:
    (row,) = csv.reader(io.StringIO(quote(text) + "\n", newline=""), strict=True)
    assert row[0].startswith("'")


@given(st.lists(TEXTS))
def test_json_lines(texts: list[str]) -> None:
    stream = io.BytesIO()
    _put(stream, [{"text": text} for text in texts])
    lines = stream.getvalue().decode("utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == texts
