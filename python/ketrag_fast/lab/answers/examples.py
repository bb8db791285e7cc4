"""Training examples of an extractive model: a question with texts, and where its answer is in each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from ketrag_fast.lab.eval import DataSet, Question
from ketrag_fast.lab.eval.metrics import is_yes_no
from ketrag_fast.storage.durable import replace_path
from ketrag_fast.storage.io_errors import writing

if TYPE_CHECKING:
    from ketrag_fast.index import Index

RETRIEVED: Final = 10
"""Passages of the walk among which texts without an answer are chosen."""
NEGATIVES: Final = 2
"""Texts without an answer for each question."""
LONGEST: Final = 600
"""Code points of a text; a longer one is cut around its answer."""
_BUDGET: Final = 1 << 30

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SpanExample:
    """A question, texts, and for each text the spans of its answer in code points; no span: no answer."""

    question: str
    texts: tuple[str, ...]
    spans: tuple[tuple[Span, ...], ...]


def find_spans(text: str, answers: Sequence[str]) -> tuple[Span, ...]:
    """Return where an answer is in a text as whole words, in any case, in the order of the text.

    Of answers that overlap the longest counts.
    """
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text
    found: list[Span] = []
    wanted = {" ".join(one.split()).lower() for one in answers}
    for answer in sorted(wanted, key=lambda one: (-len(one), one)):
        start = lowered.find(answer) if answer else -1
        while start >= 0:
            end = start + len(answer)
            free = all(end <= first or start >= last for first, last in found)
            if free and _is_whole(lowered, start, end):
                found.append((start, end))
            start = lowered.find(answer, start + 1)
    return tuple(sorted(found))


def _is_whole(text: str, start: int, end: int) -> bool:
    before = start == 0 or not (text[start - 1].isalnum() and text[start].isalnum())
    after = end == len(text) or not (text[end].isalnum() and text[end - 1].isalnum())
    return before and after


def answerable(dataset: DataSet) -> list[Question]:
    """Return the questions with judged passages and an answer other than yes or no."""
    return [q for q in dataset.questions if q.gold and q.answers and not is_yes_no(q.answers)]


def make_examples(dataset: DataSet, index: Index, *, seed: int) -> list[SpanExample]:
    """Return an example for each answerable question with an answer in a judged passage.

    Its texts are a judged passage with the answer, and up to NEGATIVES passages that the walk finds and that
    do not contain it: the first of these, and others by chance.
    """
    questions = answerable(dataset)
    texts = {document.id: document.text for document in index.inspect.stored()}
    contexts = index.retrieve_many([q.text for q in questions], mode="walk", top=RETRIEVED, budget=_BUDGET)
    generator = np.random.default_rng(seed)
    examples = []
    for question, context in zip(questions, contexts, strict=True):
        gold = [(texts[name], find_spans(texts[name], question.answers)) for name in sorted(question.gold)]
        right = [(text, spans) for text, spans in gold if spans]
        if not right:
            continue
        text, spans = right[int(generator.integers(len(right)))]
        others = [p.text for p in context.passages if not find_spans(p.text, question.answers)]
        wrong = others[:1]
        for at in generator.permutation(np.arange(1, len(others)))[: NEGATIVES - 1].tolist():
            wrong.append(others[at])
        own, at_text = _cut(text, spans)
        examples.append(
            SpanExample(
                question.text,
                (own, *(one[:LONGEST] for one in wrong)),
                (at_text, *(() for _ in wrong)),
            )
        )
    return examples


def _cut(text: str, spans: tuple[Span, ...]) -> tuple[str, tuple[Span, ...]]:
    """Return at most LONGEST code points around the first span, and the spans in them."""
    if len(text) <= LONGEST:
        return text, spans
    start = max(0, min(spans[0][0] - LONGEST // 2, len(text) - LONGEST))
    end = start + LONGEST
    kept = tuple((first - start, last - start) for first, last in spans if start <= first and last <= end)
    return text[start:end], kept


def save_examples(path: Path, examples: Sequence[SpanExample]) -> None:
    """Write examples to a file of JSON lines, atomically."""
    fresh = path.with_name(f"{path.name}.new")
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with fresh.open("w", encoding="utf-8", newline="\n") as file:
            for one in examples:
                file.write(json.dumps([one.question, one.texts, one.spans]) + "\n")
        replace_path(fresh, path)


def load_examples(path: Path) -> list[SpanExample] | None:
    """Return the examples of a file; None if there is none, or it is damaged."""
    try:
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        return [
            SpanExample(question, tuple(texts), tuple(tuple((a, b) for a, b in own) for own in spans))
            for question, texts, spans in rows
        ]
    except (OSError, ValueError, TypeError):
        return None
