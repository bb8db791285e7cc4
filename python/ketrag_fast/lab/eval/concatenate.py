"""A data set as the published KET-RAG code reads it: all passages in one document, in shuffled order.

In the order of the file the passages of one question are neighbours, which flatters large windows; so they
are shuffled (`random.Random(seed).shuffle`). Each passage is `title`, a line break and the text (or the text
alone); a line break stands between passages.
"""

from __future__ import annotations

import random
from dataclasses import replace

from ketrag_fast.errors import DocumentError
from ketrag_fast.lab.eval.question import DataSet
from ketrag_fast.lab.eval.reading import identity, objects
from ketrag_fast.types import Document

NAME = "concatenated"


def concatenate(dataset: DataSet, seed: int, *, titles: bool = True) -> DataSet:
    """The same questions over one document. Passages lose their ids, so the gold passages are absent.

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
    """Where each passage of `dataset` lies in the one document of `concatenate`: code points, by its id."""
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
    """Each passage's id and its whole text."""
    if dataset.corpus is None:
        return [(d.id, _join_title(d.title if titles else "", d.text)) for d in dataset.documents]
    found = []
    for entry, where in objects(dataset.corpus):
        title, text = entry.get("title") or "", entry.get("text")
        if not isinstance(title, str) or not isinstance(text, str):
            raise DocumentError(f"{where}: a passage needs a text, and its title is a text")
        found.append((identity(entry, where), _join_title(title if titles else "", text)))
    return found


def _join_title(title: str, text: str) -> str:
    return f"{title}\n{text}" if title else text
