"""A data set as the KET-RAG reference implementation reads it: one document of all passages, shuffled.

In the order of the file the passages of one question are neighbours, which flatters large windows; so they
are shuffled (`random.Random(seed).shuffle`). Each passage is `title`, a line break and the text (or the text
alone); passages are separated by line breaks.
"""

from __future__ import annotations

import random
from dataclasses import replace

from ketrag_fast.errors import DocumentError
from ketrag_fast.eval.question import DataSet
from ketrag_fast.eval.reading import identity, objects
from ketrag_fast.types import Document

NAME = "concatenated"


def concatenate(dataset: DataSet, seed: int, *, titles: bool = True) -> DataSet:
    """Return the same questions over one document. Passages lose their ids, so there are no gold passages.

    Without `titles` the passages are their texts alone.
    """
    passages = _shuffle_passages(dataset, seed, titles)
    told = "the passages are concatenated: recall, all gold, Hit@k and MRR are absent"
    return replace(
        dataset,
        corpus=None,
        documents=(Document(NAME, "\n".join(text for _, text in passages)),),
        questions=tuple(replace(question, gold=frozenset()) for question in dataset.questions),
        warnings=(*dataset.warnings, told),
    )


def places(dataset: DataSet, seed: int, *, titles: bool = True) -> dict[str, tuple[int, int]]:
    """Return the span in code points of each passage in the document of `concatenate`, by its id."""
    found, at = {}, 0
    for name, text in _shuffle_passages(dataset, seed, titles):
        found[name] = (at, at + len(text))
        at += len(text) + 1
    return found


def _shuffle_passages(dataset: DataSet, seed: int, titles: bool) -> list[tuple[str, str]]:
    passages = _passages(dataset, titles)
    if not passages:
        raise DocumentError(f"{dataset.folder} has no passages to concatenate")
    random.Random(seed).shuffle(passages)  # noqa: S311 - a fixed order, not a secret
    return passages


def _passages(dataset: DataSet, titles: bool) -> list[tuple[str, str]]:
    """Return the id and whole text of each passage."""
    if dataset.corpus is None:
        return [(d.id, _join_title(d.title if titles else "", d.text)) for d in dataset.documents]
    found = []
    for entry, where in objects(dataset.corpus):
        title, text = entry.get("title") or "", entry.get("text")
        if not isinstance(title, str) or not isinstance(text, str):
            raise DocumentError(f"{where}: text and title of a passage must be strings")
        found.append((identity(entry, where), _join_title(title if titles else "", text)))
    return found


def _join_title(title: str, text: str) -> str:
    return f"{title}\n{text}" if title else text
