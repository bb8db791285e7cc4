"""The generated tables of the documentation are those that tools/make_tables.py writes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from ketrag_fast.base.config import catalogue
from ketrag_fast.systems.registry import registry
from tests.process import ROOT

DOCS = ROOT / "docs" / "reference"


@pytest.fixture
def make_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import make_tables  # type: ignore[import-not-found]

    yield make_tables
    sys.modules.pop("make_tables", None)


def test_no_table_is_stale(make_tables: ModuleType) -> None:
    for page in make_tables.PAGES:
        text = (DOCS / page).read_text("utf-8")
        assert make_tables.renewed(text) == text, f"{page}: python tools/make_tables.py"


def test_every_table_stands_on_a_page_once_and_whole(make_tables: ModuleType) -> None:
    pages = "".join((DOCS / page).read_text("utf-8") for page in make_tables.PAGES)
    for name in make_tables.TABLES:
        assert pages.count(f"<!-- table: {name} -->") == 1
    for names, column in (
        (catalogue(), "setting"),
        (registry().presets, "preset"),
        (registry().recipes, "mode"),
    ):
        table = getattr(make_tables, f"{column}s_table")()
        lines = [line.split(" | ")[0] for line in table.splitlines()[2:]]
        assert lines == [f"| `{name}`" for name in names]
