"""The benchmarks' pages show the stored results, every run has its script, and a run at tiny sizes works."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from tests.process import ROOT

BENCHES = ROOT / "benches"
PAGE = BENCHES / "BENCHMARKS.md"


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(BENCHES))
    yield
    for name in ("claims", "page", "sections"):
        sys.modules.pop(name, None)


def test_every_result_has_its_run_and_every_run_its_script() -> None:
    from page import read_results  # type: ignore[import-not-found]
    from sections import runs  # type: ignore[import-not-found]

    assert read_results().keys() <= runs().keys()
    for name, (_, run) in runs().items():
        assert (BENCHES / run.command[0]).is_file(), name


def test_the_pages_show_the_stored_results() -> None:
    import page  # type: ignore[import-not-found]

    results = page.read_results()
    pages = {page.PAGE: page.benchmarks_page(results), page.SCORES: page.scores_page(results)}
    for path, text in pages.items():
        assert path.read_text("utf-8") == text, "run python benches/all.py --pages"


def test_every_section_names_its_version_commit_date_and_machine() -> None:
    sections = PAGE.read_text("utf-8").split("\n## ")[1:]
    for section in sections:
        facts = re.search(r"^Run `.+; ketrag-fast \S+ at \w+\+?, 20\d\d-\d\d-\d\d", section, re.MULTILINE)
        assert facts or "Not measured yet" in section, section[:80]


def test_a_run_at_tiny_size_prints_its_tables_and_stores_nothing() -> None:
    before = {path: path.read_bytes() for path in (BENCHES / "results").glob("*.json")}
    command = [sys.executable, str(BENCHES / "all.py"), "--smoke", "polar"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "| walk | none | " in done.stdout
    assert {path: path.read_bytes() for path in (BENCHES / "results").glob("*.json")} == before


def test_an_index_of_an_older_format_is_built_again(tmp_path: Path) -> None:
    indexes = {name: tmp_path / name for name in ("polar-none", "kept")}
    for place in indexes.values():
        Index.build([Document("d", "Text.")], place).close()
    db = sqlite3.connect(indexes["polar-none"] / "index.sqlite")
    db.execute("PRAGMA user_version = 3")
    db.close()
    command = [sys.executable, str(BENCHES / "quality.py"), "modes", "polar", "--smoke"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "KETRAG_BENCH_PLACE": str(tmp_path)}
    for wrong, code in (("--help", 0), ("--no-such-option", 2)):
        shown = subprocess.run([*command, wrong], capture_output=True, env=environment, check=False)
        assert shown.returncode == code
        assert all((place / "index.sqlite").exists() for place in indexes.values())
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "polar-none has the format of another version" in done.stderr
    counts = {}
    for name, place in indexes.items():
        with Index.open(place) as index:
            counts[name] = index.inspect.document_count
    assert counts == {"polar-none": 56, "kept": 1}


def test_readme_and_figure_show_the_stored_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import claims  # type: ignore[import-not-found]

    for name in ("README.md", "docs/pictures/claims.svg"):
        (tmp_path / Path(name).name).write_bytes((ROOT / name).read_bytes())
    monkeypatch.setattr(claims, "README", tmp_path / "README.md")
    monkeypatch.setattr(claims, "OUT", tmp_path / "claims.svg")
    claims.write()
    assert (tmp_path / "README.md").read_text("utf-8") == (ROOT / "README.md").read_text("utf-8")
    assert (tmp_path / "claims.svg").read_text("utf-8") == (
        ROOT / "docs" / "pictures" / "claims.svg"
    ).read_text("utf-8")
