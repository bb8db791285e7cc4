"""Saved web pages: the page with its address; pictures and style sheets are not read."""

from __future__ import annotations

import pytest

from tests.support.reading import read_all, read_one

PARAGRAPH = "The Fram drifted with the ice for three years and came back to Norway. " * 5
PAGE = (
    f"<html><head><title>Fram</title></head><body><h1>Fram</h1><p>{PARAGRAPH}</p><p>Größe</p></body></html>"
)
SAVED = f"""From: <Saved by Blink>
Snapshot-Content-Location: https://example.org/fram
Subject: Fram - Example
MIME-Version: 1.0
Content-Type: multipart/related; type="text/html"; boundary="----x"

------x
Content-Type: text/html; charset=iso-8859-1
Content-ID: <frame@mhtml.blink>
Content-Transfer-Encoding: 8bit
Content-Location: https://example.org/fram

{PAGE}
------x
Content-Type: image/png
Content-Transfer-Encoding: base64
Content-Location: https://example.org/a.png

iVBORw0KGgo=
------x
Content-Type: text/css
Content-Location: https://example.org/a.css

p {{ color: red }}
------x--
""".replace("\n", "\r\n")


@pytest.mark.parametrize("name", ["a.mht", "a.mhtml"])
def test_a_saved_page(name: str) -> None:
    pytest.importorskip("resiliparse")
    found = read_one(name, SAVED.encode("latin-1"))
    assert found.id == name
    assert PARAGRAPH.strip() in found.text
    assert "Größe" in found.text
    assert "color" not in found.text
    assert found.title == "Fram"
    assert found.metadata == {"url": "https://example.org/fram"}


def test_without_a_page() -> None:
    data = b"MIME-Version: 1.0\r\nContent-Type: image/png\r\n\r\nx"
    assert read_all("a.mht", data) == ([], ["a.mht: not a saved page: no part of it is HTML"])
