"""Builds share vectors or are measured apart; answers are judged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.errors import Cancelled
from ketrag_fast.eval import load_dataset
from ketrag_fast.eval.comparison.configurations import Configuration
from ketrag_fast.eval.comparison.running import Bench, report_of
from ketrag_fast.eval.run import Answerer
from ketrag_fast.kernels.text import sentence_spans
from tests.support.vector_files import write_vectors

TEXTS = {
    "ada": ("Ada Lovelace", "Ada Lovelace wrote a program. She lived in London. She knew Charles Babbage."),
    "babbage": ("Charles Babbage", "Charles Babbage designed an engine. It was never finished in his life."),
    "london": ("London", "London lies on the Thames. It is the capital of England."),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"_id": name, "title": title, "text": text} for name, (title, text) in TEXTS.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    question = {"_id": "q", "text": "Where does London lie?", "metadata": {"answers": ["on the Thames"]}}
    (tmp_path / "queries.jsonl").write_text(json.dumps(question))
    texts = {question["text"]}
    for title, text in TEXTS.values():
        texts |= {title, f"{title}\n{text}", *(text[a:b] for a, b in sentence_spans(text).tolist())}
    ordered = sorted(map(str, texts))
    write_vectors(tmp_path / "v", ordered, np.random.default_rng(1).standard_normal((len(ordered), 8)))
    return tmp_path


def _bench(folder: Path, *, apart: bool, **more: object) -> Bench:
    common = Settings(embedder=f"vectors:{folder / 'v'}", chunk_tokens=500)
    sources = [folder / "corpus.jsonl"]
    where = folder / ("apart" if apart else "shared")
    return Bench(load_dataset(folder), sources, where, common, [60], apart=apart, **more)  # type: ignore[arg-type]


ROWS = [
    Configuration("a", {"knn_k": 2}),
    Configuration("b", {"chunk_tokens": 400}),
    Configuration("c", {"knn_k": 1}),
]


def test_shared_vectors_are_computed_once(folder: Path) -> None:
    apart = report_of("builds", _bench(folder, apart=True), ROWS)
    shared = report_of("systems", _bench(folder, apart=False), ROWS)
    for one, other in zip(apart.outcomes, shared.outcomes, strict=True):
        assert one.error is None, one.error
        assert one.digest == other.digest
        assert [r.to_json()["covered"] for r in one.results] == [r.covered for r in other.results]
        assert one.cost is not None
        assert other.cost is not None
        assert one.cost.measured
        assert one.cost.embedding_tokens > 0
    marks = [o.cost.measured for o in shared.outcomes if o.cost is not None]
    assert sorted(marks) == [False, False, True]  # the first that was built was measured


def test_stopping_stops_all(folder: Path) -> None:
    with pytest.raises(Cancelled):
        report_of("builds", _bench(folder, apart=True, progress=lambda event: False), ROWS)


def test_answers_are_judged_where_somebody_answers(folder: Path) -> None:
    def answers(index: Index) -> Answerer:
        wide = index.stats()["settings"]["chunk_tokens"] == 500
        return lambda question, mode, budget, context: "the Thames" if wide else "no"

    report = report_of("builds", _bench(folder, apart=False, answers=answers), ROWS)
    em = {o.name: o.rows[0].means.get("f1") for o in report.outcomes}
    assert em["a"] is not None
    assert em["a"] > 0.5
    assert em["b"] == 0.0
    assert not any("not run" in note for note in report.notes)
