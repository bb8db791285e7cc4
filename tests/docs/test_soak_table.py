"""The table of the longest tests names every file that has some, and says of each when it last ran."""

from __future__ import annotations

import re
import runpy

from tests.process import ROOT

MADE = runpy.run_path(str(ROOT / "tools" / "make_soak_table.py"))
PAGE = (ROOT / "docs" / "internals" / "durability.md").read_text("utf-8")


def test_every_file_with_soak_tests_has_a_row() -> None:
    rows = MADE["recorded"](PAGE)
    assert list(rows) == MADE["files"]()
    for when, commit, result in rows.values():
        assert (when, commit, result) == MADE["NEVER"] or re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", when)
