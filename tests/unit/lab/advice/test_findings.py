"""What is recommended, from trials on real indexes and from made-up results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import InputError
from ketrag_fast.lab.advice.findings import CANNOT_TELL, ENOUGH, Advice, advise
from ketrag_fast.lab.advice.probes import Place, Probe
from ketrag_fast.lab.advice.report import page, render
from ketrag_fast.lab.advice.trial import BUDGETS, Trial, run_trial
from tests.unit.lab.advice.test_probes import library


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("advice") / "index"
    Index.build(library(60), path, settings=Settings(threads=1)).close()
    return path


@pytest.fixture(scope="module")
def trial(index: Path) -> Trial:
    return run_trial(index, count=40)


@pytest.fixture(scope="module")
def advice(trial: Trial) -> Advice:
    return advise(trial)


def value(advice: Advice, start: str) -> str:
    return next(finding.answer for finding in advice.findings if finding.question.startswith(start))


def test_documents_that_lead_to_each_other_are_for_the_walk(trial: Trial, advice: Advice) -> None:
    assert trial.modes == ("bm25", "walk")
    assert sum(trial.found["linked"]["walk"]) > sum(trial.found["linked"]["bm25"])
    assert value(advice, "Do questions need hops") == "some may"
    assert value(advice, "Which mode") == "walk"
    assert value(advice, "Does an embedding model") == CANNOT_TELL


def test_the_index_is_not_changed(index: Path) -> None:
    with Index.open(index) as opened:
        before = opened.digest, opened.generation
    run_trial(index, count=5)
    with Index.open(index) as opened:
        assert (opened.digest, opened.generation) == before


def test_the_same_index_gives_the_same_advice(index: Path, advice: Advice) -> None:
    assert advise(run_trial(index, count=40)).to_json() == advice.to_json()


def test_other_sizes_of_chunks_are_tried_where_documents_are_longer(tmp_path: Path) -> None:
    texts = [document.text for document in library()]
    long = [Document(f"part-{n}", " ".join(texts[n : n + 12])) for n in range(0, len(texts), 12)]
    Index.build(long, tmp_path / "index", settings=Settings(chunk_tokens=64)).close()
    found = run_trial(tmp_path / "index", count=40)
    assert [unit.tokens for unit in found.units] == [32, 128]
    assert all(len(unit.found) == len(found.probes.of("direct")) for unit in found.units)


def test_an_index_without_questions(tmp_path: Path) -> None:
    Index.build([Document("a", "Too short.")], tmp_path / "index").close()
    with pytest.raises(InputError, match="no question can be made"):
        run_trial(tmp_path / "index")


def altered(trial: Trial, direct: tuple[float, float], linked: tuple[float, float], n: int = 200) -> Advice:
    """Advice for shares of (bm25, walk) of `n` direct and linked questions."""

    def values(share: float) -> tuple[float, ...]:
        return tuple(float(i < share * n) for i in range(n))

    probes = replace(trial.probes, probes=tuple(Probe("direct", "?", Place("a", 0)) for _ in range(n)))
    found = {
        "direct": {"bm25": values(direct[0]), "walk": values(direct[1])},
        "linked": {"bm25": values(linked[0]), "walk": values(linked[1])},
    }
    held = {mode: dict.fromkeys(BUDGETS, values(0.5)) for mode in ("bm25", "walk")}
    return advise(replace(trial, probes=probes, found=found, held=held))  # type: ignore[arg-type]


def test_a_walk_that_loses_direct_questions_is_not_recommended(trial: Trial) -> None:
    assert value(altered(trial, (0.8, 0.7), (0.3, 0.8)), "Which mode") == "bm25"
    assert value(altered(trial, (0.7, 0.8), (0.3, 0.3)), "Which mode") == "walk"
    assert value(altered(trial, (0.7, 0.7), (0.3, 0.3)), "Which mode") == CANNOT_TELL
    assert value(altered(trial, (0.7, 0.7), (0.3, 0.5)), "Which mode") == "walk"


def test_few_questions_conclude_nothing(trial: Trial) -> None:
    few = altered(trial, (0.2, 0.9), (0.1, 0.9), n=ENOUGH - 1)
    assert [value(few, start) for start in ("Do", "Which mode", "Which budget")] == [CANNOT_TELL] * 3


def test_the_smallest_budget_that_is_enough(trial: Trial) -> None:
    assert value(altered(trial, (0.5, 0.5), (0.5, 0.5)), "Which budget") == f"{BUDGETS[0]:,} tokens"


def test_the_page_has_plots_and_no_scripts(trial: Trial, advice: Advice) -> None:
    text = page(advise(replace(trial, model="<script>alert(1)</script>")))
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert text.count("<svg") == 2
    assert "direct" in render(advice)
