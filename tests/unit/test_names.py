"""Names found among the packed ones, beside a plain search of decoded names."""

from __future__ import annotations

from difflib import get_close_matches

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.kernels.text import pack
from ketrag_fast.systems.shared.name_lookup import Names

LETTERS = st.text("ab ßẞéσςİıK中", min_size=1, max_size=6)


def packed(names: list[str]) -> Names:
    return Names(*pack(names))


def stored(names: list[str]) -> list[str]:
    """As the skeleton keeps them: in upper case, each once, none empty."""
    return list(dict.fromkeys(" ".join(name.split()).upper() for name in names if name.strip()))


@given(st.lists(LETTERS, max_size=12), LETTERS)
def test_a_name_is_found_whatever_its_case(given_names: list[str], asked: str) -> None:
    names = stored(given_names)
    known = packed(names)
    assert [known[i] for i in range(len(known))] == names
    for name in (asked, asked.lower(), *names, *(name.casefold() for name in names)):
        wanted = " ".join(name.split()).casefold()
        upper = " ".join(name.split()).upper()  # as it would be stored: a dotless i is an I then
        equal = [i for i, other in enumerate(names) if other == upper or other.casefold() == wanted]
        found = known.find(name)
        assert (found is None) == (not equal)
        assert found is None or found in equal
    for number, name in enumerate(names):
        assert known.find(name) == number


@given(st.lists(LETTERS, max_size=12), LETTERS)
def test_among_few_names_the_near_ones_are_those_of_all(given_names: list[str], asked: str) -> None:
    names = stored(given_names)
    wanted = " ".join(asked.split()).casefold()
    if not wanted:
        return
    folded = [name.casefold() for name in names]
    inside = sorted((len(name), i) for i, name in enumerate(names) if wanted in name.casefold())
    close = get_close_matches(wanted, folded, 5, 0.6)
    found = packed(names).near(asked)
    assert found[: len(inside)] == [names[i] for _, i in inside[:5]]
    assert {name.casefold() for name in found} <= {folded[i] for _, i in inside} | set(close)
    assert len(found) == min(5, len(set(found)))
    assert bool(found) == bool(inside or close)


def test_among_many_names_those_of_like_spelling_are_compared() -> None:
    rng = np.random.default_rng(3)
    names = stored(["".join(rng.choice(list("abcdefghij"), 9)) for _ in range(30_000)])
    names[20_000] = "ROALD AMUNDSEN"
    names[25_000] = "FRIDTJOF NANSEN OF NORWAY"
    known = packed(names)
    assert known.find("roald  amundsen") == 20_000
    assert known.near("Amundsn")[0] == "ROALD AMUNDSEN"
    assert known.near("roald amudsen")[0] == "ROALD AMUNDSEN"
    assert known.near("nansen")[0] == "FRIDTJOF NANSEN OF NORWAY"
    containing = sorted((name for name in names if "ABC" in name), key=len)
    assert set(known.near("abc")) <= set(containing)
    assert known.near("z" * 10_000) == known.near("") == known.near("\ud800") == []
    assert known.find("\ud800") is known.find("") is None


@pytest.mark.parametrize("names", [[], ["A"], ["A", "B"]])
def test_next_to_no_names(names: list[str]) -> None:
    known = packed(names)
    assert known.find("nobody") is None
    assert known.near("nobody") == []
    assert [known.find(name.lower()) for name in names] == list(range(len(names)))
