"""benches/BENCHMARKS.md keeps what is not measured anew, and says of every target whether it is met."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BENCHES = Path(__file__).parents[2] / "benches"
PAGE = BENCHES / "BENCHMARKS.md"


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(BENCHES))
    yield
    for name in ("all", "common", "page", "targets"):
        sys.modules.pop(name, None)


def test_the_page_has_the_targets_of_today() -> None:
    from all import PREFACE  # type: ignore[import-not-found]
    from page import page, sections_of  # type: ignore[import-not-found]

    text = PAGE.read_text("utf-8")
    assert page(PREFACE, sections_of(text)) == text
    assert text.count("| target |") > 20
    assert all("Machine: " in section and "202" in section for section in sections_of(text).values())


def test_sections_that_are_not_made_anew_stay() -> None:
    from page import merged, page, sections_of

    old = sections_of(PAGE.read_text("utf-8"))
    first, second, *rest = old
    new = {second: "## Anew\n\n| stage | seconds |\n|---|---|\n| **all** | **4** |"}
    found = merged(old, new, [second, "python benches/unknown.py"])
    assert list(found) == [second, first, *rest]
    assert all(found[name] == old[name] for name in (first, *rest))
    text = page("# Benchmarks", {"python benches/build.py": "2wiki-101\n\n" + new[second]})
    assert "| **all** | **4** | <= 3: **missed** by 33 % |" in text
    assert list(sections_of(text)) == ["python benches/build.py"]


@pytest.mark.parametrize(
    ("script", "about", "row", "column", "value", "said"),
    [
        ("retrieval.py", "", "walk", "search, median ms", "1.4", "<= 1.5"),
        ("retrieval.py", "", "walk", "search, median ms", "1.80", "<= 1.5: **missed** by 20 %"),
        ("retrieval.py", "", "bm25", "search, median ms", "9", ""),
        ("coverage.py", "Quality without a model musique-train100", "walk", "coverage at 9", "87.6", ">= 88"),
        ("encoder.py", "avx512 in f32", "passages", "x theirs, 1 core", "2", ">= 2.5: **missed** by 20 %"),
        ("encoder.py", "avx2 in f32", "passages", "x theirs, 1 core", "2.7", ">= 1.7"),
        ("rebuild.py", "", "knn_k 2 -> 4", "texts embedded", "3", "<= 0: **missed** by 3"),
    ],
)
def test_a_target_says_by_how_much_it_is_missed(
    script: str, about: str, row: str, column: str, value: str, said: str
) -> None:
    from targets import with_targets  # type: ignore[import-not-found]

    columns, rows = with_targets(script, about, ["", column], [[row, value]])
    assert rows == [[row, value, said] if said else [row, value]]
    assert with_targets(script, about, columns, rows) == (columns, rows)  # an old column is made anew
