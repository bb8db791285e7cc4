"""A section of the benchmarks' page that is older than its code is marked, or the check fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.process import ROOT


@pytest.fixture
def stamps(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "benches"))
    import stamps  # type: ignore[import-not-found]

    yield stamps
    sys.modules.pop("stamps", None)


def test_the_page_is_what_the_results_and_the_code_give(stamps: ModuleType) -> None:
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


def test_texts_for_people_do_not_change_a_digest(stamps: ModuleType, tmp_path: Path) -> None:
    python = """
def f(x):
    if x < 1:
        raise InputError(f"x is {x}", hint="{1}")
    return Channel("bm25", help="{1}" "more", needs=("units",))
"""
    rust = 'fn f() { g(Error::damaged("{1}")); g(Error::Input(format!("{1} {x}"))); g("kept") }\n'
    digests = set()
    for words in ("one", "another text"):
        (tmp_path / "a.py").write_text(python.replace("{1}", words).replace("x is", words))
        (tmp_path / "a.rs").write_text(rust.replace("{1}", words))
        digests.add(stamps.digest(["a.*"], tmp_path))
    assert len(digests) == 1
    for name, old, new in (("a.py", "units", "links"), ("a.py", "bm25", "walk"), ("a.rs", "kept", "other")):
        text = (tmp_path / name).read_text()
        (tmp_path / name).write_text(text.replace(old, new))
        assert stamps.digest(["a.*"], tmp_path) not in digests, old
        (tmp_path / name).write_text(text)


def test_files_of_tests_and_excluded_files_do_not_count(stamps: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.rs").write_text("fn f() {}\n")
    before = stamps.digest(["*.rs"], tmp_path)
    (tmp_path / "a_tests.rs").write_text("fn g() {}\n")
    (tmp_path / "drawing.rs").write_text("fn h() {}\n")
    assert stamps.digest(["*.rs", "!drawing.rs"], tmp_path) == before != stamps.digest(["*.rs"], tmp_path)
    with pytest.raises(SystemExit, match=r"no file matches !lost\.rs"):
        stamps.digest(["*.rs", "!lost.rs"], tmp_path)


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


@pytest.fixture
def run(stamps: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """One run of the page, whose results and page are in a temporary folder; returns its name."""
    import page  # type: ignore[import-not-found]
    import sections  # type: ignore[import-not-found]

    (tmp_path / "code.py").write_text("x = 1\n")
    name = "build"
    assert name in sections.runs()
    result = {
        "digest": stamps.digest(["code.py"], tmp_path),
        "date": "2026-01-02",
        "code": "abc",
        "machine": "M",
        "load": 0.1,
        "data": "D.",
        "notes": [],
        "tables": [{"title": "", "columns": ["a", "b"], "rows": [["x", 1.5], ["y", [2.0, 1.5, 3.0]]]}],
    }
    (tmp_path / f"{name}.json").write_text(json.dumps(result))
    own = stamps.digest
    monkeypatch.setattr(stamps, "digest", lambda globs: own(["code.py"], tmp_path))
    monkeypatch.setattr(stamps, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(stamps.read_results, "__defaults__", (tmp_path,))
    results = stamps.read_results()
    (tmp_path / "page.md").write_text(page.page(results, stamps.stale_runs(results)))
    yield name
    for module in ("page", "sections"):
        sys.modules.pop(module, None)


def test_changed_code_makes_a_run_stale_and_the_check_fail(
    stamps: ModuleType, run: str, tmp_path: Path
) -> None:
    from page import STALE, page

    assert stamps.check() == []
    text = (tmp_path / "page.md").read_text()
    assert STALE not in text
    assert "| x | 1.50 |  |\n| y | 2.0 | 0.8 |" in text
    assert "Not measured yet" in text  # the others have no result
    (tmp_path / "code.py").write_text("x = 2\n")
    assert stamps.check() == ["benches/BENCHMARKS.md: run python benches/stamps.py --note"]
    results = stamps.read_results()
    (tmp_path / "page.md").write_text(page(results, stamps.stale_runs(results)))
    assert stamps.check() == []
    assert (tmp_path / "page.md").read_text().count(STALE) == 1


def test_a_result_without_a_section_is_reported(stamps: ModuleType, run: str, tmp_path: Path) -> None:
    (tmp_path / "gone.json").write_text((tmp_path / f"{run}.json").read_text())
    assert "benches/results/gone.json: no section has this run" in stamps.check()
