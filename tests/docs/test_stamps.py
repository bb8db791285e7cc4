"""A section of figures that is older than the code it depends on says so on the page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.process import ROOT


@pytest.fixture
def stamps(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "benches"))
    import stamps  # type: ignore[import-not-found]

    yield stamps
    sys.modules.pop("stamps", None)


def test_every_stale_section_has_its_note(stamps: ModuleType) -> None:
    assert stamps.check() == []


def test_comments_docstrings_imports_and_moves_do_not_change_a_digest(
    stamps: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text(
        '"""One."""\nimport os\n\n\ndef f(x):\n    """Two."""\n    return x + 1  # three\n'
    )
    (tmp_path / "a.rs").write_text('//! One.\nuse std::fs;\nfn f() -> &\'static str { "a // b" }\n')
    before = stamps.digest(["*.py", "*.rs"], tmp_path)
    (tmp_path / "a.py").unlink()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "moved.py").write_text(
        "from sys import (\n    path,\n)\n\n\ndef f(x):\n    return x + 1\n"
    )
    (tmp_path / "a.rs").write_text(
        '/* Other. */ fn f() -> &\'static str { "a // b" }\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n'
    )
    assert stamps.digest(["**/*.py", "*.rs"], tmp_path) == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "def f(x):\n    return x + 2\n"),
        ("a.py", "def f(x):\n    return '# a'\n"),
        ("a.rs", 'fn f() -> &\'static str { "a // c" }\n'),
    ],
)
def test_a_changed_token_changes_the_digest(stamps: ModuleType, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "a.py").write_text("def f(x):\n    return '# b'\n")
    (tmp_path / "a.rs").write_text('fn f() -> &\'static str { "a // b" }\n')
    before = stamps.digest(["a.*"], tmp_path)
    (tmp_path / name).write_text(text)
    assert stamps.digest(["a.*"], tmp_path) != before


def test_a_note_is_written_below_the_title_once_and_removed(stamps: ModuleType) -> None:
    entry: dict[str, Any] = {"date": "2026-01-02", "commit": "abc", "files": [], "digest": None}
    section = "<!-- python benches/a.py -->\n## Title\n\nText.\n"
    marked = stamps.with_note(section, entry, stale=True)
    assert marked == section.replace("## Title\n", f"## Title\n\n{stamps.note(entry)}")
    assert stamps.with_note(marked, entry, stale=True) == marked
    assert stamps.with_note(marked, entry, stale=False) == section


def test_a_section_without_a_note_is_reported(
    stamps: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The check fails as soon as code changes below a section that was stamped."""
    (tmp_path / "benches").mkdir()
    (tmp_path / "code.py").write_text("x = 1\n")
    page = tmp_path / "benches" / "BENCHMARKS.md"
    page.write_text("<!-- python benches/a.py -->\n## Title\n\nMachine: M. 2026-01-02.\n\n| a |\n")
    name = "benches/BENCHMARKS.md: python benches/a.py"
    monkeypatch.setattr(stamps, "ROOT", tmp_path)
    monkeypatch.setattr(stamps, "STAMPS", tmp_path / "stamps.json")
    monkeypatch.setattr(stamps, "PAGES", {"benches/BENCHMARKS.md": stamps.PAGES["benches/BENCHMARKS.md"]})
    monkeypatch.setattr(stamps.digest, "__defaults__", (tmp_path,))
    monkeypatch.setattr(stamps.is_stale, "__defaults__", (tmp_path,))
    stamps._write({name: {"date": "-", "commit": "-", "machine": "-", "files": ["code.py"], "digest": None}})
    assert stamps.check() == [f"{name}: run python benches/stamps.py --note"]
    stamps.stamp(name)
    assert stamps.check() == []
    assert "stale" not in page.read_text()
    assert stamps._entries()[name]["machine"] == "M"
    (tmp_path / "code.py").write_text("x = 2\n")
    assert stamps.check() == [f"{name}: run python benches/stamps.py --note"]
    stamps.write_notes()
    assert stamps.check() == []
    assert "commit unknown (stale)" in page.read_text()
