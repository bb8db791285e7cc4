"""Searches whose whole result is written down: dates, lines, counts, filters with globs, and shown lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.query.search import Snippets
from tests.support.office_files import mail

ROWS = (
    '{"text": "one walrus", "metadata": {"team": "a"}}\n'
    '{"text": "a walrus\\nand a walrus", "metadata": {"team": "b"}}\n'
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("exactly") / "files"
    (folder / "sub").mkdir(parents=True)
    (folder / "rows.jsonl").write_text(ROWS)
    (folder / "sub/rows.jsonl").write_text(ROWS.replace("walrus", "walrus cow"))
    (folder / "letter.eml").write_bytes(mail("Dear Sir,\n\nthe parcel arrived.\n\nYours"))
    with Index.build(folder, folder.parent / "index", settings=Settings(threads=1)) as built:
        yield built


def test_a_mail_has_its_date(index: Index) -> None:
    hit = index.search("parcel", limit=1)[0]
    assert hit.date is not None
    assert index.search("walrus", limit=1)[0].date is None


def test_lines_of_all_documents_of_a_file_are_counted(index: Index) -> None:
    assert all(line.lines and line.text_lines is None for line in index.grep("walrus"))
    counted = index.grep_counts("walrus")
    assert {Path(path).parent.name: count for path, count in counted.items()} == {"files": 3, "sub": 3}
    of_one = index.grep_counts("walrus", glob="sub/*")
    assert [(Path(path).parent.name, count) for path, count in of_one.items()] == [("sub", 3)]
    of_team = index.grep_counts("walrus", filter="team=b")
    assert sorted(of_team.values()) == [2, 2]
    of_both = index.grep_counts("walrus", filter="team=b", glob="sub/*")
    assert [*of_both.values()] == [2]


def test_a_filter_and_globs_hold_together(index: Index) -> None:
    rows: list[tuple[dict[str, Any], int]] = [
        ({}, 4),
        ({"glob": []}, 4),
        ({"glob": [], "filter": "team=a"}, 2),
        ({"glob": "sub/*"}, 2),
        ({"filter": "team=a"}, 2),
        ({"filter": "team=a", "glob": "sub/*"}, 1),
        ({"filter": "team=a", "grep": "cow"}, 1),
        ({"grep": "cow"}, 2),
    ]
    for how, count in rows:
        hits = index.search("walrus", mode="bm25", **how)
        assert len(hits) == count, how
        assert (hits.query, [hit.rank for hit in hits]) == ("walrus", list(range(1, count + 1)))


def test_a_code_with_leading_zeros_is_a_text_in_filters(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "parts.jsonl").write_text('{"text": "red kettle", "part": "007"}\n')
    (folder / "parts.csv").write_text("part,name\n007,kettle\n7,kettle lid\n")
    with Index.build(folder, tmp_path / "index") as index:
        assert len(index.search("kettle", filter="part=007")) == 2
        assert len(index.search("kettle", filter='part="7"')) == 1  # a column with codes is text as a whole


def test_true_and_false_in_filters_match_texts_of_sheets(tmp_path: Path) -> None:
    file = tmp_path / "boats.csv"
    file.write_text("boat,paid\nred boat,TRUE\nblue boat,FALSE\ngreen boat,unknown\n")
    with Index.build(file, tmp_path / "index") as index:
        for query, rows in (
            ("paid=true", [2]),
            ("paid=FALSE", [3]),
            ("paid!=true", [3, 4]),
            ("paid in (true, unknown)", [2, 4]),
            ('paid="true"', []),
        ):
            found = index.search("boat", filter=query)
            assert sorted(hit.document for hit in found) == [f"boats.csv#{row}" for row in rows], query


def test_a_limit_is_the_number_of_lines_over_all_documents(tmp_path: Path) -> None:
    documents = [Document(f"d{number}", "a walrus\nno bird\na walrus") for number in range(700)]
    with Index.build(documents, tmp_path / "index", settings=Settings(threads=2)) as index:
        for limit in (1, 2, 3, 999, 1399, 1400, 1401):
            found = index.grep("walrus", limit=limit)
            assert len(found) == min(limit, 1400)
            assert [line.document for line in found[:3]] == ["d0", "d0", "d1"][:limit]


def test_lines_of_several_blocks_are_those_of_the_texts(tmp_path: Path) -> None:
    """Blocks have two megabytes of text; here three have documents, of which every third is in team a."""
    texts = [f"a walrus {n}\n{'no bird ' * 16_000}\n\nthe walrus and a walrus" for n in range(42)]
    documents = [Document(f"d#{n}", text, "", {"team": "abc"[n % 3]}) for n, text in enumerate(texts)]
    documents.append(Document("long", "of ice " * 900 + "walrus"))
    expected = [
        (f"d#{n}", None, (at, at), line, tuple(m.span() for m in re.finditer("walrus", line)), None)
        for n, text in enumerate(texts)
        for at, line in enumerate(text.split("\n"), 1)
        if "walrus" in line
    ]
    with Index.build(documents, tmp_path / "index", settings=Settings(modes="text", threads=1)) as index:
        assert len(index._opened.texts.core.blocks(None)) == 3

        def found(**how: Any) -> list[tuple[Any, ...]]:
            return [
                (one.document, one.lines, one.text_lines, one.line.text, one.line.marks, one.line.number)
                for one in index.grep("walrus", **how)
            ]

        assert found()[:-1] == expected
        of_team = [row for row in expected if int(row[0][2:]) % 3 == 0]
        assert found(filter="team=a") == of_team
        for limit in (1, 40, 41, 83):
            assert found(limit=limit) == expected[:limit]
            assert found(limit=limit, filter="team=a") == of_team[:limit]
        assert index.grep_counts("walrus") == {one.id: 1 if one.id == "long" else 2 for one in documents}
        assert index.files().documents == tuple(one.id for one in documents)
        line = index.grep("walrus")[-1].line
        whole = documents[-1].text
        assert (
            line.cut > 0
            and line.text == whole[line.cut :]
            and line.marks == ((len(line.text) - 6, len(line.text)),)
        )


def test_text_without_another_position_has_lines(tmp_path: Path) -> None:
    text = "The first\nline of ice was cold.\n\nThe Fram\nlay\nhere in the cold ice.\n"
    settings = Settings(chunk_tokens=12, threads=1)
    with Index.build([Document("a", text)], tmp_path / "index", settings=settings) as index:
        lines = text.split("\n")
        for question, expected in (("first", (1, 2)), ("Fram", (4, 6))):
            (hit,) = index.search(question, limit=1, mode="bm25")
            assert hit.text_lines == expected
            assert "\n".join(lines[expected[0] - 1 : expected[1]]) == hit.text


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    documents = [Document(f"d{n}", f"The common ship number {n} sailed the sea.") for n in range(30)]
    documents.append(Document("rare", "A single narwhal."))
    with Index.build(documents, tmp_path_factory.mktemp("library") / "index") as built:
        yield built


def shown(index: Index, question: str, text: str) -> list[str]:
    return [line.text for line in Snippets(index._opened, question).lines(text, None)]


def test_the_rarer_word_chooses_the_first_line(library: Index) -> None:
    text = "Here is a common thing.\nNothing is here.\nNothing is there.\nHere is a narwhal."
    assert shown(library, "common narwhal", text) == ["Here is a common thing.", "Here is a narwhal."]
    twice = "A ship, common.\nA narwhal.\nShips are common on the sea.\nA narwhal, again."
    assert shown(library, "narwhal ship", twice) == ["A narwhal.", "Ships are common on the sea."]


def test_the_second_line_has_what_the_first_one_lacks(library: Index) -> None:
    text = "The narwhal swims.\nThe narwhal swims again, a narwhal.\nEmpty.\nEmpty too.\nA ship is common."
    assert shown(library, "narwhal ship", text) == ["The narwhal swims.", "A ship is common."]


def test_the_line_below_is_nearer_than_the_line_above(library: Index) -> None:
    assert shown(library, "narwhal", "above\nnarwhal\nbelow\nfar") == ["narwhal", "below"]
    text = "one\ntwo\nthree\nnarwhal"
    assert shown(library, "narwhal", text) == ["three", "narwhal"]


def test_short_lines_before_a_long_one_are_shown(library: Index) -> None:
    long = "This sentence is long and says nothing at all of what was wanted. " * 4
    assert shown(library, "narwhal", f"A narwhal.\n{long}")[0] == "A narwhal."


def test_a_word_with_marks_is_marked_as_one(library: Index) -> None:
    snippets = Snippets(library._opened, "e-mail narwhal")
    text = "An e-mail about narwhal-like ships, U.S.A. and narwhals."
    assert [text[first:last] for first, last in snippets.marks(text)] == ["e-mail", "narwhal", "narwhals"]


def test_without_links_words_have_equal_weights(tmp_path: Path) -> None:
    documents = [Document(f"d{n}", "The common ship sailed.") for n in range(9)]
    with Index.build(
        [*documents, Document("x", "A narwhal.")], tmp_path / "index", settings=Settings(modes="text")
    ) as index:
        text = "Ship, common.\nNothing.\nNarwhal."
        assert shown(index, "narwhal common ship", text) == ["Ship, common.", "Narwhal."]
        assert Snippets(index._opened, "narwhal ship")._weights == {"narwhal": 1.0, "ship": 1.0}
