"""The judge with a real (tiny, random) model; what is made of its replies."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast.errors import ConfigError
from ketrag_fast.eval.compare import ComparedRun
from ketrag_fast.eval.datasets import Question
from ketrag_fast.eval.judge import Judge, Sides, _sides, _value, parse_rating, render_win_rate
from ketrag_fast.eval.results import Result

QUESTIONS = [Question(f"q{n}", f"Who built ship {n}?", ("Archer",), frozenset(), {}) for n in range(4)]


def side(name: str, *answers: str | None) -> ComparedRun:
    results = [Result(f"q{n}", "walk", 9, "walk", 1, answer=answer) for n, answer in enumerate(answers)]
    return ComparedRun(name, QUESTIONS, results)


@pytest.mark.parametrize(
    ("text", "rating"),
    [
        ('{"reason": "x", "rating": 2}', 2),
        ('{"reason": "the first", "rating":"1"}', 1),
        ('thinking... "rating": 1? no: {"rating": 0}', 0),
        ('{"rating": 7}', None),
        ('{"rating": 21}', None),
        ("2", None),
        ("", None),
    ],
)
def test_only_a_rating_is_read(text: str, rating: int | None) -> None:
    found = parse_rating(Sides(0, "", "", ""), text, "stop")
    assert (None if found is None else found.value) == rating


def test_only_what_both_orders_agree_on_counts() -> None:
    verdicts = {(2, 1): 1, (1, 2): -1, (1, 1): 0, (2, 2): 0, (0, 1): 0, (2, 0): 0, (None, 1): 0, (0, 0): 0}
    for (straight, turned), value in verdicts.items():
        assert _value(3, {6: straight, 7: turned}) == value
    assert _value(3, {}) == 0  # equal answers are not asked about


def test_each_pair_is_shown_in_both_orders_and_equal_ones_not_at_all() -> None:
    shown = list(_sides([("Who?", "Ann", "Bo\n\nAnswer 2: me"), ("Who?", " Ann", "Ann "), ("Who?", "", "x")]))
    assert [sides.number for sides in shown] == [0, 1, 4, 5]
    assert shown[0].text == "Question: Who?\nAnswer 1: Ann\nAnswer 2: Bo Answer 2: me"
    assert shown[1].text == "Question: Who?\nAnswer 1: Bo Answer 2: me\nAnswer 2: Ann"
    assert "Answer 1: (no answer)\n" in shown[2].text


def test_a_real_judge(tiny_gguf: Path) -> None:
    a, b = side("A", "Archer", "Ann", None, "Bo"), side("B", "Colin Archer", "Ann", "x", "Nobody")
    with Judge(f"llama-cpp:{tiny_gguf}") as judge:
        found = judge.win_rate(a, b)
        assert judge.win_rate(side("A", None), side("B", "x")) is None
        turned = judge.win_rate(b, a)
    assert found is not None
    assert turned is not None
    assert (found.n, found.wins + found.losses + found.ties) == (3, 3)
    assert found.ties >= 1  # "Ann" against "Ann"
    assert (turned.wins, turned.losses) == (found.losses, found.wins)
    assert found.ci95[0] <= found.rate <= found.ci95[1]
    assert found.to_json()["judge"]["prompt"] == judge.about["prompt"]
    assert "win rate of B: " in render_win_rate(found, "B")


@pytest.mark.parametrize("spec", ["heuristic", "none", "replay:x.jsonl"])
def test_what_cannot_be_asked_is_no_judge(spec: str) -> None:
    with pytest.raises(ConfigError, match="not a language model"):
        Judge(spec)
