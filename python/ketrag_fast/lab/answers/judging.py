"""Scores of quoted answers: exact match and F1 of a model's spans next to those of the best sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.lab.answers.examples import answerable
from ketrag_fast.lab.eval import DataSet
from ketrag_fast.lab.eval.metrics import best_exact_match, best_f1, bootstrap_interval
from ketrag_fast.lab.eval.paired import PairedDifference, compare_paired
from ketrag_fast.models.extractive import Extractor
from ketrag_fast.query.answer.extraction import extract_answer
from ketrag_fast.query.answer.quotes import best_sentences

if TYPE_CHECKING:
    from ketrag_fast.index import Index

MODE: Final = "walk"
BUDGET: Final = 2_000
"""Tokens of the context that is read."""
SENTENCE: Final = "best sentence"
SPAN: Final = "model"


@dataclass(frozen=True, slots=True)
class Score:
    """Mean exact match and F1 of a way to answer, with 95 % intervals."""

    name: str
    exact: float
    exact_ci95: tuple[float, float]
    f1: float
    f1_ci95: tuple[float, float]

    def to_json(self) -> dict[str, Any]:
        """Return the score as the command prints it."""
        return {
            "answers": self.name,
            "exact_match": self.exact,
            "exact_match_ci95": list(self.exact_ci95),
            "f1": self.f1,
            "f1_ci95": list(self.f1_ci95),
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """Scores on the answerable questions of a data set; the model answered `answered` of them."""

    dataset: str
    questions: int
    answered: int
    scores: tuple[Score, ...]
    exact: PairedDifference
    f1: PairedDifference

    def to_json(self) -> dict[str, Any]:
        """Return the judgement as the command prints it."""
        return {
            "dataset": self.dataset,
            "questions": self.questions,
            "answered": self.answered,
            "scores": [score.to_json() for score in self.scores],
            "exact_match": self.exact.to_json(),
            "f1": self.f1.to_json(),
        }


def judge_answers(
    index: Index, dataset: DataSet, model: Extractor, *, budget: int = BUDGET, threshold: float = 0.0
) -> Judgement | None:
    """Return the scores of a model's spans from the walk's contexts, and of their best sentences.

    Questions whose answer is yes or no are left out; None if no other question has an answer.
    """
    questions = answerable(dataset)
    if not questions:
        return None
    contexts = index.retrieve_many([q.text for q in questions], mode=MODE, budget=budget)
    identity = model.identity()
    spans, sentences, answered = [], [], 0
    for context in contexts:
        sentence = "".join(quote.text for quote in best_sentences(context, 1))
        sentences.append(sentence)
        if not context.passages:
            spans.append("")
            continue
        answer = extract_answer(context, model, identity, threshold=threshold)
        answered += answer.is_quoted
        spans.append(answer.plain if answer.is_quoted else "")
    golds = [question.answers for question in questions]
    exact = {SENTENCE: _each(best_exact_match, sentences, golds), SPAN: _each(best_exact_match, spans, golds)}
    f1 = {SENTENCE: _each(best_f1, sentences, golds), SPAN: _each(best_f1, spans, golds)}
    differences = [compare_paired(rows[SENTENCE], rows[SPAN]) for rows in (exact, f1)]
    assert differences[0] is not None and differences[1] is not None  # noqa: S101 - there are questions
    return Judgement(
        dataset.folder.name,
        len(questions),
        answered,
        tuple(Score(name, *_mean(exact[name]), *_mean(f1[name])) for name in (SENTENCE, SPAN)),
        differences[0],
        differences[1],
    )


def _each(score: Any, texts: Sequence[str], golds: Sequence[Sequence[str]]) -> list[float]:
    return [float(score(text, own) or 0.0) for text, own in zip(texts, golds, strict=True)]


def _mean(values: Sequence[float]) -> tuple[float, tuple[float, float]]:
    return sum(values) / len(values), bootstrap_interval(values) or (0.0, 0.0)
