"""The check for odd idioms finds them where they are read, and its limits hold."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from tests.process import ROOT


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    module = runpy.run_path(str(ROOT / ".ci" / "check_idioms.py"), run_name="check_idioms")
    monkeypatch.setitem(sys.modules, "check_idioms", None)
    return module


def _matches(check: dict[str, object], text: str) -> int:
    patterns = check["idioms"]((ROOT / ".ci" / "idioms.txt").read_text("utf-8"))  # type: ignore[operator]
    return sum(bool(pattern.search(text)) for pattern, _ in patterns)


def test_no_kind_has_more_than_its_limit(check: dict[str, object]) -> None:
    assert check["main"]([]) == 0  # type: ignore[operator]


@pytest.mark.parametrize(
    "text",
    [
        "The file where there is one.",
        "It is no error.",
        "Made anew.",
        "The index lies in a folder.",
        "10 units, at most",
        "This makes no sense.",
        "Whoever calls it",
        "the published code",
        "specs 40, 4.4.2",
    ],
)
def test_an_idiom_is_found(check: dict[str, object], text: str) -> None:
    assert _matches(check, text) == 1


@pytest.mark.parametrize(
    "text",
    [
        "This is no longer needed.",
        "Return at most ten units.",
        "k stands for the rank.",
        "Where are the files?",
    ],
)
def test_plain_english_passes(check: dict[str, object], text: str) -> None:
    assert _matches(check, text) == 0


def test_each_kind_of_text_is_read(check: dict[str, object], tmp_path: Path) -> None:
    code = tmp_path / "a.py"
    code.write_text('"""Doc."""\n\nx = 1\n"""Attribute."""\ny = "a longer message"  # why\n')
    found = [(t.kind, t.line, t.content) for t in check["python_texts"](code)]  # type: ignore[operator]
    assert found == [
        ("docstring", 1, "Doc."),
        ("docstring", 4, "Attribute."),
        ("message", 5, "a longer message"),
        ("comment", 5, "# why"),
    ]
    page = tmp_path / "a.md"
    page.write_text("Prose `code anew`.\n\n```\ncode\n```\n\n    code\n\nMore.\n")
    found = [(t.line, t.content) for t in check["prose_texts"](page)]  # type: ignore[operator]
    assert found == [(1, "Prose ."), (9, "More.")]
    rust = tmp_path / "a.rs"
    rust.write_text('//! Module.\nlet x = 1; // one\nlet url = "http://a";\n')
    found = [t.content for t in check["rust_texts"](rust)]  # type: ignore[operator]
    assert found == ["Module.", "one"]
