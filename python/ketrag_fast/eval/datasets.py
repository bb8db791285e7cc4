"""Data sets by their path: a folder in BEIR layout, or a file of MuSiQue, HotpotQA or 2WikiMultihopQA."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from ketrag_fast.errors import DocumentError
from ketrag_fast.eval.multihop import load_file
from ketrag_fast.eval.question import DataSet, Question, absences
from ketrag_fast.eval.reading import identity, lines, objects, once, texts

__all__ = ["DataSet", "Question", "load_dataset"]


def load_dataset(path: str | Path) -> DataSet:
    """Read the data set at `path`.

    Raises `DocumentError` naming file and line (or entry) of an invalid entry or repeated id, or naming the
    path if the set or its `queries.jsonl` is missing.
    """
    path = Path(path)
    if path.is_dir():
        return load_folder(path)
    if path.is_file():
        return load_file(path)
    raise DocumentError(
        f"{path} does not exist",
        hint="a data set is a folder with queries.jsonl, or a file of MuSiQue, HotpotQA or 2WikiMultihopQA",
    )


_HEADER = ("query-id", "corpus-id", "score")


def load_folder(folder: Path) -> DataSet:
    """Read the data set in `folder`; see `datasets.load_dataset`."""
    asked, empty = _questions(folder / "queries.jsonl")
    corpus: Path | None = folder / "corpus.jsonl"
    if corpus is None or not corpus.exists():
        corpus, passages = None, None
    else:
        passages = {identity(entry, where) for entry, where in objects(corpus)}
    judgements = _judgements(folder / "qrels.tsv")

    gold: dict[str, dict[str, float]] = {question.id: {} for question in asked}
    unknown_passages = unknown_questions = 0
    for question_id, passage_id, score in judgements:
        if question_id not in gold:
            unknown_questions += 1
        elif passages is not None and passage_id not in passages:
            unknown_passages += 1
        else:
            gold[question_id][passage_id] = max(score, gold[question_id].get(passage_id, 0.0))
    warnings = []
    if unknown_passages:
        warnings.append(f"qrels.tsv: {unknown_passages} judgements name passages that corpus.jsonl lacks")
    if unknown_questions:
        warnings.append(f"qrels.tsv: {unknown_questions} judgements name questions that queries.jsonl lacks")
    graded = any(score != 1.0 for own in gold.values() for score in own.values())
    questions = tuple(
        replace(q, gold=frozenset(own), grades=own if graded else {}) if (own := gold[q.id]) else q
        for q in asked
    )
    warnings += absences(questions, empty)
    return DataSet(folder, corpus, questions, unknown_passages, unknown_questions, tuple(warnings))


def _questions(path: Path) -> tuple[list[Question], int]:
    """Return the questions without judgements, and the number of empty answers that were left out."""
    questions: list[Question] = []
    seen: dict[str, str] = {}
    empty = 0
    for entry, where in objects(path):
        name = identity(entry, where)
        once(seen, name, where)
        text = entry.get("text")
        if not isinstance(text, str) or not text.strip():
            raise DocumentError(f"{where}: a question needs a text")
        metadata = entry.get("metadata")
        if metadata is None:
            metadata = {}
        if not isinstance(metadata, dict):
            raise DocumentError(f"{where}: metadata is not an object")
        given = texts(metadata.get("answers"), "metadata.answers", where)
        answers = tuple(answer for answer in given if answer.strip())
        empty += len(given) - len(answers)
        questions.append(Question(name, text, answers, frozenset(), metadata))
    return questions, empty


def _judgements(path: Path) -> list[tuple[str, str, float]]:
    """Return (question, passage, grade) of all relevant judgements; empty without a file."""
    if not path.exists():
        return []
    pairs: list[tuple[str, str, float]] = []
    header_seen = False
    for line, where in lines(path):
        fields = tuple(field.strip() for field in line.split("\t"))
        if not header_seen:
            if fields != _HEADER:
                raise DocumentError(
                    f"{where}: the header is missing", hint="the first line is " + "<tab>".join(_HEADER)
                )
            header_seen = True
            continue
        if len(fields) != len(_HEADER) or not fields[0] or not fields[1]:
            raise DocumentError(f"{where}: expected question id, passage id and score with tabs between")
        try:
            score = float(fields[2])
        except ValueError as error:
            raise DocumentError(f"{where}: {fields[2]!r} is not a score") from error
        if not math.isfinite(score):
            raise DocumentError(f"{where}: {fields[2]!r} is not a score")
        if score > 0:
            pairs.append((fields[0], fields[1], score))
    return pairs
