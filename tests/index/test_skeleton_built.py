"""The modes of a skeleton on an index as a user builds it: real articles, read by rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from tests.process import POLAR

QUESTIONS = [
    "Which ship did Amundsen sail to the Ross Ice Shelf, and who built her?",
    "Who commanded the Terra Nova expedition?",
    "On which island did Shackleton's men wait for rescue?",
]
GRAPH = ["entities", "relationships", "sources"]
TABLES = {"skeleton": GRAPH, "ket": [*GRAPH, "text"]}
BUILD = Settings(llm="heuristic", split_level=1, core_ratio=1.0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    Index.build(POLAR / "articles", folder / ".ketrag", settings=BUILD).close()
    return folder


@pytest.fixture(scope="module")
def index(place: Path) -> Iterator[Index]:
    with Index.open(place / ".ketrag") as opened:
        yield opened


@pytest.fixture(scope="module")
def articles() -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in (POLAR / "articles").iterdir()}


@pytest.mark.parametrize("mode", TABLES)
@pytest.mark.parametrize("budget", [150, 4000])
def test_every_mode_answers_within_its_budget(
    index: Index, articles: dict[str, str], mode: str, budget: int
) -> None:
    for question in QUESTIONS:
        context = index.retrieve(question, mode=mode, budget=budget)
        assert context.mode == mode
        assert 0 < context.tokens == sum(section.tokens for section in context.sections) <= budget
        names = [section.name for section in context.sections]
        assert [name for name in TABLES[mode] if name in names] == names
        # The table of relations grows by whole entities (1.4 step 3), so that a small half may have none.
        few = {"relationships"} if budget < 12000 else set()
        if budget >= 1000:
            assert set(TABLES[mode]) - few <= set(names)
            assert context.passages
        for passage in context.passages:
            said = articles[passage.document][passage.start : passage.end]
            assert said == passage.text != ""
            assert passage.text in context.text
        if mode == "ket":
            graph = sum(section.tokens for section in context.sections if section.name != "text")
            first = int(budget * Settings().value("kg_share") + 0.5 + 1e-9)
            assert graph <= first
            rest = budget - first
            assert budget < 1000 or context.tokens - graph > rest // 2  # and what the skeleton leaves
