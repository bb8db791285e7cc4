"""Regular expressions of the package take time in proportion to the text, whatever the text is.

A pattern that takes quadratic time blocks the interpreter, and a whole service with it, for minutes on a few
kilobytes of input. Patterns are read from the source, so that a new one is tested too.

Times are only compared with each other, and the fastest of several tries counts, so a slow or busy machine
changes no verdict: a pattern fails when a text four times as long takes more than eight times as long in each
of several measurements, or when a character costs many times what it costs a simple pattern.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

from ketrag_fast.query.themes import question
from tests.support.patterns import (
    PackagePattern,
    Recipe,
    application_methods,
    collect_patterns,
    hostile_recipes,
)

_SHORT, _LONG = 125, 1_000
"""Repeats in the two texts that screen a recipe."""
_SUSPICIOUS = 12
"""Growth between them from which a recipe is measured closely: 8 is linear, 64 is quadratic."""
_LARGEST = 32_000
_MEASURABLE = 0.005
"""Seconds that are measured well on any machine."""
_NOT_LINEAR = 8
"""Growth over four times the text: 4 is linear, 16 is quadratic."""
_ROUNDS = 8
"""Measurements that all have to look bad; each improves the fastest times."""
_HANGS = 1.0
"""CPU seconds after which a match is stopped. A linear pattern needs a thousandth of it."""
_COSTLY = 1_000
"""Most that a character may cost, as a multiple of its cost to a simple pattern."""


class TooSlow(Exception):
    """A match was stopped."""


@contextmanager
def _time_limit() -> Iterator[None]:
    """Stop a match that takes exponential time; `re` looks for signals while it works."""

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _HANGS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _build_text(recipe: Recipe, repeats: int, kind: type) -> Any:
    begin, unit, end = recipe
    text = begin + unit * repeats + end
    return text.encode("latin-1", "replace") if kind is bytes else text


def _measure(pattern: re.Pattern[Any], method: str, text: Any, tries: int = 1) -> float:
    """Return the processor seconds of the fastest of several tries."""
    call = getattr(pattern, method)
    best = float("inf")
    for _ in range(tries):
        begin = time.thread_time_ns()
        result = call(text)
        if method == "finditer":
            for _ in result:
                pass
        best = min(best, (time.thread_time_ns() - begin) / 1e9)
    return best


@cache
def _simple_cost() -> float:
    """Return the seconds that a character costs a simple pattern on this machine."""
    text = "some words " * 2_000
    return _measure(re.compile(r"[a-z]+ "), "finditer", text, 5) / len(text)


def _is_suspicious(pattern: re.Pattern[Any], method: str, recipe: Recipe) -> bool:
    short, long = (_build_text(recipe, number, type(pattern.pattern)) for number in (_SHORT, _LONG))
    for tries in (1, 3, 5):
        growth = _measure(pattern, method, long, tries) / max(_measure(pattern, method, short, tries), 1e-7)
        if growth <= _SUSPICIOUS:
            return False
    return True


def _describe_slow(pattern: re.Pattern[Any], method: str, recipe: Recipe, bounded: int | None) -> str | None:
    """Return why a pattern is slow on the texts of a recipe, or None if it is not."""
    if bounded is not None:
        return _describe_costly(pattern, method, recipe, bounded)
    return _describe_growth(pattern, method, recipe) if _is_suspicious(pattern, method, recipe) else None


def _describe_growth(pattern: re.Pattern[Any], method: str, recipe: Recipe) -> str | None:
    """Return how a pattern's time grows on longer texts of a recipe, or None if it is linear."""
    kind, repeats = type(pattern.pattern), _LONG
    while (
        _measure(pattern, method, _build_text(recipe, repeats, kind)) < _MEASURABLE
        and repeats * max(len(recipe[1]), 1) < _LARGEST
    ):
        repeats *= 2
    whole, quarter = (_build_text(recipe, number, kind) for number in (repeats, repeats // 4))
    spent = base = float("inf")
    for number in range(_ROUNDS):
        spent = min(spent, _measure(pattern, method, whole, 2))
        base = min(base, _measure(pattern, method, quarter, 3))
        if number and spent <= _NOT_LINEAR * base and spent <= _COSTLY * _simple_cost() * len(whole):
            return None
    return f"{len(whole):,} characters take {spent:.3g} s, {spent / base:.1f} times a quarter of them"


def _describe_costly(pattern: re.Pattern[Any], method: str, recipe: Recipe, size: int) -> str | None:
    """Return why a pattern is slow on a text of bounded size, or None if it is not."""
    text = _build_text(recipe, max((size - len(recipe[0])) // len(recipe[1]), 1), type(pattern.pattern))
    allowed = _COSTLY * _simple_cost() * len(text)
    spent = next((s for tries in (1, 3, 5) if (s := _measure(pattern, method, text, tries)) <= allowed), None)
    return None if spent is not None else f"{len(text):,} characters take more than {allowed:.3g} s"


def find_slow_texts(
    pattern: re.Pattern[Any], method: str = "finditer", bounded: int | None = None
) -> list[str]:
    """Return descriptions of up to three hostile texts on which a pattern is not linear.

    Args:
        pattern: the pattern.
        method: how it is applied: match, fullmatch or finditer.
        bounded: the length of the longest text that it can get; it is then tried on that length only.
    """
    slow: list[str] = []
    for recipe in hostile_recipes(pattern):
        try:
            with _time_limit():
                reason = _describe_slow(pattern, method, recipe, bounded)
        except TooSlow:
            return [*slow, f"{method} of {recipe!r}: stopped after {_HANGS} s"]
        if reason is not None:
            slow.append(f"{method} of {recipe!r}: {reason}")
            if len(slow) >= 3:
                break
    return slow


PATTERNS, RUNTIME_PATTERNS = collect_patterns()
BUILT_AT_RUN_TIME = {
    # Words of a filter that re.escape has made literal, with one run of blanks between two: no overlap.
    ("ketrag_fast.base.filters.columns", "containing"),
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
    # The rules of questions about the whole, which are tested below.
    ("ketrag_fast.query.themes.question", "asks_about_the_whole"),
}
BOUNDED = {
    # Applied to the first 4,096 bytes of a file, and to at most 300 characters of a heading.
    "ketrag_fast.readers.file_types _HTML": 4_096,
    "ketrag_fast.readers.file_types _MAIL": 4_096,
    "ketrag_fast.readers.decode _DECLARED": 4_096,
    "ketrag_fast.readers.decode _XML_DECLARED": 4_096,
    "ketrag_fast.systems.papers.cg_rag.crossrefs slug": 300,
}
"""Patterns that only get texts of a bounded length: they must be fast on these, not linear."""


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_a_pattern_takes_time_in_proportion_to_the_text(pattern: PackagePattern) -> None:
    bounded = BOUNDED.get(f"{pattern.module} {pattern.name}")
    for method in application_methods(pattern):
        assert not find_slow_texts(pattern.pattern, method, bounded)


@pytest.mark.parametrize("pattern", [pattern for _, pattern in question.RULES])
def test_rules_of_questions_take_no_time(pattern: str) -> None:
    assert not find_slow_texts(re.compile(pattern, re.IGNORECASE), "finditer", question.READ)


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
