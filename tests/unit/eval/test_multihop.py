"""Files laid out as their authors publish them (contents of our own)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast.errors import DocumentError
from ketrag_fast.eval.datasets import load_dataset


def paragraph(idx: int, title: str, text: str, supporting: bool) -> dict[str, Any]:
    return {"idx": idx, "title": title, "paragraph_text": text, "is_supporting": supporting}


MUSIQUE = [
    {
        "id": "2hop__1_2",
        "paragraphs": [
            paragraph(0, "Fram", "The Fram was built by Colin Archer.", True),
            paragraph(1, "Gjøa", "A sloop of 1872.", False),
            paragraph(2, "Colin Archer", "Archer was born in Larvik.", True),
        ],
        "question": "Where was the builder of the Fram born?",
        "question_decomposition": [
            {"id": 1, "question": "Fram >> builder", "answer": "Colin Archer", "paragraph_support_idx": 0},
            {"id": 2, "question": "Where was #1 born?", "answer": "Larvik", "paragraph_support_idx": 2},
        ],
        "answer": "Larvik",
        "answer_aliases": ["Laurvik", ""],
        "answerable": True,
    },
    {
        "id": "2hop__3_4",
        "paragraphs": [
            paragraph(0, "Fram", "The Fram was built by Colin Archer.", False),
            paragraph(1, "Fram", "A museum in Oslo.", False),
        ],
        "question": "Who led the ship in the museum?",
        "question_decomposition": [],
        "answer": "Nansen",
        "answer_aliases": [],
        "answerable": False,
    },
]
HOTPOT = [
    {
        "_id": "5a7a",
        "answer": "yes",
        "question": "Are both ships Norwegian?",
        "supporting_facts": [["Fram", 0], ["Fram", 1], ["Maud", 0]],
        "context": [
            ["Fram", ["The Fram is a ship.", " It is Norwegian."]],
            ["Gjøa", ["A sloop.", " Norwegian too."]],
        ],
        "type": "comparison",
        "level": "hard",
    }
]
TWOWIKI = [
    {
        "_id": "8813",
        "type": "compositional",
        "question": "Who is the father of the director of Ice?",
        "context": [["Ice", ["Ice was made by Ann.", "It is short."]], ["Ann", ["Ann's father is Bo."]]],
        "supporting_facts": [["Ice", 0], ["Ann", 0]],
        "evidences": [["Ice", "director", "Ann"], ["Ann", "father", "Bo"]],
        "answer": "Bo",
        "evidences_id": [["Q1", "director", "Q2"], ["Q2", "father", "Q3"]],
        "answer_id": "Q3",
    }
]


def lines(path: Path, entries: list[Any]) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


def array(path: Path, entries: Any) -> Path:
    path.write_text(json.dumps(entries, ensure_ascii=False), encoding="utf-8")
    return path


def test_musique(tmp_path: Path) -> None:
    data = load_dataset(lines(tmp_path / "musique_ans_v1.0_dev.jsonl", MUSIQUE))
    assert [(d.id, d.title) for d in data.documents] == [
        ("0", "Fram"),
        ("1", "Gjøa"),
        ("2", "Colin Archer"),
        ("3", "Fram"),
    ]
    first, second = data.questions
    assert (first.id, first.answers, first.gold) == ("2hop__1_2", ("Larvik", "Laurvik"), {"0", "2"})
    assert first.metadata["hops"] == 2
    assert (second.answers, second.gold) == ((), frozenset())
    assert data.corpus is None
    assert data.sources == list(data.documents)
    assert data.warnings == (
        "1 questions are marked unanswerable: they count as without an answer",
        "1 gold answers are empty and were left out",
    )


def test_hotpotqa(tmp_path: Path) -> None:
    data = load_dataset(array(tmp_path / "hotpot_dev_distractor_v1.json", HOTPOT))
    assert data.documents[0].text == "The Fram is a ship. It is Norwegian."
    assert data.questions[0].gold == {"0"}
    assert data.questions[0].answers == ("yes",)
    assert data.warnings == ("1 supporting passages are not among the passages of their question",)


def test_2wikimultihopqa_with_its_aliases(tmp_path: Path) -> None:
    path = array(tmp_path / "dev.json", TWOWIKI)
    assert load_dataset(path).questions[0].answers == ("Bo",)
    lines(tmp_path / "id_aliases.json", [{"Q_id": "Q3", "aliases": ["Bo B.", "Bo"], "demonyms": []}])
    data = load_dataset(path)
    assert data.questions[0].answers == ("Bo", "Bo B.")
    assert data.questions[0].gold == {"0", "1"}
    assert data.documents[0].text == "Ice was made by Ann. It is short."
    assert data.questions[0].metadata["evidences"] == TWOWIKI[0]["evidences"]


def test_columns_and_lines_as_mirrors_have_them(tmp_path: Path) -> None:
    entry = {
        **HOTPOT[0],
        "context": {"title": ["Fram", "Gjøa"], "sentences": [pair[1] for pair in HOTPOT[0]["context"]]},
        "supporting_facts": {"title": ["Fram"], "sent_id": [0]},
    }
    mirrored = load_dataset(lines(tmp_path / "mirror.jsonl", [entry]))
    assert mirrored.documents == load_dataset(array(tmp_path / "own.json", HOTPOT)).documents
    assert mirrored.questions[0].gold == {"0"}


def test_questions_of_a_test_split_have_neither_answer_nor_support(tmp_path: Path) -> None:
    bare = {name: HOTPOT[0][name] for name in ("_id", "question", "context")}
    data = load_dataset(array(tmp_path / "hotpot_test_fullwiki_v1.json", [bare]))
    assert data.questions[0].answers == ()
    assert [warning.split(":")[0] for warning in data.warnings] == [
        "no question has an answer",
        "no question has a supporting passage",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"question": ""}, "entry 1: question is missing or empty"),
        ({"_id": None}, "entry 1: no _id"),
        ({"context": "x"}, "context is not a list"),
        ({"context": [["a"]]}, "context is not a list of pairs"),
        ({"context": [["a", [1]]]}, "passage 0: a passage is not a list of strings"),
        ({"context": [[1, ["a"]]]}, "the title is not a string"),
        ({"context": {"title": ["a"], "sentences": []}}, "no equally long lists title and sentences"),
        ({"supporting_facts": [[1, 2]]}, "supporting_facts names something"),
        ({"answer": 3}, "answer is not a list of strings"),
        ({"paragraphs": [3]}, "paragraph 0: not a JSON object"),
        ({"paragraphs": [{"title": "x"}]}, "paragraph_text is missing or empty"),
        ({"paragraphs": [{"title": 1, "paragraph_text": "x"}]}, "the title is not a string"),
    ],
)
def test_a_broken_entry_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = array(tmp_path / "set.json", [{**HOTPOT[0], **change}])
    with pytest.raises(DocumentError) as caught:
        load_dataset(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["", "[", "[1]", '{"a": 1}', '[{"_id": 1, "question": "?"}]', "[" * 99_999])
def test_what_is_no_data_set_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "set.json"
    path.write_text(text, encoding="utf-8")
    if not text:
        assert load_dataset(path).warnings == ("no questions to score",)
        return
    with pytest.raises(DocumentError, match=r"set\.json"):
        load_dataset(path)


def test_an_id_that_comes_twice_is_named_with_both_places(tmp_path: Path) -> None:
    path = array(tmp_path / "set.json", [HOTPOT[0], HOTPOT[0]])
    with pytest.raises(DocumentError, match=r"entry 2: .*'5a7a' was used before, at .*entry 1"):
        load_dataset(path)
