"""Passages of tables, lists and code: whole rows and items, with the context of their block."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ketrag_fast import Index
from ketrag_fast.query import modes
from ketrag_fast.types import Context
from tests.support.parts import part

DATA = Path(__file__).parents[1] / "data" / "passages"
HEADER = "| Name | Quantity | Colour | Price EUR |\n|---|---|---|---|\n"


@pytest.fixture(autouse=True)
def each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print every passage by itself; test_copies.py joins neighbours."""
    monkeypatch.setattr(modes, "prints_once", lambda settings: False)


def indexed(folder: Path, name: str) -> Index:
    sources = folder / "sources"
    sources.mkdir()
    shutil.copy(DATA / name, sources / name)
    return Index.build([sources], folder / "index")


def printed(context: Context) -> list[str]:
    return [row.split("\n", 1)[1] for row in ("\n" + context.text).split("\n[")[1:]]


def test_every_passage_of_a_table_has_its_header(tmp_path: Path) -> None:
    index = indexed(tmp_path, "table.md")
    context = index.retrieve("what is the quantity of item-63", budget=3000)
    assert "| item-63 | 41 | red | 94.5 |" in context.passages[0].text
    assert len(context.passages) > 3
    document = (DATA / "table.md").read_text()
    for passage, row in zip(context.passages, printed(context), strict=True):
        assert HEADER in row and row.count("| Name |") == 1
        assert passage.text == document[passage.start : passage.end]
        assert passage.text.startswith(("|", "Current")) and passage.text.endswith(" |")
        assert passage.context in ("", HEADER)
        first, last = passage.location["lines"]
        assert document.split("\n")[first - 1 : last] == passage.text.split("\n")
    assert context.tokens <= 3000
    by_column = index.retrieve("colour price", mode="bm25", budget=3000)
    assert len(by_column.passages) == len(context.passages)


def test_rows_of_a_table_in_a_pdf_are_whole(tmp_path: Path) -> None:
    part("pypdfium2", "documents")
    index = indexed(tmp_path, "stock.pdf")
    context = index.retrieve("what is the quantity of item-63", budget=3000)
    assert any(line.split("\t")[:2] == ["item-63", "41"] for line in context.passages[0].text.split("\n"))
    for row in printed(context):
        lines = [line for line in row.split("\n") if line.startswith("item-")]
        assert lines and all(len(line.split("\t")) == 3 for line in lines)
        assert "Quantity" in row


def test_a_numbered_name_is_found_as_a_whole(tmp_path: Path) -> None:
    """Another row has the price 63.0 and every row an item: `item-63` is one name."""
    rows = [f"| item-{n} | {n * 7 % 46} | {n * 1.5:.1f} |" for n in range(1, 81)]
    (tmp_path / "stock.md").write_text(
        "# Stock\n\n| Name | Quantity | Price |\n|---|---|---|\n" + "\n".join(rows)
    )
    (tmp_path / "other.md").write_text(
        "# Orders\n\n" + "\n".join(f"- item {n}: 63 pieces" for n in range(40))
    )
    with Index.build([tmp_path / "stock.md", tmp_path / "other.md"], tmp_path / "ix") as index:
        for mode in ("bm25", "walk"):
            first = index.retrieve("what is the quantity of item-63", mode=mode, budget=300).passages[0]
            assert "| item-63 |" in first.text


def test_a_marker_stays_with_its_item(tmp_path: Path) -> None:
    index = indexed(tmp_path, "steps.md")
    context = index.retrieve("turn valve step", mode="bm25", budget=20_000)
    assert len(context.passages) > 3
    for passage in context.passages:
        for line in passage.text.split("\n"):
            assert line[0].isdigit() and ". Step number" in line


def test_the_lead_in_of_a_list_is_repeated(tmp_path: Path) -> None:
    items = "".join(f"{n}. Turn valve {n} and wait until the gauge shows {n} bar.\n" for n in range(1, 60))
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "a.md").write_text(
        f"# Valves\n\nA few words come first here. Run these steps:\n\n{items}"
    )
    index = Index.build([tmp_path / "sources"], tmp_path / "index")
    context = index.retrieve("valve", mode="bm25", budget=20_000)
    assert len(context.passages) > 3
    for passage, row in zip(context.passages, printed(context), strict=True):
        assert "Run these steps:\n" in row
        assert passage.context == ("" if passage.text.startswith("A few") else "Run these steps:\n")


def test_items_of_an_inner_list_show_the_item_around_them(tmp_path: Path) -> None:
    items = "".join(f"  - Turn valve {n} and wait until the gauge shows {n} bar.\n" for n in range(1, 60))
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "a.txt").write_text(f"- Before the start\n{items}- After the end\n")
    index = Index.build([tmp_path / "sources"], tmp_path / "index")
    context = index.retrieve("valve", mode="bm25", budget=20_000)
    assert len(context.passages) > 3
    for passage in context.passages:
        assert passage.context == ("" if "Before" in passage.text else "- Before the start\n")


def test_code_keeps_its_fence_and_is_cut_between_definitions(tmp_path: Path) -> None:
    index = indexed(tmp_path, "api.md")
    context = index.retrieve("Doc of f17 returns", mode="bm25", budget=20_000)
    code = [(p, row) for p, row in zip(context.passages, printed(context), strict=True) if "def f" in row]
    assert len(code) > 3
    for passage, row in code:
        assert row.count("```python\n") == 1 and row.count("```") == 2
        assert passage.text.strip().startswith(("def f", "```python", "Check"))
        assert passage.text.rstrip("`\n").endswith(("page.", *(f"return x + {n}" for n in range(30))))


def test_a_short_document_is_one_passage(tmp_path: Path) -> None:
    index = indexed(tmp_path, "deploy.md")
    (passage,) = index.retrieve("rotate the signing key", mode="bm25").passages
    assert passage.text.startswith("Run these commands:") and passage.text.endswith("dashboard.")
    assert passage.location["lines"] == [3, 14]


def test_a_section_of_a_charter_is_whole(tmp_path: Path) -> None:
    index = indexed(tmp_path, "charter.md")
    first = index.retrieve("success criteria failover drill", mode="bm25").passages[0]
    assert "SC-1" in first.text and "SC-3" in first.text


@pytest.mark.parametrize("cells", [1, 3])
def test_a_header_with_long_cells_is_cut(tmp_path: Path, cells: int) -> None:
    (tmp_path / "sources").mkdir()
    header = " | ".join(["head " * 20_000] * cells)
    rows = f"| {' | '.join(['a cell'] * cells)} |\n" * 300
    (tmp_path / "sources" / "a.md").write_text(f"| {header} |\n|{'---|' * cells}\n{rows}")
    index = Index.build([tmp_path / "sources"], tmp_path / "index")
    context = index.retrieve("cell", mode="bm25", budget=100_000)
    assert 0 < max(len(passage.context) for passage in context.passages) <= 210 * cells


def test_changes_give_what_a_whole_build_gives(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    for name in ("table.md", "steps.md", "api.md"):
        shutil.copy(DATA / name, sources / name)
    index = Index.build([sources], tmp_path / "index")
    shutil.copy(DATA / "charter.md", sources / "charter.md")
    (sources / "steps.md").unlink()
    (sources / "table.md").write_text((DATA / "table.md").read_text().replace("item-7", "thing-7"))
    index = Index.build([sources], tmp_path / "index")
    whole = Index.build([sources], tmp_path / "whole")
    assert index.digest == whole.digest


def test_a_column_with_a_long_name_is_cut(tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "a.csv").write_text(f"{'name ' * 50_000},size\n" + "cup,5\n" * 20)
    index = Index.build([tmp_path / "sources"], tmp_path / "index")
    for passage in index.retrieve("cup", mode="bm25").passages:
        assert len(passage.text) < 250 and passage.text.endswith("size: 5")
