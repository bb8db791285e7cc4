"""The order of files of code in the walk against its slow form, and each rule alone on a small repository."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import code_order as oracle
from tests.oracles.walk_parts import rows_of, vocabulary

from ketrag_fast import _core
from ketrag_fast.errors import InputError
from ketrag_fast.kernels import links as kernel

FILES = {
    "src/json/JsonReader.kt": [
        "class JsonReader(val input: Input) {",
        "  fun read(): Value {\n    return parse(input)\n  }",
        "  // tokens of the reader\n  fun next() {}",
    ],
    "src/json/JsonReaders.kt": [
        "val reader = JsonReader(input)\nreader.read()",
        "object JsonReaders {\n  fun open() {}",
    ],
    "src/json/__init__.py": ["from .reader import JsonReader\nfrom .writer import write_all", "import parse"],
    "src/index.ts": ["export * from './reader'\nexport { parse } from './parse'"],
    "src/parse.c": [
        "int parse_value(const char* text) {\n  return read(text);",
        "static int\nread(char* at)\n{",
    ],
    "include/parse.h": ["int parse_value(const char* text);\nint read(char* at);"],
    "tests/test_reader.py": [
        "def test_read():\n    assert parse(JsonReader()) == 1",
        "class JsonReader:\n    pass",
    ],
    "types/reader.d.ts": ["export declare class JsonReader { read(): Value }"],
    "examples/read_file.py": ["reader = JsonReader(path)\nprint(reader.read())"],
    "README.md": [
        "JsonReader reads values: parse a file with the reader.",
        "Tests of the reader are in tests.",
    ],
    "docs/CHANGES.md": ["The reader reads json values.", "Parsing of tokens was added."],
    "api/v1/reader.ts": ["export function read(input) { return parse(input) }"],
    "api/v2/reader.ts": ["export function read(input) { return parse(input, value) }"],
    "notes/reader": ["The reader was written before the parser and its tests."],
}
PATHS = [path for path, texts in FILES.items() for _ in texts]
TEXTS = [text for texts in FILES.values() for text in texts]
DOCUMENTS = np.array([list(FILES).index(path) for path in PATHS], np.uint32)
LINKS = kernel.build_links([""] * len(TEXTS), TEXTS, [[text] for text in TEXTS])
WORDS = (
    "read",
    "reader",
    "json",
    "parse",
    "value",
    "file",
    "tests",
    "input",
    "token",
    "the",
    "src",
    "parsing",
    "can",
    "v1",
    "changes",
)
PLAIN = st.lists(st.sampled_from(WORDS), min_size=1, max_size=16).map(" ".join)
SYMBOLS = ("JsonReader", "parse_value", "write_all", "read", "json.JsonReader", "Json::read", "JsonReaders")
MIXED = st.lists(st.sampled_from((*SYMBOLS, *WORDS)), min_size=1, max_size=5).map(" ".join)


def ranked(query: str, near: kernel.Vectors | None = None, **numbers: float) -> list[tuple[int, float]]:
    [(units, scores)] = kernel.walk(
        LINKS, [query], 50, vectors=near, documents=DOCUMENTS, files=(list(FILES), TEXTS), numbers=numbers
    )
    return list(zip(units.tolist(), scores.tolist(), strict=True))


def vectors_of(seed: int) -> kernel.Vectors:
    """Return random vectors of the units, which are also those of their only sentences, and of a query."""
    drawn = np.random.default_rng(seed).normal(size=(len(TEXTS) + 1, 16))
    rows = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    return kernel.Vectors(rows[1:], rows[1:], rows[:1])


def slow(query: str, near: kernel.Vectors | None = None, **numbers: float) -> list[int]:
    keywords = vocabulary(LINKS, "keywords")
    known = sorted({keywords.index(word) for word in _core.lexical_keywords(query) if word in keywords})
    idf = kernel_idf()
    counts = rows_of(LINKS, "unit_keywords", len(keywords), "unit_keywords_tf")
    bodies = oracle.Bodies(
        [idf[at] for at in known],
        [[int(row[at]) for at in known] for row in counts],
        [int(length) for length in LINKS["unit_length"]],
    )
    similar = (near.units.astype(float) @ near.questions[0].astype(float)).tolist() if near else None
    before = ranked(query, near, code_depth=0, code_depth_dense=0)
    return oracle.arrange(before, query, PATHS, TEXTS, bodies, numbers, similar)


def kernel_idf() -> list[float]:
    arrays = _core.links_weights(LINKS)
    return [float(x) for x in arrays["keyword_idf"]]


def paths(query: str, **numbers: float) -> list[str]:
    return [PATHS[unit] for unit, _ in ranked(query, **numbers)]


@settings(max_examples=150, deadline=None)
@given(PLAIN, st.sampled_from((100, 7)))
def test_plain_questions_are_ranked_as_by_the_slow_form(query: str, depth: int) -> None:
    assert [unit for unit, _ in ranked(query, code_depth=depth)] == slow(query, code_depth=depth)


@settings(max_examples=150, deadline=None)
@given(PLAIN, st.integers(0, 1000), st.sampled_from((300, 7)))
def test_vectors_move_files_as_in_the_slow_form(query: str, seed: int, depth: int) -> None:
    # Without a keyword ("the") units are ranked by their vectors alone.
    query, near = f"{query} json", vectors_of(seed)
    found = [unit for unit, _ in ranked(query, near, code_depth_dense=depth)]
    assert found == slow(query, near, code_depth_dense=depth)


def test_the_file_with_the_nearest_passage_moves_up() -> None:
    rows = np.zeros((len(TEXTS), 2), np.float32)
    rows[:, 1] = 1.0
    rows[PATHS.index("src/parse.c") + 1] = [1.0, 0.0]
    near = kernel.Vectors(rows, rows, np.array([[1.0, 0.0]], np.float32))

    def place(code_near: float) -> int:
        found = [PATHS[unit] for unit, _ in ranked("read the reader", near, code_near=code_near)]
        return found.index("src/parse.c")

    assert place(2.0) == 0
    assert place(2.0) < place(0.0)


@settings(max_examples=150, deadline=None)
@given(MIXED)
def test_symbols_are_ranked_as_by_the_slow_form(query: str) -> None:
    # A part of an identifier that the index knows as a whole weighs less, which the slow form does not do.
    assert [unit for unit, _ in ranked(query, code_body=0, code_cover=0)] == slow(
        query, code_body=0, code_cover=0
    )


@pytest.mark.parametrize("query", ["read", "the reader of json", "JsonReader", "tests for the reader"])
def test_the_order_is_a_permutation_with_falling_scores(query: str) -> None:
    before, after = ranked(query, code_depth=0), ranked(query)
    assert sorted(unit for unit, _ in before) == sorted(unit for unit, _ in after)
    assert all(a > b for (_, a), (_, b) in pairwise(after))
    few = kernel.walk(LINKS, [query], 3, documents=DOCUMENTS, files=(list(FILES), TEXTS))
    assert few[0][0].tolist() == [unit for unit, _ in after[:3]]


def test_a_symbol_is_found_where_it_is_defined() -> None:
    assert paths("JsonReader")[0] == "src/json/JsonReader.kt"
    assert paths("JsonReaders")[0] == "src/json/JsonReaders.kt"
    assert paths("parse_value")[0] == "src/parse.c"


def test_tests_examples_and_declarations_follow_unless_the_query_wants_them() -> None:
    aside = [oracle.is_aside(path) for path in paths("read the reader") if oracle.is_code(path)]
    first = list(dict.fromkeys(path for path in paths("read the reader")))
    assert aside.index(True) > 3
    assert first.index("tests/test_reader.py") > first.index("src/json/JsonReader.kt")
    assert "tests/test_reader.py" in paths("tests for the reader")[:2]


def test_one_passage_of_each_file_comes_first() -> None:
    found = [path for path in paths("json reader", code_aside=1, code_imports=1) if oracle.is_code(path)]
    files = len(set(found))
    assert len(set(found[:files])) == files


def test_documents_that_are_neither_code_nor_pages_keep_their_order() -> None:
    for query in ("the reader", "tests parse file"):
        others = [
            [unit for unit, _ in way if not oracle.is_code(PATHS[unit]) and not oracle.is_page(PATHS[unit])]
            for way in (ranked(query), ranked(query, code_depth=0))
        ]
        assert others[0] == others[1]


def test_a_page_has_the_whole_bonus_if_the_query_is_about_what_a_user_does() -> None:
    query = "parse a file with the reader"
    asked = f"how can I {query}"
    assert paths(asked) == paths(asked, code_page=0) == paths(asked, code_page=1)
    places = [paths(query, code_page=weight).index("README.md") for weight in (0, 1)]
    assert places[0] > places[1]


def test_sources_come_before_headers_and_new_versions_before_old_ones() -> None:
    found = paths("parse the value")
    assert found.index("src/parse.c") < found.index("include/parse.h")
    assert found.index("api/v2/reader.ts") < found.index("api/v1/reader.ts")
    # A query that names the old version is ranked as if versions were no sign.
    for query, is_equal in (("parse the value in v1", True), ("parse the value", False)):
        assert (paths(query) == paths(query, code_old=1)) == is_equal


def test_a_collection_without_code_is_ranked_as_before() -> None:
    names = [f"{path}.txt" for path in FILES]
    for query in ("json reader", "JsonReader"):
        [(units, scores)] = kernel.walk(LINKS, [query], 50, documents=DOCUMENTS, files=(names, TEXTS))
        assert list(zip(units.tolist(), scores.tolist(), strict=True)) == ranked(query, code_depth=0)


def test_wrong_numbers_of_paths_and_texts_are_refused() -> None:
    for files, documents in (
        ((list(FILES)[:3], TEXTS), DOCUMENTS),
        ((list(FILES), TEXTS[:3]), DOCUMENTS),
        ((list(FILES), TEXTS), None),
    ):
        with pytest.raises(InputError, match=r"paths|texts"):
            kernel.walk(LINKS, ["read"], 5, documents=documents, files=files)
