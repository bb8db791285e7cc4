"""Sentences of answers and the passages that support them: sixty recorded answers, half of them wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from ketrag_fast.query.answer.generation import AnswerChecker
from ketrag_fast.query.answer.grounding import Grounds, Support
from ketrag_fast.types import Passage

DATA: Final = Path(__file__).parents[2] / "data" / "answers"
TARGET: Final = 0.85
"""Minimum share of sentences with the right citations, or the right mark."""


def passages(rows: Sequence[dict[str, str]]) -> list[Passage]:
    """Passages of titles and texts."""
    return [
        Passage(
            number,
            "chunk",
            number,
            number,
            row.get("title", ""),
            row.get("title", ""),
            0,
            len(row["text"]),
            1.0,
            1,
            "walk",
            row["text"],
            context=row.get("context", ""),
        )
        for number, row in enumerate(rows, 1)
    ]


def recorded(which: str) -> list[dict[str, Any]]:
    """The answers of a set."""
    lines = (DATA / "answers.jsonl").read_text("utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["set"] == which]


def marks(text: str) -> set[str]:
    return set(re.findall(r"\[(?:\d+|\?)\]", text))


@pytest.mark.parametrize("which", ["tune", "check"])
def test_sentences_have_the_right_citations_or_the_mark(
    which: str, capsys: pytest.CaptureFixture[str]
) -> None:
    contexts = json.loads((DATA / "contexts.json").read_text("utf-8"))
    right, wrong = 0, []
    for answer in recorded(which):
        checker = AnswerChecker(Grounds("", passages(contexts[answer["context"]])))
        for sentence in answer["sentences"]:
            text = checker.feed(sentence["text"] + "\n")
            if any(marks(text) == marks(expected) for expected in sentence["marks"]):
                right += 1
            else:
                wrong.append(f"{answer['kind']}: {text.strip()}  (right: {' or '.join(sentence['marks'])})")
    count = right + len(wrong)
    with capsys.disabled():
        print(f"\n{which}: {right} of {count} sentences ({right / count:.1%})", *wrong, sep="\n  ")
    assert right / count >= TARGET


def test_sixty_answers_and_about_half_of_them_are_wrong() -> None:
    rows = [*recorded("tune"), *recorded("check")]
    bad = [row for row in rows if any(one["marks"] == ["[?]"] for one in row["sentences"])]
    cited = [row for row in rows if row["kind"] == "wrong citation"]
    assert (len(recorded("tune")), len(recorded("check"))) == (40, 20)
    assert 28 <= len(bad) <= 35 and len(cited) >= 5


CREAN = (
    "Tom Crean retired in 1920 and opened a public house. He hardly ever spoke of his travels. "
    "He died in Cork in 1938. He did not go to Greenland."
)
FRAM = "The Fram was built by Colin Archer. She drifted across the polar basin under Fridtjof Nansen."
TABLE = "| item-4 | 28 | 6.0 |\n| item-5 | 35 | 7.5 |"
HEADER = "| Name | Quantity | Price EUR |\n|---|---|---|"


def check(sentence: str, *texts: str, cited: Sequence[int] = (), question: str = "") -> Support:
    rows = [{"text": text} for text in texts or (CREAN, FRAM)]
    return Grounds(question, passages(rows)).check(sentence, cited)


@pytest.mark.parametrize(
    ("sentence", "numbers"),
    [
        ("Crean died in Cork in 1938.", (1,)),
        ("Crean died in Cork in 1920.", None),
        ("Crean retired in 1921.", None),
        ("Crean never went to Greenland.", (1,)),
        ("Crean went to Greenland.", None),
        ("The Fram was designed and built by Colin Archer.", (2,)),
        ("Fridtjof Nansen built the Fram.", None),
        ("Colin Archer, the builder of the Fram, died in 1921.", None),
        ("The Fram drifted across the polar basin.", (2,)),
        ("The Fram carried a balloon and a printing press.", None),
    ],
)
def test_numbers_names_and_negations_count_more_than_other_words(
    sentence: str, numbers: tuple[int, ...] | None
) -> None:
    assert check(sentence) == Support(numbers or (), numbers is not None)


def test_a_citation_is_kept_if_its_passage_says_it_and_replaced_otherwise() -> None:
    assert check("The Fram was built by Colin Archer.", cited=[2]).numbers == (2,)
    assert check("The Fram was built by Colin Archer.", cited=[1]).numbers == (2,)
    assert check("The Fram was built by Colin Archer.", FRAM, CREAN, FRAM, cited=[3]).numbers == (3,)


def test_a_row_is_read_with_its_header_and_alone() -> None:
    rows = passages([{"title": "Stock", "text": TABLE, "context": HEADER}])
    assert Grounds("", rows).check("The price of item-5 is 7.5 EUR.") == Support((1,), True)
    assert Grounds("", rows).check("The price of item-5 is 6.0 EUR.") == Support((), False)


def test_a_short_answer_is_read_with_the_question() -> None:
    assert check("Colin Archer.", question="Who built the Fram?") == Support((2,), True)
    assert check("Frank Wild.", question="Who built the Fram?") == Support((), False)
    assert check("Answer: 1938.", question="When did Crean retire?") == Support((), False)
    assert check("Answer: 1920.", question="When did Crean retire?") == Support((1,), True)


def test_what_states_nothing_is_not_judged() -> None:
    for text in ("Yes.", "", "It is.", "..."):
        assert check(text) == Support((), None)


def test_other_languages() -> None:
    german = "Das Schiff wurde 1892 von Colin Archer in Larvik gebaut. Die Garantie gilt nicht für Batterien."
    assert check("Das Schiff wurde von Colin Archer gebaut.", german) == Support((1,), True)
    assert check("Das Schiff wurde von Otto Sverdrup gebaut.", german) == Support((), False)
    assert check("Die Garantie gilt für Batterien und das Schiff.", german) == Support((), False)
    # No passage is in the language of the sentence: its words cannot be compared.
    assert check("The ship was built by Colin Archer in the town.", german, cited=[1]) == Support((), None)


def test_no_passages() -> None:
    assert Grounds("", []).check("The Fram was built by Colin Archer.").is_supported is None
