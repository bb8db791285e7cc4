"""Equal and nearly equal passages are printed once, and neighbours as one passage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.retrieve import for_people
from ketrag_fast.kernels.text import count_tokens
from ketrag_fast.types import Context, Passage

DATA = Path(__file__).parents[1] / "data" / "copies"
QUERY = "how fast are refunds paid now"
MODES = ("walk", "bm25", "text", "fused", "knn", "keyword")


def built(folder: Path, documents: Sequence[Document], **values: object) -> Index:
    return Index.build(list(documents), folder / "index", settings=Settings(**values))


def names(context: Context) -> list[str]:
    return [passage.document for passage in context.passages]


def copies(passage: Passage) -> list[str]:
    return [copy.document for copy in passage.also_in]


def long_text(number: int, more: str = "", count: int = 100) -> str:
    """Return a passage of some words without names."""
    words = np.random.default_rng(number).choice([f"{a}{b}ing" for a in "bcdfgl" for b in "aeiou"], count)
    return f"The pump of the mill {more} is {' '.join(words)}."


PAGE = "\n\n".join(
    [
        "The mill was bought in spring. " + long_text(31, count=30),
        "Its wheel is of oak. " + long_text(32, count=30),
        "The turbine replaced the wheel, and the turbine is of steel. " + long_text(33, count=30),
        "Nobody lives there. " + long_text(34, count=30),
    ]
)


@pytest.mark.parametrize("mode", MODES)
def test_the_newer_text_is_among_the_first_two(tmp_path: Path, mode: str) -> None:
    shutil.copytree(DATA, tmp_path / "copies")
    settings = Settings(modes=",".join(MODES))
    index = Index.build([tmp_path / "copies"], tmp_path / "index", settings=settings)
    context = index.retrieve(QUERY, mode=mode)
    assert sorted(names(context)) == ["refunds-1.md", "refunds-2026.md"]
    first = next(passage for passage in context.passages if passage.document == "refunds-1.md")
    assert copies(first) == ["refunds-2.md", "refunds-3.md"]
    assert context.text.count("14 days") == 1
    if mode == "bm25":
        assert "also in refunds-2.md, refunds-3.md" in for_people(context)


def test_the_json_of_the_core_is_that_of_python(tmp_path: Path) -> None:
    shutil.copytree(DATA, tmp_path / "copies")
    (tmp_path / "copies" / "mill.md").write_text(PAGE)
    index = Index.build([tmp_path / "copies"], tmp_path / "index", settings=Settings(chunk_tokens=100))
    plan = index.inspect.prepared(lambda value: json.dumps(value, separators=(",", ":")).encode())
    assert plan is not None
    for query in (QUERY, "turbine wheel oak"):
        said = index.retrieve(query).to_json()["passages"]
        answer = plan.answer(query)
        assert answer is not None and json.loads(answer)["passages"] == said
        assert any("also_in" in passage or "units" in passage for passage in said)


def test_texts_with_other_numbers_or_names_are_no_copies(tmp_path: Path) -> None:
    texts = [long_text(1, more) for more in ("of 2024", "of 2025", "of Anna", "of Berta", "there", "here")]
    index = built(tmp_path, [Document(f"d{k}", text, "Mill") for k, text in enumerate(texts)])
    context = index.retrieve("pump of the mill", mode="bm25")
    assert sorted(names(context)) == ["d0", "d1", "d2", "d3", "d4"]
    assert [copies(passage) for passage in context.passages if passage.document == "d4"] == [["d5"]]


def test_of_equal_scores_the_newest_or_the_shortest_path_is_printed(tmp_path: Path) -> None:
    text = "Refunds are paid within 14 days."
    dates = [("old/notes.md", "2024-01-01"), ("b/newer/file.md", "2026-03-01"), ("a.md", "2025-01-01")]
    index = built(tmp_path, [Document(name, text, "R", {"date": date}) for name, date in dates])
    context = index.retrieve("refunds", mode="bm25")
    assert names(context) == ["b/newer/file.md"]
    assert copies(context.passages[0]) == ["old/notes.md", "a.md"]
    index = built(
        tmp_path / "plain", [Document(name, text, "R") for name in ("archive/r.md", "zz/r.md", "z/q.md")]
    )
    assert names(index.retrieve("refunds", mode="bm25")) == ["z/q.md"]


def test_filters_and_rights_come_first(tmp_path: Path) -> None:
    text = "Refunds are paid within 14 days."
    documents = [Document(f"d{k}", text, "R", {"team": team}) for k, team in enumerate("aabb")]
    index = built(tmp_path, documents)
    context = index.retrieve("refunds", mode="bm25", filter="team = b")
    assert names(context) == ["d2"] and copies(context.passages[0]) == ["d3"]
    assert copies(index.retrieve("refunds", mode="bm25").passages[0]) == ["d1", "d2", "d3"]


def test_what_copies_leave_is_filled(tmp_path: Path) -> None:
    documents = [Document(f"copy{k:03}", long_text(1), "Mill") for k in range(300)]
    documents += [Document(f"other{k}", long_text(2 + k), "Mill") for k in range(5)]
    index = built(tmp_path, documents, modes="bm25,walk,fused")
    for mode in ("bm25", "walk", "fused"):
        context = index.retrieve("pump of the mill", mode=mode, budget=2000)
        assert len(context.passages) == 6, mode
        assert len({passage.text for passage in context.passages}) == 6
        top = index.retrieve("pump of the mill", mode=mode, top=3)
        assert len(top.passages) == 3
    first = index.retrieve("pump of the mill", mode="bm25").passages
    assert len(next(one for one in first if one.document.startswith("copy")).also_in) == 100


def test_a_licence_in_every_file_does_not_fill_a_context(tmp_path: Path) -> None:
    licence = (
        "Permission is granted, free of charge, to any person obtaining a copy of this software, to deal in "
        "it without restriction, including the rights to use, copy, modify, publish, distribute and sell."
    )
    head = "# Part {}\n\n" + licence * 4 + "\n\n## Purpose\n\n"
    folder = tmp_path / "sources"
    folder.mkdir()
    for k in range(50):
        (folder / f"part{k:02}.md").write_text(head.format(k) + long_text(k) + "\n")
    index = Index.build([folder], tmp_path / "index")
    for mode in ("bm25", "walk"):
        context = index.retrieve("may I sell a copy of this software and the pump", mode=mode, budget=4000)
        holding = [passage for passage in context.passages if "free of charge" in passage.text]
        assert len(holding) == 1 and len(context.passages) > 5, mode


def test_published_systems_print_every_passage(tmp_path: Path) -> None:
    documents = [Document(f"d{k}", "Refunds are paid within 14 days.", "R") for k in range(3)]
    index = built(tmp_path, documents, cut="windows")
    assert names(index.retrieve("refunds", mode="bm25")) == ["d0", "d1", "d2"]


def test_neighbours_are_printed_as_one_passage(tmp_path: Path) -> None:
    documents = [Document("mill", PAGE, "Mill"), Document("other", "A turbine needs water.", "Other")]
    index = built(tmp_path, documents, chunk_tokens=100)
    context = index.retrieve("turbine wheel oak", mode="bm25", budget=1000)
    passage = context.passages[0]
    assert passage.document == "mill" and passage.text == PAGE[passage.start : passage.end]
    assert passage.text.index("oak") < passage.text.index("turbine")
    assert passage.unit in passage.units and list(passage.units) == sorted(passage.units)
    assert names(context).count("mill") == 1
    assert context.text.count("Mill\n") == 1 and passage.text in context.text
    assert passage.to_json()["units"] == list(passage.units)
    assert context.tokens <= 1000 and passage.tokens <= context.tokens


def test_only_neighbours_that_are_found_are_joined(tmp_path: Path) -> None:
    index = built(tmp_path, [Document("mill", PAGE, "Mill")], chunk_tokens=100)
    context = index.retrieve("spring turbine", mode="bm25", top=2, budget=400)
    assert [passage.units for passage in context.passages] == [(), ()]
    assert all(passage.text == PAGE[passage.start : passage.end] for passage in context.passages)


@pytest.mark.parametrize("mode", ["bm25", "walk", "fused"])
def test_the_budget_counts_what_is_printed(tmp_path: Path, mode: str) -> None:
    text = "\n\n".join(f"Turbine number {k}. {long_text(k)}" for k in range(30))
    index = built(tmp_path, [Document("mill", text, "Mill")], chunk_tokens=80, modes="bm25,walk,fused")
    for budget in (100, 300, 700, 1500, 4000, 20_000):
        context = index.retrieve("turbine pump mill", mode=mode, budget=budget)
        assert sum(passage.tokens for passage in context.passages) == context.tokens <= budget
        assert count_tokens([context.text])[0] <= context.tokens
        for passage in context.passages:
            assert passage.text == text[passage.start : passage.end]
            assert passage.text in context.text
    units = [passage.units or (passage.unit,) for passage in context.passages]
    assert max(map(len, units)) == 3
    assert sum(map(len, units)) == len({unit for own in units for unit in own}) > 30


def test_top_counts_passages_before_they_are_joined(tmp_path: Path) -> None:
    text = "\n\n".join(f"Turbine number {k}. {long_text(k)}" for k in range(30))
    index = built(tmp_path, [Document("mill", text, "Mill")], chunk_tokens=80)
    printed: dict[int, set[int]] = {0: set()}
    for top in (1, 2, 5, 20, 40):
        context = index.retrieve("turbine pump mill", mode="bm25", top=top, budget=20_000)
        units = [unit for one in context.passages for unit in one.units or (one.unit,)]
        assert len(units) == top
        assert printed[max(printed)] < set(units)
        printed[top] = set(units)


def test_a_header_is_printed_once_and_lines_are_those_of_all(tmp_path: Path) -> None:
    source = tmp_path / "sources" / "table.md"
    source.parent.mkdir()
    shutil.copy(DATA.parent / "passages" / "table.md", source)
    index = Index.build([source.parent], tmp_path / "index")
    context = index.retrieve("what is the quantity of item-63", budget=3000)
    assert max(len(passage.units) for passage in context.passages) == 3
    assert context.text.count("| Name |") == len(context.passages) > 1
    document = source.read_text()
    for passage in context.passages:
        assert passage.text == document[passage.start : passage.end]
        first, last = passage.location["lines"]
        assert document.split("\n")[first - 1 : last] == passage.text.split("\n")
