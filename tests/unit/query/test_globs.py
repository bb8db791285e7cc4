"""Patterns of paths as regular expressions."""

from __future__ import annotations

import pytest

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.text import pack
from ketrag_fast.query import narrowing
from ketrag_fast.query.narrowing import expression

PATHS = [
    "/h/docs/a.md",
    "/h/docs/in/b.md",
    "/h/src/c.py",
    "/h/crew.csv#2",
    "/h/x.xlsx/Sheet#3",
    "/h/a[1].txt",
    "d.md",
]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.md", [0, 1, 6]),
        ("docs/*.md", [0]),
        ("docs/**/*.md", [0, 1]),
        ("docs", [0, 1]),
        ("/h/docs/", [0, 1]),
        ("*.{py,csv}", [2, 3]),
        ("?.py", [2]),
        ("[ab].md", [0, 1]),
        ("[!ab].md", [6]),
        ("*.xlsx", [4]),
        ("a[[]1].txt", [5]),
        ("A.MD", []),
        ("ocs/a.md", []),
        ("*.m", []),
    ],
)
def test_a_glob_matches_the_end_of_a_path(glob: str, expected: list[int]) -> None:
    counts = _core.Pattern(expression(glob)).counts(pack(PATHS), 1)
    assert counts.nonzero()[0].tolist() == expected


@pytest.mark.parametrize("glob", ["a.b+c(d)^$|\\e", "{", "}", "[", "a-b c_d", "é*", "**", "{a,b"])
def test_any_text_is_a_pattern(glob: str) -> None:
    _core.Pattern(expression(glob))


@pytest.mark.parametrize("glob", ["", "!", "/", "{a,b,{c}", 3])
def test_nothing_is_not(glob: object) -> None:
    with pytest.raises(InputError):
        narrowing.split_globs(["*.md", glob])  # type: ignore[list-item]
