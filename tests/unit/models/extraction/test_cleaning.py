"""Cleaning takes a short way for most texts, with the result of the long one."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.models.extraction import records as cleaning

TEXTS = st.text(st.sampled_from("ab  &;lt\t\n\x00\x7f\x85é\u00a0\u2003")) | st.text()


def plain(text: str, escaped: bool) -> str:
    """The steps one by one, as `clean` documents them."""
    text = re.sub(r"\s+", " ", text.strip())
    text = html.unescape(text) if escaped else text
    text = re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", "", re.sub(r"\s+", " ", text))
    return re.sub(r"\s+", " ", text).strip()


@given(TEXTS, st.booleans())
def test_the_short_way_changes_nothing(text: str, escaped: bool) -> None:
    assert cleaning.clean(text, escaped=escaped) == plain(text, escaped)


def test_plain_texts_take_it() -> None:
    assert cleaning._is_clean("Fridtjof Nansen, 1893.")
    assert not any(map(cleaning._is_clean, ("a  b", " a", "a&lt;", "a\tb", "é")))
