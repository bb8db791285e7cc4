from __future__ import annotations

from dataclasses import replace

from ketrag_fast.eval import ResultRow, render

FULL = ResultRow(
    "walk",
    12000,
    100,
    {"coverage": 0.88, "recall": 0.805, "all_gold": 0.5},
    tokens_mean=11_873.4,
    ms_p50=0.523,
    ms_p95=1.1,
    ci95={"coverage": (0.81, 0.94)},
    counted={"coverage": 91},
    yes_no={"n": 9, "coverage": 1.0},
)
BARE = ResultRow("bm25", 300, 100, {"coverage": 0.05}, counted={"coverage": 91})


def words(line: str) -> str:
    return " ".join(line.split())


def test_columns_are_aligned_and_shares_are_percent() -> None:
    lines = render([FULL, BARE]).splitlines()
    assert words(lines[0]) == "mode budget n coverage 95% interval recall all gold MRR tokens ms p50 ms p95"
    assert words(lines[2]) == "walk 12000 100 88.0 81.0 to 94.0 80.5 50.0 - 11873 0.52 1.10"
    assert words(lines[3]) == "bm25 300 100 5.0 - - - - - - -"
    assert (
        lines[0].index("coverage") + len("coverage")
        == lines[2].index("88.0") + 4
        == lines[3].index("5.0") + 3
    )
    assert len(lines[0]) == len(lines[1]) == len(lines[2]) == len(lines[3])


def test_notes_say_what_is_left_out_once() -> None:
    text = render([FULL, FULL])
    assert text.count("questions answered by yes or no, left out of coverage: 9") == 1
    assert "without a gold answer" not in text
    assert "questions without a gold answer, left out of coverage: 9" in render(
        [ResultRow("walk", 1, 100, {"coverage": 0.5}, counted={"coverage": 91})]
    )


def test_a_row_that_was_not_run_says_why_below() -> None:
    text = render(
        [
            ResultRow("ket", 4000, 0, reason="needs a language model"),
            ResultRow("ket", 2000, 0, reason="needs a language model"),
        ]
    )
    assert "not run" in text.splitlines()[2]
    assert text.count("ket: not run: needs a language model") == 1


def test_scores_of_answers_have_columns_only_where_there_are_answers() -> None:
    lines = render([replace(FULL, means={**FULL.means, "em": 0.25, "f1": 0.5}), FULL]).splitlines()
    assert words(lines[0]).endswith("ms p95 EM F1")
    assert words(lines[2]).endswith("1.10 25.0 50.0")
    assert words(lines[3]).endswith("1.10 - -")


def test_what_was_not_run_is_named_and_has_no_number() -> None:
    text = render(
        [FULL], {"em": "there are no answers", "f1": "there are no answers", "win_rate": "no model"}
    )
    assert text.splitlines()[-2:] == ["em, f1: there are no answers", "win_rate: no model"]
    assert "EM" not in text
