"""Dates of documents and the periods of themes."""

from __future__ import annotations

from typing import Any

import pytest

from ketrag_fast.query.dates import date_in, periods_of


@pytest.mark.parametrize(
    ("metadata", "date"),
    [
        ({"date": "2026-03-01T10:00:00"}, "2026-03-01"),
        ({"date": "20260301"}, "2026-03-01"),
        ({"date": 20260301}, "2026-03-01"),
        ({"date": "2026/03"}, "2026-03"),
        ({"modified": "2025-01-02", "date": "soon"}, "2025-01-02"),
        ({"year": 1893}, "1893"),
        ({"year": True, "date": ["2026"]}, ""),
        ({"date": "12345"}, ""),
        ({"date": "2026-1-5"}, "2026"),
        ({}, ""),
    ],
)
def test_dates_are_read_as_people_write_them(metadata: dict[str, Any], date: str) -> None:
    assert date_in(metadata) == date


def test_periods_are_as_fine_as_twenty_four_allow() -> None:
    days = [f"2026-03-{day:02}" for day in range(1, 25)]
    assert periods_of(days) == days
    assert set(periods_of([*days, "2026-04-01"])) == {"2026-03", "2026-04"}
    months = [f"{year}-{month:02}-01" for year in range(2020, 2026) for month in range(1, 13)]
    assert set(periods_of(months)) == {str(year) for year in range(2020, 2026)}
    assert periods_of(["1893-06", "2026-04-02"]) == ["1893-06", "2026-04"]  # a tie keeps all dates


def test_imprecise_dates_decide_if_they_are_most() -> None:
    assert periods_of(["1893", "1894", "1895-02-03", ""]) == ["1893", "1894", "1895", ""]
    assert periods_of(["1893", "1894-01-01", "1895-02-03"]) == ["", "1894-01-01", "1895-02-03"]
