"""Web pages, Markdown and reStructuredText: main text, headings, metadata, encodings."""

from __future__ import annotations

import pytest

from tests.support.parts import part
from tests.support.reading import at, read_all, read_one

ARTICLE = "".join(f"<p>Sentence number {n} of the main text is long enough to be one.</p>" for n in range(8))
PAGE = f"""<!doctype html><html lang="en"><head><title>The Voyage - Site</title>
<meta name="author" content="A. B."></head><body>
<nav><ul><li><a href="/">Home</a></li><li><a href="/news">News of today</a></li></ul></nav>
<main><article><h1>The Voyage</h1>{ARTICLE}<h2>Costs &amp; <i>sums</i></h2>
<table><tr><th>Name</th><th>Sum</th></tr><tr><td>Ann</td><td>5</td></tr></table>
<pre>def f():
    return 1 &lt; 2</pre><p>See <a href="http://x.org/a?b=1&amp;c=2">there</a>.</p></article></main>
<footer>Copyright of the site</footer></body></html>"""


def test_html() -> None:
    part("resiliparse", "documents")
    found = read_one("a.html", PAGE.encode())
    assert found.title == "The Voyage"
    assert found.metadata == {"author": "A. B.", "lang": "en", "links": ["http://x.org/a?b=1&c=2"]}
    assert "News of today" not in found.text
    assert "Copyright" not in found.text
    assert "Name\tSum\nAnn\t5" in found.text
    assert "def f():\n    return 1 < 2" in found.text
    assert "See there." in found.text
    (heading,) = at(found, "heading")
    assert heading[0] == ["Costs & sums"]
    assert heading[1].startswith("Costs & sums\n\nName")


def test_listings_are_code() -> None:
    part("resiliparse", "documents")
    assert at(read_one("a.html", PAGE.encode()), "code") == [(0, "def f():\n    return 1 < 2")]
    whole = "".join(f"{n}. A text that was never marked up.\n\n" for n in range(99))
    assert at(read_one("a.html", f"<html><body><pre>{whole}</pre>".encode()), "code") == []


def test_tables_of_pages() -> None:
    part("resiliparse", "documents")
    cells = (f"<td><a href=/{n}>Person {n}</a></td><td>a <b>remark</b> {n}</td>" for n in range(90))
    rows = "".join(f"<tr>{row}</tr>" for row in ("<th>Name</th><th>Remark</th>", *cells))
    page = f"<html><body><main>{ARTICLE}<table>{rows}</table>{ARTICLE}</main>"
    text = read_one("a.html", page.encode()).text
    assert "Person 7\ta remark 7\n" in text
    (table,) = [block for block in text.split("\n\n") if "\t" in block]
    assert table.split("\n") == ["Name\tRemark", *(f"Person {n}\ta remark {n}" for n in range(90))]


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        ("utf-8", ""),
        ("utf-16", ""),
        ("cp1252", '<meta charset="iso-8859-1">'),
        ("cp1251", '<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">'),
        ("koi8-r", "<meta charset=koi8-r>"),
        ("shift_jis", '<meta charset="shift_jis">'),
    ],
)
def test_encodings_of_pages(encoding: str, declared: str) -> None:
    part("resiliparse", "documents")
    words = {"cp1252": "Größe “x” ", "shift_jis": "日本語の文章 "}.get(encoding, "Привет мир ") * 20
    page = f"<!doctype html><html><head>{declared}<title>t</title></head><body><p>{words}</p></body></html>"
    assert words.strip() in read_one("a.html", page.encode(encoding)).text


def test_a_wrong_declaration_is_not_believed() -> None:
    part("resiliparse", "documents")
    page = f"<html><head><meta charset=ascii></head><body><p>{'Größe naïve ' * 30}</p></body></html>"
    assert "Größe naïve" in read_one("a.html", page.encode()).text


def test_pages_without_text_and_very_long_ones() -> None:
    part("resiliparse", "documents")
    assert "no text" in read_all("a.html", b"<html><body><img src=x></body></html>")[1][0]
    assert "larger than" in read_all("a.html", b"<html>" + b"x" * 65_000_000)[1][0]
    assert "deep" in read_one("a.html", b"<html><body>" + b"<div>" * 20_000 + b"deep text</body></html>").text


MARKDOWN = """---
title: "The Ship"
tags: [ice, 1901]
draft: false
people:
  - Ann
  - Bob
---
# The Ship

Text.

## Crew

```sh
# no heading
```

Officers
--------

### Cooks ###

More.
"""


def test_code_in_markup_is_marked() -> None:
    for name, text, code in [
        ("a.org", "* A\n#+BEGIN_SRC py\nx=1\n#+END_SRC\nmore", "#+BEGIN_SRC py\nx=1\n#+END_SRC"),
        (
            "a.tex",
            "\\section{A}\n\\begin{verbatim}\nx\n\\end{verbatim}\nb",
            "\\begin{verbatim}\nx\n\\end{verbatim}",
        ),
        ("a.adoc", "= T\n\n----\ncode\n----\n\ntext", "----\ncode\n----"),
        ("a.rst", "T\n=\n\n.. code-block:: py\n\n   x\n\n   y\n\ntext", ".. code-block:: py\n\n   x\n\n   y"),
    ]:
        found = read_one(name, text.encode())
        marked = [one for one in found.locators if one.kind == "code"]
        assert [(found.text[one.start : one.end], one.value) for one in marked] == [(code, 1)]


def test_markdown_keeps_its_text_and_gains_headings() -> None:
    found = read_one("a.md", MARKDOWN.encode())
    assert found.text == MARKDOWN[MARKDOWN.index("# The Ship") :]
    assert found.title == "The Ship"
    assert found.metadata == {"tags": ["ice", 1901], "draft": False, "people": ["Ann", "Bob"]}
    paths = [value for value, _ in at(found, "heading")]
    assert paths == [["Crew"], ["Officers"], ["Officers", "Cooks"]]
    assert at(found, "heading")[0][1].startswith("## Crew\n")
    assert [one.kind for one in read_one("a.md", b"# Only a title\n\ntext").locators] == ["lines", "markdown"]
    assert [one.value for one in found.locators if one.kind == "lines"] == [
        1 + MARKDOWN[: MARKDOWN.index("# The Ship")].count("\n")
    ]
    assert [one.kind for one in read_one("a.txt", b"# Only a text").locators] == ["lines"]


def test_toml_front_matter_and_what_is_none() -> None:
    found = read_one("a.md", b'+++\ntitle = "T"\nyear = 1901\nday = 2024-05-06\n+++\ntext')
    assert (found.title, found.metadata) == ("T", {"year": 1901, "day": "2024-05-06"})
    found = read_one("a.md", b"---\n\ntext after a rule\n\n---\n")
    assert found.metadata == {}
    found = read_one("a.md", b"+++\nnot = toml = at all\n+++\ntext")
    assert found.metadata == {}


def test_front_matter_is_left_out_of_the_text_if_it_is_metadata() -> None:
    for head, metadata in (
        ("+++\nyear = 1901\n+++\n", {"year": 1901}),
        ("---\nyear: 1901\n# a comment\n---\n\n\n", {"year": 1901}),
        ("---\nauthor:\n  name: Ann\nyear: 1901\n...\n", {"author": "name: Ann", "year": 1901}),
        ("---\r\nyear: 1901\r\n---\r\n\r\n", {"year": 1901}),
    ):
        text = "    indented\n\n# Ice\n\nText.\n\n## Depth\n\nMore."
        found = read_one("a.md", (head + text).encode())
        assert (found.text, found.metadata, found.title) == (text, metadata, "Ice"), head
        assert at(found, "heading") == [(["Depth"], "## Depth\n\nMore.")]


def test_text_that_is_no_metadata_stays() -> None:
    for text in (
        "---\n\ntext after a rule\n\n---\n\nmore",
        "---\nTwo sentences. And a note.\nNote: a rule above, and one below\n---\nmore",
        "---\nyear: 1901\nA sentence that belongs to no name.\n---\nmore",
        "+++\nnot = toml = at all\n+++\nmore",
        "---\nyear: 1901\n---\n",
        "---\nyear: 1901\n---\n \n\n",
    ):
        assert read_one("a.md", text.encode()).text == text


def test_rst() -> None:
    text = "=====\nTitle\n=====\n:Author: Ann\n\nIntro\n\nOne\n===\n\nx\n\nDeep\n----\n\ny\n\nTwo\n===\n\nz\n"
    found = read_one("a.rst", text.encode())
    assert (found.text, found.title, found.metadata) == (text, "Title", {"author": "Ann"})
    assert [value for value, _ in at(found, "heading")] == [["One"], ["One", "Deep"], ["Two"]]


def test_descriptions_of_pictures_are_read() -> None:
    """Not if the caption repeats them, twice, or if they are too short to tell what is on the picture."""
    part("resiliparse", "documents")
    keel = '<img src="k.png" alt="Cross-section of the keel &amp; three bolts">'
    mast = '<img alt="The mast of 1901"></a><figcaption>The mast, of 1901.</figcaption>'
    pictures = (
        f"<figure>{keel}<figcaption>Figure 3: the keel</figcaption></figure><p>Then {keel} again.</p>"
        f'<figure><a href="m.png">{mast}</figure>'
        '<p><img alt="Site logo"> and <img alt="a hidden buoy there" hidden></p>'
        '<nav><img alt="picture of a menu"></nav>'
    )
    page = f"<html><body><article>{ARTICLE}{pictures}</article></body></html>"
    text = read_one("a.html", page.encode()).text
    assert text[text.index("[Picture") :].split("\n") == [
        "[Picture: Cross-section of the keel & three bolts]",
        "Figure 3: the keel",
        "",
        "Then again.",
        "",
        "The mast, of 1901.",
        "",
        "and",
    ]
