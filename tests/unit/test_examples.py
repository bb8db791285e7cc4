"""The example's corpus and questions belong to its articles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ketrag_fast.eval.datasets import load_dataset

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_corpus_agrees_with_the_articles() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "make_dataset.py", "--check"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_judgements_name_articles_and_questions_that_exist() -> None:
    data = load_dataset(EXAMPLES / "polar")
    assert all(question.gold and question.answers for question in data.questions)
