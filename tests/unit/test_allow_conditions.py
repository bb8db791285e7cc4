"""Conditions of `allow`: one that every document passes is an error, one that none passes shows nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.base.filters import Columns, allow_condition, condition_of
from ketrag_fast.base.filters.allow import MOST_ATOMS, holds_always
from ketrag_fast.errors import InputError

EVERYTHING: list[Any] = [
    {},
    {"$or": [{"team": "sales"}, {}]},
    "team=sales or team!=sales",
    "year<5 or not year<5",
    "team exists or not team exists",
]
NOT_EVERYTHING: list[Any] = [
    {"team": "sales"},
    {"$not": {}},
    "team!=''",
    "not draft=true",
    "year<5 or year>=5",
]
"""Hand-made cases of what the property test below does not draw."""


@pytest.mark.parametrize("given", EVERYTHING, ids=repr)
def test_what_holds_for_every_document_is_an_error(given: Any) -> None:
    with pytest.raises(InputError, match=r"allow: .*every document") as caught:
        allow_condition(given)
    assert caught.value.hint and "group=sales" in caught.value.hint


@pytest.mark.parametrize("given", NOT_EVERYTHING, ids=repr)
def test_what_some_document_may_fail_is_a_condition(given: Any) -> None:
    allow_condition(given)


@pytest.mark.parametrize(
    "given",
    ["", "  ", "()", "none", {"$and": []}, {"$or": []}, {"team": {}}, {"$all": 1}, [], 3, {"a": None}],
)
def test_what_cannot_be_read_is_an_error(given: Any) -> None:
    with pytest.raises(InputError, match=r"^allow: "):
        allow_condition(given)


def test_documents_without_the_field() -> None:
    """As in a filter: they pass `$ne`, `$nin` and `not`, and no other comparison."""
    columns = Columns([{"team": "hr"}, {"team": "sales"}, {}])
    for text, wanted in {
        "team!=hr": [False, True, True],
        "not team=hr": [False, True, True],
        "team!=hr and team exists": [False, True, False],
        "team in (sales, all)": [False, True, False],
    }.items():
        assert columns.fitting(allow_condition(text)).tolist() == wanted


def test_many_comparisons_take_no_time() -> None:
    """The outcomes of more than a few comparisons are not enumerated; empty parts are still found."""
    many = {"$or": [{f"f{n}": n} for n in range(5 * MOST_ATOMS)]}
    allow_condition(many)
    with pytest.raises(InputError, match="every document"):
        allow_condition({"$or": [*many["$or"], {}]})


_VALUES = st.sampled_from([1, 2, "1", True])
_TESTS = st.one_of(
    st.builds(lambda v: {"f": v}, _VALUES),
    st.builds(lambda v: {"g": {"$ne": v}}, _VALUES),
    st.builds(lambda v: {"f": {"$in": v}}, st.lists(_VALUES, max_size=2)),
    st.builds(lambda v: {"f": {"$nin": v}}, st.lists(_VALUES, max_size=2)),
    st.builds(lambda v: {"g": {"$exists": v}}, st.booleans()),
    st.just({}),
)
_CONDITIONS = st.recursive(
    _TESTS,
    lambda inner: st.one_of(
        st.builds(lambda parts: {"$and": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"$or": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda part: {"$not": part}, inner),
    ),
    max_leaves=6,
)


@given(_CONDITIONS)
def test_it_never_errs_on_what_some_document_fails(data: dict[str, Any]) -> None:
    """Against the evaluation itself: over documents with all sets of these values nothing always held fails,
    and what all of them pass is refused.
    """
    values: list[Any] = [1, 2, "1", True]
    sets = [[v for n, v in enumerate(values) if bits >> n & 1] for bits in range(16)]
    rows = [{"f": f, "g": g} for f in sets for g in sets]
    condition = condition_of(data)
    fits = Columns(rows).fitting(condition)
    assert holds_always(condition) == bool(fits.all())
