from __future__ import annotations

import json

import pytest

from ketrag_fast.models.extraction.grounding import Source
from ketrag_fast.models.extraction.parse import join_extractions, parse_reply
from ketrag_fast.models.extraction.records import EntityRecord, Extraction, RelationRecord
from tests.support.effort import processor_seconds

SOURCE = "Marie Curie\nMarie Curie was born in Warsaw. In 1903 she shared the Nobel Prize with Pierre."
CURIE = EntityRecord("Marie Curie", "person", "a physicist")
WARSAW = EntityRecord("Warsaw", "place", "a city")
BORN = RelationRecord("Marie Curie", "Warsaw", "was born in", 8.0)
WHOLE = Extraction((CURIE, WARSAW), (BORN,))
TERSE = json.dumps({"e": [list(CURIE), list(WARSAW)], "r": [list(BORN)]})
KEYED = json.dumps({"entities": [CURIE._asdict(), WARSAW._asdict()], "relations": [BORN._asdict()]})


@pytest.mark.parametrize("text", [TERSE, KEYED, f"\n {TERSE} \n"])
def test_every_form_says_the_same(text: str) -> None:
    parsed = parse_reply(text, SOURCE)
    assert (parsed.how, parsed.why, parsed.extraction) == ("clean", None, WHOLE)


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{TERSE}\n```",
        f"Here you are: {TERSE} Anything else?",
        f"Of {{braces}} first. {KEYED}",
        f'<think>maybe {{"e": []}}</think>\n{TERSE}',
        TERSE.replace("]]", "],]").replace("}", ",}"),
        TERSE.replace("was born in", "was born\\_in").replace("\\_", "\\ "),
        f"[{TERSE}]",
    ],
)
def test_what_is_certain_is_repaired(text: str) -> None:
    parsed = parse_reply(text, SOURCE)
    assert (parsed.how, parsed.extraction) == ("repaired", WHOLE)
    assert parsed.why


def test_a_reply_cut_anywhere_keeps_what_was_whole() -> None:
    for text in (TERSE, KEYED):
        most = 0
        for end in range(1, len(text)):
            found = parse_reply(text[:end], SOURCE).extraction
            assert found.entities == WHOLE.entities[: len(found.entities)]
            assert found.relations == WHOLE.relations[: len(found.relations)]
            assert len(found.entities) + len(found.relations) >= most  # a longer piece never says less
            most = len(found.entities) + len(found.relations)
            assert found.dropped <= 1
        assert most == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("I cannot help with that.", "no JSON"),
        ('["Marie Curie"]', "no JSON object"),
        ('{"answer": 42}', "another shape"),
        ('{"e": "none", "r": null}', "another shape"),
        ('{"e": [["Marie Cu', "before the end of its first record"),
        ("{'e': [['Marie Curie', 'person', 'x']], 'r': []}", "broken"),
        ('{"e":[' * 5_000, "before the end|broken"),
        ("[" * 100_000, "no JSON object"),
    ],
)
def test_the_rest_is_unusable_and_says_why(text: str, why: str) -> None:
    parsed = parse_reply(text, SOURCE)
    assert parsed.how == "unusable"
    assert parsed.extraction == Extraction()
    assert any(part in (parsed.why or "") for part in why.split("|"))


def test_nothing_found_is_a_clean_reply() -> None:
    assert parse_reply('{"e":[],"r":[]}', SOURCE).how == "clean"
    assert parse_reply('{"e":[["Warsaw","place","x"]]}', SOURCE).how == "repaired"


@pytest.mark.parametrize(
    ("entity", "kept"),
    [
        (["W" * 10_000, "place", "x"], None),
        (["", "place", "x"], None),
        (["—", "place", "x"], None),
        (["Warsaw"], None),
        ([None, "place", "x"], None),
        ({"type": "place"}, None),
        ("Warsaw", None),
        (["Berlin", "place", "not in the passage"], None),
        ([1903, "date", "a number"], EntityRecord("1903", "date", "a number")),
        ([" War&#115;aw\x00 ", "pl\x9face", " a\n city "], EntityRecord("Warsaw", "place", "a city")),
        (["Marie\nCurie", None, ["?"]], EntityRecord("Marie Curie", "", "")),
        (["Warsaw", "t" * 100, "d " * 5_000], EntityRecord("Warsaw", "", ("d " * 1_000).strip())),
        (["Warsaw", "place", "half \ud800 a pair"], EntityRecord("Warsaw", "place", "half a pair")),
    ],
)
def test_one_entity(entity: object, kept: EntityRecord | None) -> None:
    found = parse_reply(json.dumps({"e": [entity], "r": []}), SOURCE).extraction
    assert found.entities == (() if kept is None else (kept,))
    assert found.dropped == (kept is None)


@pytest.mark.parametrize(
    ("relation", "strength"),
    [
        (["Warsaw", "warsaw", "itself", 5], None),
        (["Warsaw", "", "nothing", 5], None),
        (["Warsaw", "Berlin", "not in the passage", 5], None),
        (["Warsaw", "Pierre"], None),
        (["Warsaw", "Pierre", "x"], 1.0),
        (["Warsaw", "Pierre", "x", "7"], 7.0),
        (["Warsaw", "Pierre", "x", float("nan")], 1.0),
        (["Warsaw", "Pierre", "x", float("-inf")], 1.0),
        (["Warsaw", "Pierre", "x", -3], 1.0),
        (["Warsaw", "Pierre", "x", "strong"], 1.0),
        (["Warsaw", "Pierre", "x", True], 1.0),
        (["Warsaw", "Pierre", "x", 1e300], 1e6),
        (["Warsaw", "Pierre", "x", 10**400], 1.0),
        (["Warsaw", "Pierre", "x", "extra", 3], 3.0),
    ],
)
def test_one_relation(relation: list[object], strength: float | None) -> None:
    found = parse_reply(json.dumps({"e": [], "r": [relation]}), SOURCE).extraction
    assert [record.strength for record in found.relations] == ([] if strength is None else [strength])
    assert found.dropped == (strength is None)


def test_names_from_nowhere_are_dropped() -> None:
    text = '{"e":[["Berlin","place","x"]],"r":[["Berlin","Rome","y",1]]}'
    assert parse_reply(text, SOURCE).extraction == Extraction(dropped=2)


@pytest.mark.parametrize(
    ("name", "text", "there"),
    [
        ("CURIE", "Curie's notes", True),
        ("Curies", "the Curie family", True),
        ("Müller", "Herr Muller", True),
        ("Email", "an e-mail came", True),
        ("U.S.A.", "in the USA", True),
        ("Rome", "a letter from England", False),
        ("The Who", "the man who played", True),
        ("The For", "the band The For played", True),
        ("The For", "for the band", False),
        ("Will Curie", "Marie Curie can and may", False),
        ("Marie Can", "Marie Curie", False),
        ("東京", "彼は東京で話した", True),
        ("大阪", "彼は東京で話した", False),
        ("January 1960", "between January and March 1960", True),
        ("Nobel Prize in Physics", "the Nobel Prize", False),
        ("…", "what …", False),
    ],
)
def test_where_a_name_occurs(name: str, text: str, there: bool) -> None:
    assert Source(text).holds(name) is there


def test_gleanings_are_joined() -> None:
    assert join_extractions([WHOLE, Extraction((), (BORN,), 2)]) == Extraction(
        (CURIE, WARSAW), (BORN, BORN), 2
    )


def test_a_huge_reply_is_read_in_time() -> None:
    row = '["Warsaw","place","x"],'
    with processor_seconds(20):
        for text in (
            '{"e":[' + row * 200_000,
            '{"e":[["' + "a" * 3_000_000,
            "{" * 2_000_000,
            '"' * 999_999,
        ):
            parsed = parse_reply(text, SOURCE)
            assert len(parsed.extraction.entities) <= 2_000
