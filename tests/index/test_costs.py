"""What the form of a text may cost when it is indexed: time and memory in proportion to its size."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.kernels.text import corpus
from ketrag_fast.systems.spec import documents
from ketrag_fast.types.locations import Locator
from tests.support.effort import grows_linearly, processor_seconds

SETTINGS = Settings(threads=1)


def build(folder: Path, name: str, text: str) -> Index:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return Index.build(folder, folder / "index", settings=SETTINGS)


def test_a_long_heading_over_many_paragraphs(tmp_path: Path) -> None:
    """A heading of 500 kB over 80,000 paragraphs took more than 150 s and 2 GB."""
    text = "# " + "word " * 20_000 + "\n\n" + "para text here.\n\n" * 20_000
    with processor_seconds(20), build(tmp_path / "a", "a.md", text) as index:
        (found,) = index.retrieve("para text", mode="bm25", budget=200).passages[:1]
        assert len(found.title) == 300


def test_a_long_opening_fence(tmp_path: Path) -> None:
    """A fence of a megabyte was repeated after each passage: 5.7 GB."""
    text = "`" * 300_000 + "\nfirst line of the code\n" + "x = 1\n" * 20_000
    with processor_seconds(20), build(tmp_path / "a", "a.md", text) as index:
        assert index.retrieve("first line of the code", mode="bm25").passages
    size = sum(path.stat().st_size for path in (tmp_path / "a" / "index").rglob("*") if path.is_file())
    assert size < 8 * len(text)


@pytest.mark.parametrize("mark", "-=*_#")
def test_runs_of_one_mark(mark: str) -> None:
    """Their tokens are long, so a passage has hundreds of pieces, and each count of one was done again."""
    begin = time.process_time()
    assert len(corpus([""], [mark * 400_000]).unit_chunk) > 10
    assert time.process_time() - begin < 3


def test_many_sections() -> None:
    """130,000 one-line functions took more than 40 s: each section compared itself with every function."""

    def located(count: int) -> tuple[list[Locator], list[documents.SectionSpan]]:
        marks = [Locator(9 * n, 9 * n + 8, "symbol", [f"f{n}"]) for n in range(count)]
        parts = [documents.SectionSpan(90 * n, 90 * n + 90, "") for n in range(count // 10)]
        return [Locator(0, 9 * count, "lines", 1), *marks], parts

    inputs = {size: located(size) for size in (20_000, 40_000)}
    grows_linearly(lambda size: documents._by_section(*inputs[size]), 20_000)
    marks, parts = located(200)
    for part, own in zip(parts, documents._by_section(marks, parts), strict=True):
        expected = [one for one in marks if one.start < part.end and one.end > part.start]
        assert [one.kind for one in own] == [one.kind for one in expected]
        assert [one.value for one in own[1:]] == [one.value for one in expected[1:]]


def test_locators_that_cross_sections() -> None:
    """Each section has the locators that overlap it, in their order, whatever the order of their starts."""
    random = np.random.default_rng(5)
    edges = sorted({0, 300, *random.integers(1, 300, 12).tolist()})
    parts = [documents.SectionSpan(a, b, "") for a, b in pairwise(edges)]
    spans = random.integers(0, 301, (80, 2))
    marks = [Locator(int(min(pair)), int(max(pair)), "page", number) for number, pair in enumerate(spans)]
    for part, own in zip(parts, documents._by_section(marks, parts), strict=True):
        assert own == [one for one in marks if one.start < part.end and one.end > part.start]
