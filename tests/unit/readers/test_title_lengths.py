"""Titles and heading paths have a length; the whole title stays in the text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ketrag_fast import Document, Settings
from ketrag_fast.building.sources import read_sources
from ketrag_fast.readers.titles import DEEPEST_PATH, LONGEST_NAME, LONGEST_TITLE, cut_title
from ketrag_fast.types import Failure
from tests.support.parts import part

LONG = " ".join(f"word{n}" for n in range(2_000))
FILES = {
    "heading.md": f"# {LONG}\n\nThe text.\n",
    "front.md": f"---\ntitle: {LONG}\n---\nThe text.\n",
    "title.rst": f"{LONG}\n{'=' * len(LONG)}\n\nThe text.\n",
    "title.org": f"#+TITLE: {LONG}\n\nThe text.\n",
    "title.adoc": f"= {LONG}\n\nThe text.\n",
    "title.json": json.dumps({"title": LONG, "a": "The text."}),
    "title.xml": f"<a><title>{LONG}</title><b>The text.</b></a>",
    "title.jsonl": json.dumps({"_id": "a", "title": LONG, "text": "The text."}),
    "title.csv": f"title,text\n{LONG},The text.\n",
    "title.ipynb": json.dumps({"cells": [{"cell_type": "markdown", "source": f"# {LONG}\n\nThe text."}]}),
    "subject.eml": f"From: a@b\nSubject: {LONG[:9_000]}\n\nThe text.",
    "title.rtf": f"{{\\rtf1{{\\info{{\\title {LONG[:1_900]}}}}}The text.\\par }}",
    "h1.html": f"<h1>{LONG}</h1><p>The text.</p>",
    "title.html": f"<title>{LONG}</title><p>The text.</p>",
}


@pytest.mark.parametrize("name", FILES)
def test_a_long_title_is_cut(name: str, tmp_path: Path) -> None:
    if name.endswith("html"):
        part("resiliparse", "documents")
    (tmp_path / name).write_text(FILES[name])
    (document,) = read_sources(str(tmp_path), Settings())
    assert not isinstance(document, Failure)
    assert len(document.title) == LONGEST_TITLE and document.title.endswith("…")
    assert document.title[:-1] in LONG
    whole = {"subject.eml": LONG[:8_990], "title.rtf": LONG[:1_890]}.get(name, LONG)
    assert whole in document.text and "The text." in document.text
    for one in document.locators:
        if one.kind == "heading":
            assert all(len(part) <= LONGEST_NAME for part in one.value)


def test_offsets_in_the_text_stay() -> None:
    document = Document("a", "One two.", "t" * 301)
    cut = cut_title(document)
    assert cut.text == "One two.\n\n" + "t" * 301 and cut.title == "t" * 299 + "…"
    assert cut_title(Document("a", "One two.", "t" * 300)).title == "t" * 300
    repeated = Document("a", f"One {'t' * 301} two.", "t" * 301)
    assert cut_title(repeated).text == repeated.text


def test_long_titles_of_lines_are_cut_as_those_of_one_line(tmp_path: Path) -> None:
    """The core reads plain lines in batches, and leaves lines with long titles."""
    lines = [{"_id": str(n), "title": "é" * (299 + n), "text": "x"} for n in range(4)]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    titles = [
        len(item.title) for item in read_sources(str(tmp_path), Settings()) if isinstance(item, Document)
    ]
    assert titles == [299, 300, 300, 300]


def test_paths_keep_the_innermost_headings(tmp_path: Path) -> None:
    part("tree_sitter", "documents")
    classes = "".join(f"{'  ' * n}class C{n}:\n" for n in range(20)) + "  " * 20 + "x = 1\n"
    (tmp_path / "a.py").write_text(classes)
    (document,) = read_sources(str(tmp_path), Settings())
    assert isinstance(document, Document)
    paths = [one.value for one in document.locators if one.kind == "symbol"]
    assert paths[0] == ["C0"] and paths[-1] == [f"C{n}" for n in range(20 - DEEPEST_PATH, 20)]
