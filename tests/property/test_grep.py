"""The kernel of exact search equals a search by Python's `re` in each line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.grep import matching_lines

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels.text import pack

LETTERS = "ab é\n\r.x_"
ATOMS = st.sampled_from(["a", "b", "é", ".", "x", "[ab]", "[^a]", r"\s", r"\w", "^", "$", r"\b", " ", "_"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from("*+?")).map(lambda two: f"(?:{two[0]}){two[1]}"),
    ),
    max_leaves=6,
)
TEXTS = st.text(LETTERS.replace("\r", ""), max_size=40)


@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=4), st.booleans(), st.booleans(), st.booleans())
def test_lines_and_counts_equal_the_oracle(
    pattern: str, texts: list[str], ignore_case: bool, words: bool, fixed: bool
) -> None:
    expected = [
        (string, number, line)
        for string, text in enumerate(texts)
        for number, line in matching_lines(pattern, text, ignore_case=ignore_case, words=words, fixed=fixed)
    ]
    compiled = _core.Pattern(pattern, any_case=ignore_case, words=words, literal=fixed)
    packed = pack(texts)
    found = compiled.lines(packed, 1 << 60, 1 << 60)
    assert [(row[0], row[1], row[4]) for row in found] == expected
    for string, _, start, end, line, cut, marks in found:
        assert texts[string][start:end] == line and cut == 0
        assert all(0 <= a < b <= len(line) for a, b in marks)
    counts = [sum(one[0] == string for one in expected) for string in range(len(texts))]
    assert compiled.counts(packed, 1 << 60).tolist() == counts
    assert compiled.counts(packed, 1).tolist() == [min(count, 1) for count in counts]
    assert [row[:2] for row in compiled.lines(packed, 1 << 60, 2)] == [row[:2] for row in found[:2]]


def test_line_ends_of_windows_do_not_belong_to_the_line() -> None:
    found = _core.Pattern("sync$").lines(pack(["fsync\r\nsync x\r\n"]), 9, 9)
    assert [(row[1], row[4]) for row in found] == [(0, "fsync")]


def test_patterns_that_would_backtrack_take_linear_time_and_others_are_refused() -> None:
    text = "a" * 5_000
    assert _core.Pattern("(a*)*b").counts(pack([text]), 1).tolist() == [0]
    for pattern, reason in (("a(", "unclosed group"), (r"(a)\1", "backreferences"), ("(?=a)", "look-around")):
        with pytest.raises(InputError, match=reason):
            _core.Pattern(pattern)
    with pytest.raises(InputError, match="too large"):
        _core.Pattern(r"\w{1000}{1000}")
