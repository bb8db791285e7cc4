"""The published manifest is damaged: `index` publishes again instead of finding nothing to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import IndexDamaged
from tests.support.faults import flip


@pytest.mark.parametrize("count", [3, 2_100], ids=["whole", "large enough for deltas"])
def test_an_older_generation_with_the_same_documents_is_published_again(tmp_path: Path, count: int) -> None:
    docs, place = tmp_path / "docs.jsonl", tmp_path / "ix"
    rows = (f'{{"_id": "d{n}", "text": "Ship {n} sailed with {n % 97} men."}}\n' for n in range(count))
    docs.write_text("".join(rows), "utf-8")
    settings = Settings(modes="bm25,walk", keep_generations=3)
    Index.build(docs, place, settings=settings).close()
    with Index.build([], place, settings=settings, rebuild=True) as index:
        assert index.generation == 2
    flip(place / "gen-000002" / "manifest.json")
    with pytest.raises(IndexDamaged, match="manifest"):
        Index.open(place)
    with Index.build([], place, settings=settings) as index:
        assert index.report is not None and index.report.changed
        assert index.generation == 3
        assert index.inspect.document_count == count
        assert index.retrieve("Ship", budget=50).passages
