"""Decompositions: replies in every form that models give, and those that are made by rules."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.models.extraction.records import EntityRecord, Extraction, RelationRecord
from ketrag_fast.systems.papers.noderag.decompositions import by_records, by_rules
from ketrag_fast.systems.papers.noderag.units import (
    MAX_UNITS,
    Decomposition,
    Relationship,
    SemanticUnit,
    dumps,
    key_of,
    loads,
    parse_decomposition,
)

SOURCE = "Fram\nThe Fram was built by Colin Archer in Larvik. Amundsen, Roald sailed her south."


def unit(**fields: object) -> str:
    return json.dumps(
        {"units": [{"unit": "The Fram was built.", "entities": [], "relationships": [], **fields}]}
    )


def only(text: str) -> SemanticUnit:
    found = parse_decomposition(text, SOURCE)
    assert found is not None
    return found.value.units[0]


def test_a_clean_reply() -> None:
    rows = [["Fram", "was built by", "Colin Archer"]]
    found = only(unit(entities=["Fram", "Colin Archer"], relationships=rows))
    assert found.entities == ("Fram", "Colin Archer")
    assert found.relationships == (Relationship("Fram", "was built by", "Colin Archer"),)
    assert found.malformed == ()


def test_the_published_form_is_read_too() -> None:
    item = {
        "semantic_unit": "The Fram was built.",
        "entities": ["FRAM"],
        "relationships": ["FRAM, built in, LARVIK"],
    }
    found = only(json.dumps({"Output": [item]}))
    assert found.relationships == (Relationship("FRAM", "built in", "LARVIK"),)


@pytest.mark.parametrize(
    ("given_", "kept", "malformed"),
    [
        ("Fram, by, Colin Archer", 1, 0),
        ({"source": "Fram", "relation": "by", "target": "Colin Archer"}, 1, 0),
        ({"source": "Fram", "target": "Colin Archer"}, 1, 0),
        ("Fram", 0, 1),
        ("Fram, built", 0, 1),
        # Four parts or nine between two names of the unit: the middle is joined.
        ("Fram, was built, in Larvik, Colin Archer", 1, 0),
        ("Fram, a, b, c, d, e, f, g, Colin Archer", 1, 0),
        ("Ship, was built, in Larvik, Colin Archer", 0, 1),
        (["Fram", "", "Colin Archer"], 0, 1),
        (["Fram", "is", "Fram"], 1, 0),
        (["Fram", "passed", "Atlantis"], 0, 0),  # Atlantis is not in the text
        (7, 0, 0),
        ([], 0, 0),
        (None, 0, 0),
    ],
)
def test_relationships_of_any_form(given_: object, kept: int, malformed: int) -> None:
    found = only(unit(entities=["Fram", "Colin Archer"], relationships=[given_]))
    assert (len(found.relationships), len(found.malformed)) == (kept, malformed)


def test_names_that_are_none_are_dropped() -> None:
    names = ["Fram", "", "\x00\x1b", "Atlantis", 7, None, "x" * 100_000, ["Fram"], "Fram"]
    reply = parse_decomposition(unit(entities=names), SOURCE)
    assert reply is not None
    assert reply.value.units[0].entities == ("Fram",)
    assert reply.value.dropped == 7


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "{", "[]", "7", '{"units": 7}', '{"other": []}', "<think>hm</think>", '{"units"', "null"],
)
def test_replies_of_no_use(text: str) -> None:
    assert parse_decomposition(text, SOURCE) is None


def test_a_reply_that_was_cut_keeps_what_was_whole() -> None:
    whole = unit(entities=["Fram"])
    two = whole[:-2] + ', {"unit": "Amundsen sailed", "entities": ["Amund'
    found = parse_decomposition(two, SOURCE)
    assert found is not None and found.how == "repaired"
    assert [one.text for one in found.value.units] == ["The Fram was built."]
    assert found.value.dropped == 1


def test_empty_units_and_too_many_are_dropped() -> None:
    items = [{"unit": "", "entities": ["Fram"], "relationships": []}] * 3
    items += [{"unit": f"Fram {k}", "entities": ["Fram"] * 10_000, "relationships": []} for k in range(2)]
    found = parse_decomposition(json.dumps({"units": items}), SOURCE)
    assert found is not None
    assert [one.text for one in found.value.units] == ["Fram 0", "Fram 1"]
    assert found.value.dropped == 3
    many = [{"unit": f"u{k}", "entities": [], "relationships": []} for k in range(MAX_UNITS + 5)]
    cut = parse_decomposition(json.dumps({"units": many}), SOURCE)
    assert cut is not None and (len(cut.value.units), cut.value.dropped) == (MAX_UNITS, 5)


KEYS = st.sampled_from(["unit", "units", "entities", "relationships", "x"])
LEAVES = st.none() | st.booleans() | st.floats() | st.text(max_size=8)


def nested(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(values, max_size=4) | st.dictionaries(KEYS, values, max_size=4)


@given(st.recursive(LEAVES, nested, max_leaves=12))
def test_any_json_gives_a_result_that_can_be_kept(value: object) -> None:
    found = parse_decomposition(json.dumps({"units": value}), SOURCE)
    if found is not None:
        assert loads(dumps(found.value)) == found.value


@pytest.mark.parametrize(
    "text", ["", "{}", '{"u": 7}', '{"u": [[1, [], [], []]], "d": 0}', '{"u": [], "d": "x"}']
)
def test_damaged_records_are_none(text: str) -> None:
    assert loads(text) is None


def test_sentences_are_units_by_rules() -> None:
    found = by_rules("Fram", "The Fram was built by Colin Archer. She sailed to Antarctica in 1910.")
    assert [one.text for one in found.units] == [
        "The Fram was built by Colin Archer.",
        "She sailed to Antarctica in 1910.",
    ]
    assert found.units[0].entities == ("Fram", "Colin Archer")
    assert found.units[0].relationships[0] == Relationship("Fram", "was built by", "Colin Archer")
    # "She" is the ship that the text is about.
    assert found.units[1].entities[0] == "Fram"
    assert {row.target for row in found.units[1].relationships} == {"Antarctica", "1910"}
    assert by_rules("", "") == Decomposition()
    assert by_rules("", "\ud800 ... !") == by_rules("", "? ... !")


@given(st.text(max_size=40), st.text(max_size=300))
def test_any_text_has_units_that_can_be_kept(title: str, text: str) -> None:
    found = by_rules(title, text)
    assert found == by_rules(title, text)
    assert loads(dumps(found)) == found


def test_recorded_names_stand_in_their_sentences() -> None:
    recorded = Extraction(
        (EntityRecord("Fram"), EntityRecord("Colin Archer"), EntityRecord("Larvik")),
        (
            RelationRecord("Fram", "Colin Archer", "Fram was built by Colin Archer"),
            RelationRecord("Larvik", "Norway", "Larvik lies in Norway."),
        ),
        2,
    )
    text = "The Fram is a ship. She was built by Colin Archer. The Fram and Colin Archer met."
    found = by_records("Fram", text, recorded)
    names = [("Fram",), ("Colin Archer",), ("Fram", "Colin Archer"), ("Larvik", "Norway")]
    assert [one.entities for one in found.units] == names
    assert found.units[2].relationships == (Relationship("Fram", "was built by", "Colin Archer"),)
    assert found.units[3].text == "Larvik lies in Norway."
    assert found.dropped == 2


def test_keys_of_names() -> None:
    assert key_of("  roald \n amundsen ") == key_of("ROALD AMUNDSEN") == "ROALD AMUNDSEN"
    assert key_of("ﬁn") == "FIN"
    assert key_of("") == key_of(" \t") == ""
