from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ketrag_fast.errors import DocumentError, InputError, ReadOnly
from ketrag_fast.eval import (
    ComparedRun,
    collect,
    compare,
    describe,
    load,
    read_answers,
    render_comparison,
    save,
)
from ketrag_fast.eval.results import Result
from tests.unit.eval.test_eval_run import ASKED, RANKING, FakeIndex


def saved(tmp_path: Path, name: str = "run", **options: object) -> Path:
    found = collect(FakeIndex(RANKING), ASKED, ["walk", "text", "keyword"], [1, 3])
    folder = tmp_path / name
    save(folder, describe(ASKED, {"digest": "d1", "path": "/secret"}, **options), ASKED, found)
    return folder


def test_a_run_comes_back_as_it_was(tmp_path: Path) -> None:
    found = collect(FakeIndex(RANKING), ASKED, ["walk", "text", "keyword"], [1, 3])
    run = load(saved(tmp_path))
    assert run.results == found.results
    assert [(q.id, q.text, q.answers, q.gold) for q in run.questions] == [
        (q.id, q.text, q.answers, q.gold) for q in ASKED.questions
    ]
    assert run.pairs == [("walk", 1), ("walk", 3), ("text", 1), ("text", 3)]
    assert run.about["skipped"] == {"keyword": "the index has no keyword vectors"}
    assert [row["status"] for row in run.about["rows"]] == ["ok"] * 4 + ["not run"] * 2


def test_a_run_tells_what_it_depended_on(tmp_path: Path) -> None:
    about = load(saved(tmp_path, substring=True)).about
    assert {"processor", "cores", "system"} == about["machine"].keys()
    assert {"python", "numpy"} <= about["versions"].keys()
    assert (about["seed"], about["substring"]) == (42, True)
    assert about["dataset"] == {"name": "set", "questions": 3, "fingerprint": ASKED.fingerprint}
    assert about["index"] == {"digest": "d1"}  # and no path of this machine
    changed = replace(ASKED, questions=ASKED.questions[:2])
    assert changed.fingerprint != ASKED.fingerprint


def test_trec_files_name_every_document_by_rank(tmp_path: Path) -> None:
    folder = saved(tmp_path) / "trec"
    assert sorted(path.name for path in folder.iterdir()) == [
        "qrels.trec",
        "text-1.trec",
        "text-3.trec",
        "walk-1.trec",
        "walk-3.trec",
    ]
    assert (folder / "walk-3.trec").read_text().splitlines() == [
        "q1 Q0 a 1 1.000000 ketrag-walk-3",
        "q1 Q0 b 2 0.500000 ketrag-walk-3",  # b is printed twice and ranked once
        "q2 Q0 c 1 1.000000 ketrag-walk-3",
        "q2 Q0 d 2 0.500000 ketrag-walk-3",
        "q3 Q0 d 1 1.000000 ketrag-walk-3",
    ]
    assert (folder / "qrels.trec").read_text().splitlines() == [
        "q1 0 a 1",
        "q1 0 b 1",
        "q2 0 c 1",
        "q2 0 z 1",
    ]


def test_ids_with_spaces_stay_one_column() -> None:
    from ketrag_fast.eval.saved import run_lines

    result = Result("q 1", "walk", 1, "walk", 5, found=("a b\tc%",))
    assert list(run_lines([result], "t")) == ["q%201 Q0 a%20b%09c%25 1 1.000000 t"]


def test_an_older_run_is_replaced(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    save(folder, describe(ASKED, {}), ASKED, collect(FakeIndex(RANKING), ASKED, ["bm25"], [2]))
    assert load(folder).pairs == [("bm25", 2)]
    assert sorted(path.name for path in (folder / "trec").iterdir()) == ["bm25-2.trec", "qrels.trec"]


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("run.json", "{", "run.json"),
        ("run.json", '{"schema": "x"}', "does not have the schema"),
        ("results.jsonl", '{"question": "q"}', "results.jsonl:1: not a valid result"),
        ("questions.jsonl", '{"_id": "q"}', "questions.jsonl:1: not a question"),
    ],
)
def test_a_broken_run_is_named(tmp_path: Path, file: str, text: str, said: str) -> None:
    folder = saved(tmp_path)
    (folder / file).write_text(text, encoding="utf-8")
    with pytest.raises(DocumentError, match=said):
        load(folder)


def test_a_result_with_a_field_of_another_type_is_refused() -> None:
    good = Result("q", "walk", 1, "walk", 5, recall=0.5, found=("a",)).to_json()
    assert Result.from_json(good).recall == 0.5
    for name, value in {"recall": "x", "rank": "x", "budget": -1, "found": 3, "question": 3}.items():
        with pytest.raises(InputError, match="not a valid result"):
            Result.from_json({**good, name: value})


def test_no_run_and_no_room_for_one(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="not a saved evaluation run"):
        load(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ReadOnly, match="cannot be written"):
        save(tmp_path / "file", {}, ASKED, collect(FakeIndex(RANKING), ASKED, ["walk"], [1]))


def sides() -> tuple[ComparedRun, ComparedRun]:
    found = collect(FakeIndex(RANKING), ASKED, ["walk"], [1, 3])
    return (
        ComparedRun("small", ASKED.questions, found.of("walk", 1)),
        ComparedRun("large", ASKED.questions, found.of("walk", 3)),
    )


def test_a_comparison_names_the_questions_that_changed_sides() -> None:
    comparison = compare(*sides())
    assert comparison.differences["coverage"].difference == 0.5
    assert comparison.differences["coverage"].n == 2  # the question answered by yes is left out
    assert "em" not in comparison.differences
    assert [(c.question.id, c.metric, c.gained, c.got) for c in comparison.changes] == [
        ("q1", "coverage", True, ("b",)),
        ("q1", "all_gold", True, ("b",)),
    ]
    text = render_comparison(comparison)
    assert "coverage: only with large (1):\n  q1: q1\n    gold answer: art\n" in text
    assert "supporting passages only in B: b" in text
    assert json.loads(json.dumps(comparison.to_json()))["changes"][0]["gained_by"] == "b"


def test_different_questions_are_not_compared() -> None:
    small, large = sides()
    fewer = replace(large, questions=large.questions[:2], results=large.results[:2])
    with pytest.raises(InputError, match="different questions: 1 only in small, 0 only in large"):
        compare(small, fewer)
    other = replace(large, questions=(replace(large.questions[0], answers=("x",)), *large.questions[1:]))
    with pytest.raises(InputError, match="1 with another text, answer or supporting passage"):
        compare(small, other)
    with pytest.raises(InputError, match="not of the same"):
        compare(small, replace(large, results=large.results[:2]))


def answered(tmp_path: Path, *rows: dict[str, object]) -> Path:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_answers_of_a_file_are_judged(tmp_path: Path) -> None:
    path = answered(
        tmp_path,
        {"_id": "q1", "answer": "The Art"},
        {"_id": "q1", "answer": "", "budget": 3},
        {"_id": "q2", "answer": "Oslo town", "mode": "walk"},
        {"_id": "q9", "answer": "x"},
    )
    answers = read_answers(path, ASKED)
    assert len(answers.warnings) == 2  # q9 is not asked, q3 is not answered
    small, large = collect(FakeIndex(RANKING), ASKED, ["walk"], [1, 3], answer=answers).rows()
    assert (small.means["em"], small.counted["em"]) == (0.5, 2)
    assert small.means["f1"] == pytest.approx((1 + 2 / 3) / 2)
    assert large.means["em"] == 0.0  # the empty answer is an answer, and a wrong one
    bare = collect(FakeIndex(RANKING), ASKED, ["walk"], [1]).rows()[0]
    assert not bare.means.keys() & {"em", "f1", "f1_plain"}
    text = collect(FakeIndex(RANKING), ASKED, ["text"], [1], answer=answers).rows()[0]
    assert text.counted["em"] == 1  # the answer to q2 is the walk's alone


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"_id": "q1"}, "answer must be a string"),
        ({"answer": "x"}, "no _id"),
        ({"_id": "q1", "answer": "x", "mode": 3}, "mode must be a string"),
        ({"_id": "q1", "answer": "x", "budget": "3"}, "budget must be a whole number"),
        ({"_id": "q0", "answer": "again"}, "answered before, at"),
    ],
)
def test_a_broken_answer_is_named(tmp_path: Path, row: dict[str, object], said: str) -> None:
    path = answered(tmp_path, {"_id": "q0", "answer": "x"}, row)
    with pytest.raises(DocumentError, match=r"answers\.jsonl:2: ") as caught:
        read_answers(path, ASKED)
    assert said in str(caught.value)


def test_hits_and_mrr_are_of_the_documents_in_the_context() -> None:
    row = collect(FakeIndex({"q1": [("x", ""), ("x", ""), ("b", "")]}), ASKED, ["walk"], [9]).rows()[0]
    assert row.means["mrr"] == 0.25  # q1 finds b as its second document, q2 nothing, q3 has no gold passage
    assert row.as_dict()["hit"] == {"1": 0.0, "5": 0.5, "10": 0.5}
