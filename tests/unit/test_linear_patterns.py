"""Regular expressions of the package take time in proportion to the text, whatever the text is.

A pattern that takes quadratic time holds the interpreter, and with it a whole service, for minutes over some
kilobytes that a stranger sent. Every pattern in the package is found in its source, so that a new one is
tested too, and is timed on texts that are made from the pattern itself.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.support.patterns import Found, collected, methods, recipes

FOUND, UNKNOWN = collected()
MADE_AT_RUN_TIME = {
    # Words that re.escape has made literal, with one run of blanks or marks between two: nothing overlaps.
    ("ketrag_fast.query.reason_text", "as_written"),
    ("tests.oracles.noderag.search", "_names"),
}
BOUNDED = {
    # The package applies these to the first 4,096 bytes of a file, and to a heading's at most 300 characters.
    "ketrag_fast.readers.file_types _HTML": 4_096,
    "ketrag_fast.readers.file_types _MAIL": 4_096,
    "ketrag_fast.readers.html _DECLARED": 4_096,
    "ketrag_fast.readers.html _XML_DECLARED": 4_096,
    "ketrag_fast.systems.cg_rag.crossrefs slug": 300,
}
"""Patterns that see texts of a bounded length: on these they have to be fast, and need not be linear."""
_SCREENED = (16, 24, 32, 48, 64, 100, 150, 225, 340, 500, 2_000)
"""Characters of the texts on which all are tried; what is slow on one of these is looked at closely. Small
steps: a pattern that takes exponential time is found before it takes for ever.
"""
_SLOW = 0.25e-6
"""Seconds for each character from which on a text is looked at closely; most patterns take a tenth."""
_LARGEST = 32_000
_ENOUGH = 0.05
"""Seconds that are measured well on any machine."""
_MOST = 25e-6
"""Seconds for each character at the most: 0.5 s for 20 kB."""


def _text(recipe: tuple[str, str, str], size: int, kind: type) -> Any:
    begin, unit, end = recipe
    text = begin + unit * max((size - len(begin)) // len(unit), 1) + end
    return text.encode("latin-1", "replace") if kind is bytes else text


def _seconds(found: Found, method: str, text: Any, tries: int) -> float:
    call = getattr(found.pattern, method)
    best = float("inf")
    for _ in range(tries):
        begin = time.process_time()
        result = call(text)
        if method == "finditer":
            for _ in result:
                pass
        best = min(best, time.process_time() - begin)
        if best > 20 * _ENOUGH:
            break
    return best


def _growth(found: Found, method: str, recipe: tuple[str, str, str]) -> tuple[float, int, float]:
    """(how much longer four times the text takes, its size, its seconds), the text growing until it takes
    long enough to be measured.
    """
    size, kind = 16, type(found.pattern.pattern)
    while True:
        spent = _seconds(found, method, _text(recipe, size, kind), 2)
        if spent > _ENOUGH or size >= _LARGEST:
            quarter = _seconds(found, method, _text(recipe, size // 4, kind), 3)
            return spent / max(quarter, 1e-9), size, spent
        size = size + 4 if size < 32 else min(size * 4 // 3, _LARGEST)


def slow_recipes(found: Found) -> list[str]:
    """The texts on which a pattern is not linear, in words."""
    kind = type(found.pattern.pattern)
    told = []
    most = BOUNDED.get(f"{found.module} {found.name}")
    for method in methods(found) if most is not None else ():
        for recipe in recipes(found.pattern):
            spent = _seconds(found, method, _text(recipe, most or 0, kind), 1)
            if (
                spent > _ENOUGH
                and (spent := _seconds(found, method, _text(recipe, most or 0, kind), 3)) > _ENOUGH
            ):
                told.append(f"{method} of {recipe!r}: {spent:.2f} s for {most:,} characters")
    for method in methods(found) if most is None else ():
        suspicious = recipes(found.pattern)
        for size in _SCREENED:
            later = []
            for recipe in suspicious:
                spent = _seconds(found, method, _text(recipe, size, kind), 1)
                if spent > max(_SLOW * size, 100e-6):
                    spent = _seconds(found, method, _text(recipe, size, kind), 2)
                if spent <= max(_SLOW * size, 100e-6):
                    later.append(recipe)
                    continue
                ratio, length, seconds = _growth(found, method, recipe)
                # Four times the text: a linear pattern takes 4 times as long, a quadratic one 16 times.
                if (ratio > 8 and seconds > _ENOUGH) or seconds > _MOST * length:
                    told.append(f"{method} of {recipe!r}: {seconds:.2f} s for {length:,} characters")
                    if len(told) >= 3:
                        return told
            suspicious = later
    return told


@pytest.mark.parametrize("found", FOUND, ids=str)
def test_a_pattern_takes_time_in_proportion_to_the_text(found: Found) -> None:
    assert not slow_recipes(found)


def test_no_pattern_is_overlooked() -> None:
    assert len(FOUND) > 100
    assert {(one.module, one.function) for one in UNKNOWN} == MADE_AT_RUN_TIME
