"""Patterns as in `.gitignore`: the same matches as pathspec's, in linear time."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from ketrag_fast.readers.ignored import ignore_spec
from tests.support.effort import processor_seconds

_PIECES = st.sampled_from(["a", "b", "*", "*", "?", "**", "/", "/", "/**/", "/**/", "[ab]", "[a*]", "\\*"])
_PATTERNS = st.lists(_PIECES, min_size=1, max_size=9).map("".join)
_PATHS = st.lists(st.text("ab*", min_size=1, max_size=4), min_size=1, max_size=5).map("/".join)


def outcome(spec: object, path: str) -> object:
    return spec.check_file(path).include  # type: ignore[attr-defined]


@given(st.lists(_PATTERNS, min_size=1, max_size=3), st.lists(_PATHS, min_size=1, max_size=20), st.booleans())
@example(["*a*a*b"], ["xaxab", "aab", "ab", "d/aab/c"], False)
@example(["a/**/b/**/c"], ["a/b/c", "a/x/b/y/b/z/c/d", "a/b/b/c", "a/c"], False)
@example(["**/a/**/*b*b/**/a"], ["a/bb/a", "b/a/a/bb/bb/a/a"], True)
def test_it_matches_the_same_paths(patterns: list[str], paths: list[str], negate: bool) -> None:
    lines = [*patterns, *([f"!{patterns[0]}"] if negate else [])]
    try:
        wanted = GitIgnoreSpec.from_lines(lines)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            ignore_spec(lines)
        return
    spec = ignore_spec(lines)
    for path in paths:
        for name in (path, f"{path}/"):
            assert outcome(spec, name) == outcome(wanted, name), name


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 40 + "*b", "a" * 255),
        ("?*" * 40 + "b", "a" * 255),
        ("*[a-c]" * 40 + "*d", "abc" * 85),
        ("*" * 60 + "b", "a" * 255),
        ("**/a" * 40 + "/**/b", "a/" * 1_000 + "c"),
        ("x/**/" + "*a*a/**/" * 20 + "b", "x/" + "aaaa/" * 400 + "c"),
    ],
)
def test_no_pattern_takes_more_than_linear_time(pattern: str, path: str) -> None:
    """Each took hours before, on a path that a folder may have."""
    spec = ignore_spec([pattern])
    with processor_seconds(3.0):
        for _ in range(20):
            assert outcome(spec, path) is None


@pytest.mark.parametrize("pattern", ["x[!a]y", "x[^a]y", "x*[!]a]*y", "x[.-0]y"])
def test_a_class_matches_no_slash(pattern: str) -> None:
    spec = ignore_spec([pattern])
    assert outcome(spec, "x/y") is None
    assert outcome(spec, "x.y") is True
