"""The table of the longest tests names every file that has some, and says of each when it last ran."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from tests.process import ROOT

MADE = runpy.run_path(str(ROOT / "docs" / "make_soak_table.py"))
PAGE = (ROOT / "docs" / "durability.md").read_text("utf-8")


def test_every_file_with_soak_tests_has_a_row() -> None:
    rows = MADE["recorded"](PAGE)
    assert list(rows) == MADE["files"]()
    for when, commit, result in rows.values():
        assert (when, commit, result) == MADE["NEVER"] or re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", when)


def test_a_row_is_replaced_and_the_others_stay() -> None:
    rows = MADE["recorded"](PAGE)
    first = next(iter(rows))
    page = MADE["with_rows"](PAGE, {**rows, first: ("2026-01-02 03:04 UTC", "abc", "1 passed in 9 s")})
    assert MADE["recorded"](page) == {**rows, first: ("2026-01-02 03:04 UTC", "abc", "1 passed in 9 s")}
    assert MADE["with_rows"](page, rows) == PAGE


def test_a_commit_that_git_does_not_report_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match="git reports no commit of "):
        MADE["head_commit"](tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="git cannot be run: "):
        MADE["head_commit"]()


def test_the_commit_is_the_checkout_s() -> None:
    assert re.fullmatch(r"[0-9a-f]{7,40}", MADE["head_commit"]())
