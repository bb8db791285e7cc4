"""Questions with their gold answers and passages, and the data sets that contain them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ketrag_fast.types import Document


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `answers` are its gold answer and aliases, `gold` the ids of its supporting documents.

    `grades` are graded judgements by document; empty if all relevant documents have the same grade.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    gold: frozenset[str]
    metadata: Mapping[str, object]
    grades: Mapping[str, float] = field(default_factory=dict)

    @property
    def options(self) -> tuple[str, ...]:
        """The answer options (`metadata.options`); empty for a free question."""
        given = self.metadata.get("options")
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            return ()
        return tuple(given)

    @property
    def kind(self) -> str | None:
        """ "yes-no" if the data set says so (`metadata.kind`). It is not derived from the answers, which a
        system under test does not know.
        """
        return "yes-no" if self.metadata.get("kind") == "yes-no" else None

    @property
    def graded(self) -> Mapping[str, float]:
        """The grade of each relevant document; 1 by default."""
        return self.grades or dict.fromkeys(self.gold, 1.0)


@dataclass(frozen=True, slots=True)
class DataSet:
    """Questions in the order of their file.

    `corpus` is the file to index, or None; a set whose file contains its passages inside the questions has
    them in `documents` instead. `unknown_passages` counts judgements of passages that the corpus lacks,
    `unknown_questions` judgements of questions that the set lacks; both are left out of `gold`, as nothing
    could find them, and listed in `warnings`.
    """

    folder: Path
    corpus: Path | None
    questions: tuple[Question, ...]
    unknown_passages: int
    unknown_questions: int
    warnings: tuple[str, ...]
    documents: tuple[Document, ...] = ()

    @property
    def sources(self) -> list[Path | Document]:
        """The sources to build an index of this set from; empty if the set has no passages."""
        return [self.corpus] if self.corpus is not None else list(self.documents)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the questions with their answers and gold passages."""
        digest = hashlib.sha256()
        for q in self.questions:
            entry: list[object] = [q.id, q.text, list(q.answers), sorted(q.gold)]
            entry += [sorted(q.grades.items())] if q.grades else []
            digest.update(json.dumps(entry, ensure_ascii=True).encode("ascii") + b"\n")
        return digest.hexdigest()


def absences(questions: tuple[Question, ...], empty_answers: int = 0) -> list[str]:
    """Return warnings about missing answers or passages: metrics that need them are absent, never zero."""
    told = []
    n = len(questions)
    unanswered = sum(not q.answers for q in questions)
    unjudged = sum(not q.gold for q in questions)
    if not n:
        told.append("no questions to score")
    elif unanswered == n:
        told.append("no question has an answer: coverage and the scores of answers are absent")
    if empty_answers:
        told.append(f"{empty_answers} gold answers are empty and were left out")
    if n and unjudged == n:
        told.append("no question has a supporting passage: recall, all gold, Hit@k and MRR are absent")
    return told
