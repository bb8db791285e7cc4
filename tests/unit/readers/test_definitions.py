"""Definitions in code begin with the comments, decorators and attributes directly above them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Index
from tests.support.parts import part
from tests.support.reading import at, read_one

PYTHON = """import os  # behind

# About b.
# More.
@deco
def b(x):
    return x

# alone

class C:
    x = 1  # behind
    def m(self):
        return 1

    # About n.
    def n(self):
        return 2
"""
RUST = """/// Returns one.
#[inline]
fn one() -> u8 { 1 }

/* A pair. */
struct Pair { a: u8 }
"""


@pytest.fixture(autouse=True)
def parser() -> None:
    part("tree_sitter_python", "code")
    part("tree_sitter_rust", "code")


def test_comments_and_decorators_of_python() -> None:
    found = at(read_one("a.py", PYTHON.encode()), "symbol")
    firsts = {".".join(name): text.split("\n")[0] for name, text in found if isinstance(name, list)}
    assert firsts == {"b": "# About b.", "C": "class C:", "C.m": "    def m(self):", "C.n": "    # About n."}


def test_the_first_line_of_a_passage_keeps_its_indentation(tmp_path: Path) -> None:
    body = "\n".join(f"        value_{number} = compute_{number}(value)" for number in range(40))
    text = "class Winch:\n" + "\n".join(f"    def turn_{name}(self, value):\n{body}\n" for name in "abc")
    (tmp_path / "winch.py").write_text(text)
    index = Index.build(tmp_path, tmp_path / "index")
    lines = text.split("\n")
    hits = index.search("turn value compute", limit=20)
    assert len(hits) > 3
    for hit in hits:
        first, last = hit.lines or (0, 0)
        assert hit.text == "\n".join(lines[first - 1 : last]), "whole lines, as they are written"


def test_comments_and_attributes_of_rust() -> None:
    found = at(read_one("a.rs", RUST.encode()), "symbol")
    assert [text.split("\n")[0] for _, text in found] == ["/// Returns one.", "/* A pair. */"]
