"""The order of documents: the same passages in another order have the same ranks and scores, to the bit."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from tests.golden.make_walk import SETS, read_texts
from tests.parity.test_links import build

from ketrag_fast.kernels import links as kernel

DEPTH = 100


def rankings(units: list[tuple[str, list[str]]], ids: list[int], questions: list[str], threads: int) -> list[list[object]]:
    """Return for each question its runs of units with equal scores, with and without the walk."""
    links = build(units)
    lengths = np.log([len(title) + sum(map(len, group)) + 1.0 for title, group in units])
    found = kernel.bm25(links, questions, DEPTH, threads=threads)
    found += kernel.walk(links, questions, DEPTH, lengths=lengths, threads=threads)
    rows = [list(zip(scores.tolist(), units.tolist(), strict=True)) for units, scores in found]
    runs = [[(score, [ids[at] for _, at in run]) for score, run in groupby(row, lambda one: one[0])] for row in rows]
    # The last run may be cut, and ties go to the smaller id.
    return [[(score, sorted(run)) for score, run in row[:-1]] for row in runs]


@pytest.mark.parametrize("name", SETS)
def test_another_order_of_the_passages_changes_no_score(name: str) -> None:
    texts = read_texts(name)
    units = list(zip(texts["titles"], texts["sentences"], strict=True))
    questions = [query["text"] for query in texts["queries"]]
    plain = rankings(units, list(range(len(units))), questions, 1)
    turned = np.random.default_rng(3).permutation(len(units)).tolist()
    assert rankings([units[at] for at in turned], turned, questions, 2) == plain
