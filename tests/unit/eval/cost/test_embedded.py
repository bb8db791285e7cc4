"""Which texts of an index count as embedded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.eval.prices import embedded_bytes
from ketrag_fast.kernels.text import unpack
from ketrag_fast.systems.shared.rows import strings
from tests.process import POLAR

ARTICLE = (POLAR / "articles" / "fram.md").read_text("utf-8")
CASES = {
    "noderag": (
        "noderag_vectors",
        {
            "noderag_graph": ["semantic_unit"],
            "noderag_attributes": ["attribute"],
            "noderag_elements": ["element"],
        },
    ),
    "ket-rag": ("entities", {"skeleton": ["entity_name", "entity_description"]}),
}


@pytest.mark.parametrize("system", CASES)
def test_texts_of_a_system_are_counted_with_the_stage_that_embeds_them(system: str, tmp_path: Path) -> None:
    stage, texts = CASES[system]
    settings = Settings(system=system, llm="heuristic", modes="all")
    with Index.build([Document("fram", ARTICLE)], tmp_path / "ix", settings=settings) as index:
        stages: dict[str, Any] = index.inspect.arrays()
        size = sum(
            len(text.encode())
            for of, names in texts.items()
            for name in names
            for text in unpack(*strings(stages[of], name))
        )
        assert size > 500
        assert embedded_bytes(stages, {"vectors", stage}) - embedded_bytes(stages, {"vectors"}) == size
