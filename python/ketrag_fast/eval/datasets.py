"""Reader of data sets in BEIR layout: `corpus.jsonl`, `queries.jsonl`, `qrels.tsv` in one folder.

Answers (`metadata.answers`) and judgements (`qrels.tsv`) may be missing, for one question or for all: the
metrics that need them are then absent for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ketrag_fast.errors import DocumentError

_HEADER = ("query-id", "corpus-id", "score")


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `answers` are its gold answer and aliases, `gold` the ids of its supporting documents."""

    id: str
    text: str
    answers: tuple[str, ...]
    gold: frozenset[str]
    metadata: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class DataSet:
    """Questions in the order of their file.

    `corpus` is the file to index, None where the folder has none. `unknown_passages` counts the judgements
    that name a passage which the corpus lacks, and `unknown_questions` those of a question that is not asked;
    both are left out of `gold`, as nothing could find them, and told in `warnings`.
    """

    folder: Path
    corpus: Path | None
    questions: tuple[Question, ...]
    unknown_passages: int
    unknown_questions: int
    warnings: tuple[str, ...]


def load_dataset(folder: str | Path) -> DataSet:
    """Read the data set in `folder`.

    Raises `DocumentError` naming file and line where a line is broken or an id comes twice, and naming the
    path where the folder or `queries.jsonl` is missing.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DocumentError(
            f"{folder}: no such folder", hint="a data set is a folder with queries.jsonl in it"
        )
    asked = _questions(folder / "queries.jsonl")
    corpus: Path | None = folder / "corpus.jsonl"
    if corpus is None or not corpus.exists():
        corpus, passages = None, None
    else:
        passages = {_identity(entry, where) for entry, where in _objects(corpus)}
    judgements = _judgements(folder / "qrels.tsv")

    gold: dict[str, set[str]] = {question.id: set() for question in asked}
    unknown_passages = unknown_questions = 0
    for question_id, passage_id in judgements:
        if question_id not in gold:
            unknown_questions += 1
        elif passages is not None and passage_id not in passages:
            unknown_passages += 1
        else:
            gold[question_id].add(passage_id)
    warnings = []
    if unknown_passages:
        warnings.append(f"qrels.tsv: {unknown_passages} judgements name passages that corpus.jsonl lacks")
    if unknown_questions:
        warnings.append(f"qrels.tsv: {unknown_questions} judgements name questions that queries.jsonl lacks")
    questions = tuple(
        Question(q.id, q.text, q.answers, frozenset(gold[q.id]), q.metadata) if gold[q.id] else q
        for q in asked
    )
    return DataSet(folder, corpus, questions, unknown_passages, unknown_questions, tuple(warnings))


def _questions(path: Path) -> list[Question]:
    questions: list[Question] = []
    lines: dict[str, str] = {}
    for entry, where in _objects(path):
        identity = _identity(entry, where)
        if identity in lines:
            raise DocumentError(f"{where}: question id {identity!r} was used before, at {lines[identity]}")
        lines[identity] = where
        text = entry.get("text")
        if not isinstance(text, str) or not text.strip():
            raise DocumentError(f"{where}: a question needs a text")
        metadata = entry.get("metadata")
        if metadata is None:
            metadata = {}
        if not isinstance(metadata, dict):
            raise DocumentError(f"{where}: metadata is not an object")
        questions.append(Question(identity, text, _answers(metadata, where), frozenset(), metadata))
    return questions


def _answers(metadata: Mapping[str, object], where: str) -> tuple[str, ...]:
    answers = metadata.get("answers")
    if answers is None:
        return ()
    if isinstance(answers, str):
        answers = [answers]
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise DocumentError(f"{where}: metadata.answers is not a list of strings")
    return tuple(answer for answer in answers if answer.strip())


def _judgements(path: Path) -> list[tuple[str, str]]:
    """Pairs (question, passage) judged relevant; empty where there is no file."""
    if not path.exists():
        return []
    pairs: list[tuple[str, str]] = []
    header_seen = False
    for line, where in _lines(path):
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
        if score > 0:
            pairs.append((fields[0], fields[1]))
    return pairs


def _objects(path: Path) -> Iterator[tuple[dict[str, object], str]]:
    for line, where in _lines(path):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DocumentError(f"{where}: not JSON: {error}") from error
        if not isinstance(entry, dict):
            raise DocumentError(f"{where}: not a JSON object")
        yield entry, where


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Lines that are not blank, each with the place that errors name; a byte order mark is skipped."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                where = f"{path}:{number}"
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise DocumentError(f"{where}: not UTF-8 ({error.reason})") from error
                if line.strip():
                    yield line, where
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror or error}") from error


def _identity(entry: Mapping[str, object], where: str) -> str:
    identity = entry.get("_id")
    if isinstance(identity, int) and not isinstance(identity, bool):
        return str(identity)
    if not isinstance(identity, str) or not identity:
        raise DocumentError(f"{where}: no _id")
    return identity
