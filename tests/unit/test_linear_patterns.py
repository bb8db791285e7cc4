"""Regular expressions of the package take time in proportion to the text, whatever the text is.

A pattern that takes quadratic time blocks the interpreter, and a whole service with it, for minutes on a few
kilobytes of input. Patterns are read from the source, so that a new one is tested too.
"""

from __future__ import annotations

import re

import pytest

from tests.support.linear_time import find_slow_texts
from tests.support.patterns import PackagePattern, application_methods, collect_patterns

PATTERNS, RUNTIME_PATTERNS = collect_patterns()
BUILT_AT_RUN_TIME = {
    # Keys of the table that the package writes itself, in a settings file of the user.
    ("ketrag_fast.apps.cli.assistants", "_with_table"),
    # Terms that re.escape has made literal, with one run of blanks or punctuation between two: no overlap.
    ("ketrag_fast.query.explanations", "as_written"),
    # A pair of syllables that re.escape has made literal, with two spellings of a vowel.
    ("ketrag_fast.query.explanations", "_part"),
    # A pair of characters that re.escape has made literal.
    ("ketrag_fast.query.search", "_marks"),
    # Patterns of .gitignore files; tests/unit/readers/test_ignore_patterns.py times hostile ones.
    ("ketrag_fast.readers.ignored", "ignore_spec"),
}
BOUNDED = {
    # Applied to the first 4,096 bytes of a file, and to at most 300 characters of a heading.
    "ketrag_fast.readers.file_types _HTML": 4_096,
    "ketrag_fast.readers.file_types _MAIL": 4_096,
    "ketrag_fast.readers.html_encoding _DECLARED": 4_096,
    "ketrag_fast.readers.html_encoding _XML_DECLARED": 4_096,
    "ketrag_fast.systems.cg_rag.crossrefs slug": 300,
    "ketrag_fast.query.themes.question _RULE": 300,
}
"""Patterns that only get texts of a bounded length: they must be fast on these, not linear."""


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_a_pattern_takes_time_in_proportion_to_the_text(pattern: PackagePattern) -> None:
    bounded = BOUNDED.get(f"{pattern.module} {pattern.name}")
    for method in application_methods(pattern):
        assert not find_slow_texts(pattern.pattern, method, bounded)


def test_no_pattern_is_overlooked() -> None:
    assert len(PATTERNS) > 100
    assert {(one.module, one.function) for one in RUNTIME_PATTERNS} == BUILT_AT_RUN_TIME
    assert {f"{one.module} {one.name}" for one in PATTERNS} >= BOUNDED.keys()


@pytest.mark.parametrize(
    ("source", "method"),
    [
        (r"\s+$", "finditer"),  # quadratic: a run of blanks is tried from each of them
        (r"(?:ab|a|b)+c", "fullmatch"),  # exponential
    ],
)
def test_the_check_finds_patterns_that_are_not_linear(source: str, method: str) -> None:
    assert find_slow_texts(re.compile(source), method)
    assert find_slow_texts(re.compile(source.encode()), method)
