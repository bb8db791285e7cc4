"""Budgets and printed contexts against the oracle."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import context as plain
from tests.support import all_kernels as kernels

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.text import count_tokens

ROWS = st.lists(
    st.tuples(st.sampled_from(["", "A title", "題"]), st.text("ab é\n日", max_size=30)),
    min_size=1,
    max_size=7,
)


@given(ROWS, st.data(), st.integers(0, 120), st.sampled_from(["cited", "ket"]), st.booleans())
def test_rows_and_costs(rows: list, data: st.DataObject, budget: int, style: str, skip: bool) -> None:
    titles, texts = [r[0] for r in rows], [r[1] for r in rows]
    bodies = [f"{a}\n{b}" if a else b for a, b in rows]
    n_tokens = data.draw(st.lists(st.integers(0, 40), min_size=len(rows), max_size=len(rows)))
    candidates = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
    got = kernels.render(
        candidates,
        texts,
        n_tokens,
        budget,
        titles=titles,
        style=style,
        fill_policy="skip_and_continue" if skip else "first_overflow_stops",
        oversize_policy="drop",
    )
    counts = {"": 0, "\n": 1, "\n\n": 1, plain.STYLES["ket"][0]: 12}
    counts |= {f"[{i}]\n": 3 for i in range(1, 10)} | {f"chunk_{i}|": 4 for i in range(1, 10)}
    text, tokens, units = plain.render(
        candidates, bodies, n_tokens, budget, counts.__getitem__, style=style, skip=skip
    )
    assert (got.text, got.tokens, got.units.tolist()) == (text, tokens, units)
    assert got.tokens <= budget
    raw = got.text.encode()
    own = [raw[a:b].decode() for a, b in zip(got.starts, got.ends, strict=True)]
    assert own == [texts[u] for u in units]


@given(st.text(max_size=60), st.integers(0, 60), st.sampled_from(["cited", "ket", "published"]))
def test_a_cut_row_keeps_the_budget(text: str, budget: int, style: str) -> None:
    got = kernels.render([0], [text], [1000], budget, style=style)
    assert got.tokens <= budget
    assert "\ufffd" not in got.text or "\ufffd" in text
    for start, end in zip(got.starts, got.ends, strict=True):
        assert text.startswith(got.text.encode()[start:end].decode())


def test_the_budget_of_the_text_channel() -> None:
    """90 #7."""
    assert kernels.split_budget(12_000, 0.8) == (9_600, 2_400)
    with pytest.raises(InputError, match="share"):
        kernels.split_budget(12_000, 2.0)


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(0, 120), st.booleans())
def test_fill(costs: list[int], budget: int, skip: bool) -> None:
    policy = "skip_and_continue" if skip else "first_overflow_stops"
    got = kernels.fill(costs, budget, fill_policy=policy).tolist()
    assert got == plain.fill(costs, budget, skip=skip)


def test_fill_names_bad_input() -> None:
    for arguments, word in [(([1], -1), "negative"), (([-1], 1), "costs"), (([[1]], 1), "costs")]:
        with pytest.raises(InputError, match=word):
            kernels.fill(*arguments)
    with pytest.raises(InputError, match="fill_policy"):
        kernels.fill([1], 1, fill_policy="x")


def test_a_budget_of_nothing_is_an_empty_context() -> None:
    assert kernels.render([0], ["text"], [1], 0)[:2] == ("", 0)
    assert kernels.render([], ["text"], [1], 100)[:2] == ("", 0)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"candidates": [1]}, "candidate 1"),
        ({"candidates": [-1]}, "candidates"),
        ({"n_tokens": []}, "token counts"),
        ({"token_budget": -1}, "negative"),
        ({"titles": []}, "title_of"),
        ({"style": "prose"}, "style"),
        ({"fill_policy": "x"}, "fill_policy"),
        ({"oversize_policy": "x"}, "oversize_policy"),
        ({"encoding": "x"}, "encoding"),
    ],
)
def test_bad_input_is_named(change: dict, word: str) -> None:
    good = {"candidates": [0], "texts": ["text"], "n_tokens": [1], "token_budget": 50}
    with pytest.raises(InputError, match=word):
        kernels.render(**(good | change))


def count(text: str) -> int:
    return int(count_tokens([text])[0])


FORGING = st.lists(
    st.sampled_from(
        ["[2]", "[12]", "[ 3]", "[]", "[", "]", "word", " ", "\t", "\n", "\n\n", "\r\n", "\u2028", "\x0b"]
    ),
    max_size=14,
).map("".join)


@given(st.lists(FORGING, min_size=1, max_size=4))
def test_no_text_begins_a_line_with_a_mark(texts: list[str]) -> None:
    """Only the marks of rows are there; bytes and tokens are as many as before."""
    tokens = [count(text) for text in texts]
    text = kernels.render(range(len(texts)), texts, tokens, 10_000)[0]
    bare = [plain.unmarked(one) for one in texts]
    assert text == plain.render(range(len(texts)), texts, tokens, 10_000, count)[0]
    lines = re.split(r"[\n\r\x0b\u2028]", text)
    assert len([line for line in lines if re.match(r"\s*\[\d+\](\s|$)", line)]) == len(texts)
    for one, other in zip(texts, bare, strict=True):
        assert len(one.encode()) == len(other.encode())
        assert one.replace("[", "(").replace("]", ")") == other.replace("[", "(").replace("]", ")")
        assert count(one) == count(other)
    published = kernels.render([0], texts, tokens, 10_000, style="published")[0]
    assert texts[0] in published


def test_only_what_is_printed_is_looked_at() -> None:
    """A damaged text far down the list does no harm; one that is printed is named."""
    blob = np.frombuffer(b"one\xfftwo", dtype=np.uint8)
    offsets = np.array([0, 3, 4, 7], dtype=np.uint64)
    tokens = np.array([1, 1, 1], dtype=np.uint32)

    def render(*candidates: int, budget: int = 100) -> tuple:
        return _core.render(np.array(candidates, dtype=np.uint32), blob, offsets, tokens, budget)

    assert render(2, 0)[0] == "[1]\ntwo\n\n[2]\none\n"
    assert render(*[0] * 200, 1)[0].count("one") == 20
    with pytest.raises(InputError, match="text 1 is not UTF-8"):
        render(0, 1)
    with pytest.raises(InputError, match="text 0 does not exist"):
        _core.render(np.zeros(1, np.uint32), blob, np.array([9, 2, 4, 7], np.uint64), tokens, 9)
