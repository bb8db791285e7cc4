"""The order of documents: the same passages in another order have the same scores, to the bit."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.parity.test_links import build

from ketrag_fast.kernels import links as kernel

SETS = ("musique-train100", "hotpotqa-train100")
TESTS = Path(__file__).parents[1]


def read_texts(name: str) -> dict[str, Any]:
    """Return the texts of a set from tests/data/walk."""
    found: dict[str, Any] = json.loads(
        gzip.decompress((TESTS / "data/walk" / f"{name}.json.gz").read_bytes())
    )
    return found


DEPTH = 100
# Round 2 of the walk begins at the 20 best matches of few words, among which equal scores are common.
ONE_ROUND = {"rest": 0.0, "rest_pool": 0.0, "rest_partners": 0.0}

Scores = list[dict[int, float]]


def rankings(units: list[tuple[str, list[str]]], ids: list[int], questions: list[str]) -> list[Scores]:
    """Return the scores by BM25, by the walk without its second round, and by the whole walk."""
    links = build(units)
    lengths = np.log([len(title) + sum(map(len, group)) + 1.0 for title, group in units])
    found = [
        kernel.bm25(links, questions, DEPTH),
        kernel.walk(links, questions, DEPTH, lengths=lengths, numbers=ONE_ROUND, threads=1),
        kernel.walk(links, questions, DEPTH, lengths=lengths, threads=2),
    ]
    # The walk rounds scores to multiples of 2^-30, and raises the first of equal ones by a last bit.
    rounded = [found[0], *([(u, np.rint(s * 2.0**30) / 2.0**30) for u, s in hits] for hits in found[1:])]
    return [
        [{ids[at]: score for at, score in zip(u.tolist(), s.tolist(), strict=True)} for u, s in hits]
        for hits in rounded
    ]


@pytest.mark.parametrize("name", SETS)
def test_another_order_of_the_passages_changes_no_score(name: str) -> None:
    texts = read_texts(name)
    units = list(zip(texts["titles"], texts["sentences"], strict=True))
    questions = [query["text"] for query in texts["queries"]]
    plain = rankings(units, list(range(len(units))), questions)
    turned = np.random.default_rng(3).permutation(len(units)).tolist()
    other = rankings([units[at] for at in turned], turned, questions)
    for rows, other_rows, allowed in zip(plain, other, (0, 0, len(questions) // 10), strict=True):
        differ = 0
        for a, b in zip(rows, other_rows, strict=True):
            # Ties go to the smaller id, so among the last units other ones of the same score may be shown.
            both = a.keys() & b.keys()
            assert len(both) >= 0.9 * len(a) and len(a) == len(b)
            differ += any(a[unit] != b[unit] for unit in both)
        # In the whole walk, units with equal scores change places where round 2 begins.
        assert differ <= allowed
