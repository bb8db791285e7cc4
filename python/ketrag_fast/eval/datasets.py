"""Data sets by their path: a folder in BEIR layout, or a file of MuSiQue, HotpotQA or 2WikiMultihopQA."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path

from ketrag_fast.errors import DocumentError
from ketrag_fast.eval.reading import (
    entries,
    identity,
    lines,
    objects,
    require_new_id,
    require_object,
    require_text,
    texts,
)
from ketrag_fast.records import dataclass, field, replace
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
    them in `documents` instead. Judgements of passages or questions that the set lacks are left out of
    `gold`, as nothing could find them, and counted in `warnings`.
    """

    folder: Path
    corpus: Path | None
    questions: tuple[Question, ...]
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


def load_dataset(path: str | Path) -> DataSet:
    """Read the data set at `path`.

    Raises `DocumentError` naming file and line (or entry) of an invalid entry or repeated id, or naming the
    path if the set or its `queries.jsonl` is missing.
    """
    path = Path(path)
    if path.is_dir():
        return _load_folder(path)
    if path.is_file():
        return _load_file(path)
    raise DocumentError(
        f"{path} does not exist",
        hint="a data set is a folder with queries.jsonl, or a file of MuSiQue, HotpotQA or 2WikiMultihopQA",
    )


_HEADER = ("query-id", "corpus-id", "score")


def _load_folder(folder: Path) -> DataSet:
    asked, empty = _questions(folder / "queries.jsonl")
    corpus, passages = folder / "corpus.jsonl", None
    if corpus.exists():
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
    return DataSet(folder, corpus if passages is not None else None, questions, tuple(warnings))


def _questions(path: Path) -> tuple[list[Question], int]:
    """Return the questions without judgements, and the number of empty answers that were left out."""
    questions: list[Question] = []
    seen: dict[str, str] = {}
    empty = 0
    for entry, where in objects(path):
        name = identity(entry, where)
        require_new_id(seen, name, where)
        text = entry.get("text")
        if not isinstance(text, str) or not text.strip():
            raise DocumentError(f"{where}: a question needs a text")
        metadata = {} if entry.get("metadata") is None else entry["metadata"]
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
    for number, (line, where) in enumerate(lines(path)):
        fields = tuple(field.strip() for field in line.split("\t"))
        if not number:
            if fields != _HEADER:
                raise DocumentError(
                    f"{where}: the header is missing", hint="the first line is " + "<tab>".join(_HEADER)
                )
            continue
        if len(fields) != len(_HEADER) or not fields[0] or not fields[1]:
            raise DocumentError(f"{where}: expected question id, passage id and score with tabs between")
        try:
            score = float(fields[2])
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise DocumentError(f"{where}: {fields[2]!r} is not a score")
        if score > 0:
            pairs.append((fields[0], fields[1], score))
    return pairs


ALIASES = "id_aliases.json"


_Pool = dict[tuple[str, str], str]
"""The ids of the distinct passages by title and text, in the order of their first appearance."""


def _add(pool: _Pool, title: str, text: str) -> str:
    return pool.setdefault((title, text), str(len(pool)))


@dataclass
class _Read:
    """One parsed question: its gold passages, and the number of gold passages that it names but lacks."""

    answers: list[str]
    gold: set[str]
    lost: int
    metadata: dict[str, object]
    withheld: bool = False


def _load_file(path: Path) -> DataSet:
    """Read the file; the fields of each entry determine the layout."""
    pool: _Pool = {}
    seen: dict[str, str] = {}
    aliases: Mapping[str, list[str]] | None = None
    questions: list[Question] = []
    lost = empty = unanswerable = 0
    for entry, where in entries(path):
        name = identity(entry, where, "_id", "id")
        require_new_id(seen, name, where)
        text = require_text(entry, "question", where)
        if "paragraphs" in entry:
            read = _musique(entry, where, pool)
        elif "context" in entry:
            if "answer_id" in entry and aliases is None:
                aliases = _aliases(path.with_name(ALIASES))
            read = _hotpot(entry, where, pool, aliases or {})
        else:
            raise DocumentError(
                f"{where}: neither paragraphs (MuSiQue) nor context (HotpotQA, 2WikiMultihopQA)",
                hint="other data sets are read from a folder with queries.jsonl, corpus.jsonl and qrels.tsv",
            )
        answers = tuple(dict.fromkeys(answer for answer in read.answers if answer.strip()))
        empty += sum(not answer.strip() for answer in read.answers)
        unanswerable += read.withheld
        lost += read.lost
        questions.append(Question(name, text, answers, frozenset(read.gold), read.metadata))
    asked = tuple(questions)
    warnings = []
    if lost:
        warnings.append(f"{lost} supporting passages are not among the passages of their question")
    if unanswerable:
        warnings.append(f"{unanswerable} questions are marked unanswerable: they count as without an answer")
    warnings += absences(asked, empty)
    documents = tuple(Document(number, text, title) for (title, text), number in pool.items())
    return DataSet(path.parent, None, asked, tuple(warnings), documents)


def _musique(entry: Mapping[str, object], where: str, pool: _Pool) -> _Read:
    gold = set()
    for number, value in enumerate(_list(entry, "paragraphs", where)):
        place = f"{where}, paragraph {number}"
        paragraph = require_object(value, place)
        passage = _add(pool, _title(paragraph, place), require_text(paragraph, "paragraph_text", place))
        if paragraph.get("is_supporting") is True:
            gold.add(passage)
    given = texts(entry.get("answer"), "answer", where)
    given += texts(entry.get("answer_aliases"), "answer_aliases", where)
    steps = entry.get("question_decomposition")
    metadata: dict[str, object] = {"hops": len(steps)} if isinstance(steps, list) else {}
    if entry.get("answerable") is False:
        # The answer is given, but its supporting passages were removed.
        return _Read([], gold, 0, metadata, withheld=True)
    return _Read(given, gold, 0, metadata)


def _hotpot(entry: Mapping[str, object], where: str, pool: _Pool, aliases: Mapping[str, list[str]]) -> _Read:
    held: dict[str, list[str]] = {}
    for number, value in enumerate(_pairs(entry, "context", "sentences", where)):
        title, sentences = value
        if not isinstance(title, str):
            raise DocumentError(f"{where}, passage {number}: the title is not a string")
        text = _join_sentences(texts(sentences, "a passage", f"{where}, passage {number}"))
        if text.strip():
            held.setdefault(title, []).append(_add(pool, title, text))
    gold: set[str] = set()
    lost = set()
    facts = _pairs(entry, "supporting_facts", "sent_id", where) if entry.get("supporting_facts") else []
    for title, _ in facts:
        if not isinstance(title, str):
            raise DocumentError(f"{where}: supporting_facts names something that is not a title")
        gold.update(held.get(title, ()))
        if title not in held:
            lost.add(title)
    answers = texts(entry.get("answer"), "answer", where)
    known = entry.get("answer_id")
    if isinstance(known, str):
        answers += aliases.get(known, [])
    kept = ("type", "level", "evidences")
    return _Read(answers, gold, len(lost), {name: entry[name] for name in kept if name in entry})


def _title(paragraph: Mapping[str, object], where: str) -> str:
    title = paragraph.get("title", "")
    if not isinstance(title, str):
        raise DocumentError(f"{where}: the title is not a string")
    return title


def _list(entry: Mapping[str, object], name: str, where: str) -> list[object]:
    value = entry.get(name)
    if not isinstance(value, list):
        raise DocumentError(f"{where}: {name} is not a list")
    return value


def _pairs(entry: Mapping[str, object], name: str, second: str, where: str) -> list[tuple[object, object]]:
    """Return `[[title, x], ...]`, also from columns `{"title": [...], second: [...]}` (as in mirrors)."""
    value = entry.get(name)
    if isinstance(value, dict):
        titles, others = value.get("title"), value.get(second)
        if not isinstance(titles, list) or not isinstance(others, list) or len(titles) != len(others):
            raise DocumentError(f"{where}: {name} has no equally long lists title and {second}")
        return list(zip(titles, others, strict=True))
    pairs = _list(entry, name, where)
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise DocumentError(f"{where}: {name} is not a list of pairs")
    return [(pair[0], pair[1]) for pair in pairs if isinstance(pair, list)]


def _join_sentences(sentences: list[str]) -> str:
    """Join sentences: those of HotpotQA start with a space, those of 2WikiMultihopQA do not."""
    text = ""
    for sentence in sentences:
        parted = not text or text[-1].isspace() or sentence[:1].isspace()
        text += sentence if parted else f" {sentence}"
    return text


def _aliases(path: Path) -> dict[str, list[str]]:
    """Return other names of answers by their Wikidata id; empty without the file."""
    if not path.exists():
        return {}
    found = {}
    for entry, where in objects(path):
        names = texts(entry.get("aliases"), "aliases", where) + texts(
            entry.get("demonyms"), "demonyms", where
        )
        found[identity(entry, where, "Q_id")] = names
    return found
