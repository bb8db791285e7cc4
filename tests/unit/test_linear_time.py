"""Loops over a stranger's text take time in proportion to it: what no single pattern shows.

Each took minutes before on a text of this size; the bounds are far above what is needed now.
"""

from __future__ import annotations

from ketrag_fast.models.extraction.heuristic import subject_of
from ketrag_fast.models.extraction.parse import parse_reply, read_json
from ketrag_fast.models.llms.llama.grammar import grammar_of
from ketrag_fast.query.answer.prompt import CitationReader
from ketrag_fast.readers.file_types import _HTML
from ketrag_fast.systems.papers.cg_rag.crossrefs import references
from tests.support.effort import processor_seconds

SECONDS = 3.0


def test_headings_of_a_document_keep_their_names() -> None:
    text = "# One ##\n\nSee below.\n\n## Two words\n\ntext\n"
    found = references(text, [0, 20, 40], [("one", 25), ("two-words", 2)])
    assert found.pairs == {(1, 0), (0, 1)}
    assert found.unresolved == []


def test_thoughts_in_a_reply() -> None:
    for text in ("<think>" * 100_000, " " * 500_000 + "{", "<think>" + "x<think>" * 50_000 + "</think"):
        with processor_seconds(SECONDS):
            assert read_json(text).value is None
    for name in ("think", "thinking", "reasoning"):
        assert read_json(f'Well. <{name}>{{"a": 2}}</{name}> {{"a": 1}}').value == {"a": 1}
    assert read_json('<think>open {"a": 1}').value == {"a": 1}


def test_a_thought_that_streams() -> None:
    reader = CitationReader(3)
    with processor_seconds(SECONDS):
        assert reader.feed(" " * 10) == reader.feed("<think>") == ""
        for _ in range(100_000):
            assert reader.feed("some words of thinking, some more ") == ""
        assert reader.feed("</th") == ""
        assert reader.feed("ink>  It is so [2].") + reader.finish() == "It is so [2]."


def test_blanks_that_stream() -> None:
    reader = CitationReader(3)
    with processor_seconds(SECONDS):
        out = [reader.feed("a")] + [reader.feed(" " * 16) for _ in range(100_000)]
    assert "".join(out) + reader.finish() == "a" + " " * 1_600_000
    reader = CitationReader(1)
    assert "".join(map(reader.feed, ["a", "  ", "  ", "[", "9]", "."])) + reader.finish() == "a."


def test_rules_of_a_grammar_are_found_by_their_text() -> None:
    schemas = [{"const": str(n % 20_000)} for n in range(40_000)]
    with processor_seconds(SECONDS):
        rules = grammar_of({"oneOf": schemas})
    assert rules.count(" ::= ") == 20_000 + 3


def test_a_character_with_a_number_of_thousands_of_digits() -> None:
    """`html.unescape` raises ValueError for it, and a reply is never to raise."""
    reply = '{"e":[["Ann","person","&#' + "1" * 5_000 + '; is here"]],"r":[]}'
    found = parse_reply(reply, "Ann is here")
    assert [entity.name for entity in found.extraction.entities] == ["Ann"]


def test_a_title_with_a_bracket() -> None:
    assert subject_of("Mercury (planet)", "x") == "Mercury"
    assert subject_of("a (b) (c)", "x") == "a (b)"
    assert subject_of("f(x(y))", "x") == "f(x(y))"


def test_comments_before_a_page() -> None:
    """The pattern took exponential time: every comment could end with any later one."""
    with processor_seconds(SECONDS):
        assert _HTML.match(b"<!---->" * 500) is None
    assert _HTML.match(b"<?xml version='1.0'?>\n<!-- a --> <!-- <p> --><!DOCTYPE html>")
