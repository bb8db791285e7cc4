"""The query language: phrases, exclusions, prefixes, fields, and similar words, over whole indexes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ketrag_fast import Document, Index, Query, Settings
from ketrag_fast.errors import ConfigError, DeadlineExceeded, InputError
from ketrag_fast.kernels.text import unpack
from ketrag_fast.types import Hits
from tests.oracles.phrases import has_phrase
from tests.support.office_files import text_row, xlsx

DOCUMENTS = [
    Document(
        "a",
        "The red kettle is on the blue stove.",
        "Kitchen",
        {"year": 2021, "from": "Jonas Peeters <j@x.org>"},
    ),
    Document(
        "b",
        "The blue kettle is red. The stove is old.",
        "Attic",
        {"date": "2024-03-12T09:00:00", "lang": "en"},
    ),
    Document("c", "A red stove with a kettle.", "Red House", {"date": "2024-05", "from": "Łucja Nowak"}),
    Document("d", "To be, or not to be: two gaskets and gasoline. Machinery runs happily.", "Hamlet"),
    Document("e", "He happened upon the valve-7 of std::vector at 14:30. Re: kettle lid", "Notes"),
]
WORDS = [
    *("red", "blue", "old", "kettle", "kettles", "stove", "cat", "cats", "city", "cities", "run", "running"),
    *("the", "of", "to", "in", "Über"),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    modes = Settings(modes="bm25,walk,text,fused")
    with Index.build(DOCUMENTS, tmp_path_factory.mktemp("typed") / "index", settings=modes) as built:
        yield built


def found(index: Index, query: str, **fields: object) -> set[str]:
    return {hit.document for hit in index.search(query, **fields)}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "documents"),
    [
        ('"red kettle"', {"a"}),
        ("“red kettles” stove", {"a"}),
        ('"to be or not to be"', {"d"}),
        ("kettle -old", {"a", "c", "e"}),
        ('kettle -"blue kettle" -lid', {"a", "c"}),
        ("gask*", {"d"}),
        ('"blue kett*"', {"b"}),
        ("gas* -gasoline", set()),
        ("happily*", {"d"}),
        ("machinery*", {"d"}),
        ("title:red", {"c"}),
        ('title:"red house" stove', {"c"}),
        ('-title:red "stove"', {"a", "b"}),
        ("-type:pdf -old", {"a", "c", "d", "e"}),
        ("kettle from:jonas", {"a"}),
        ("from:lucja", {"c"}),
        ("kettle after:2024", {"b", "c"}),
        ("kettle before:2024", {"a"}),
        ("kettle date:2024-03", {"b"}),
        ("kettle after:2024-03-13", {"c"}),
        ("lang:en", {"b"}),
        ("year:2021", {"a"}),
        ("year:>=2021", {"a"}),
        ('"red" "old"', {"b"}),
        ('"kettle', {"a", "b", "c", "e"}),
        ("in:a", {"a"}),
    ],
)
def test_marks_select_passages(index: Index, query: str, documents: set[str]) -> None:
    assert found(index, query) == documents
    context = index.retrieve(query, mode="bm25")
    assert {passage.document for passage in context.passages} == documents


@pytest.mark.parametrize("mode", ["bm25", "walk", "text", "fused"])
def test_every_mode_holds_to_the_marks(index: Index, mode: str) -> None:
    context = index.retrieve('"red kettle"', mode=mode)
    assert {passage.document for passage in context.passages} == {"a"}
    assert "b" not in {passage.document for passage in index.retrieve("kettle -old", mode=mode).passages}


@pytest.mark.parametrize(
    "query", ["Re: kettle", "note: kettle", "std::vector", "at 14:30", "kettle - lid", "valve-7"]
)
def test_text_with_colons_and_dashes_is_text(index: Index, query: str) -> None:
    assert found(index, query) == found(index, query, literal=True)
    assert not index.search(query).notes


def test_a_question_prefers_its_quotes(index: Index) -> None:
    question = 'Where in the whole house is the "blue kettle" that stands near the stove?'
    hits = index.search(question)
    assert hits[0].document == "b" and len(hits) > 1


def test_only_the_best_passage_with_a_quote_is_preferred(index: Index) -> None:
    question = 'Which passage of the house says that the "kettle" has a gasket and gasoline near it?'
    ranked = [hit.document for hit in index.search(question, literal=True)]
    best = next(document for document in ranked if document != "d")
    assert ranked[0] == "d" and len(ranked) > 2
    others = [document for document in ranked if document != best]
    assert [hit.document for hit in index.search(question)] == [best, *others]


@pytest.mark.parametrize("query", ["gask*", "-old gask*", "title:kit* kettle"])
def test_a_prefix_is_not_an_unknown_word(index: Index, query: str) -> None:
    hits = index.search(query)
    assert hits and not hits.replaced and not any("searched for" in note for note in hits.notes)


@pytest.mark.parametrize("field", ["title", "in", "type", "from", "after", "-title"])
def test_a_field_without_a_value_is_left_out_and_named(index: Index, field: str) -> None:
    plain = index.retrieve("red kettle")
    context = index.retrieve(f"red kettle {field}:")
    assert context.passages == plain.passages
    name = field.removeprefix("-")
    assert context.notes[0].startswith(
        f"{name}: has no value, and was ignored; the value follows without a blank"
    )
    assert index.retrieve(f"{field}: red kettle").passages == plain.passages
    for mode in ("bm25", "walk"):
        alone = index.retrieve(f"{field}:", mode=mode)
        assert not alone.passages and alone.notes == context.notes
    assert index.retrieve(f"{field}:", literal=True).notes == ()


def test_titles_include_the_headings_within_a_passage(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    house = "The boiler is old.\n\n## Red kettles\n\nThey are in the cellar.\n\n### Lids\n\nTwo lids."
    (tmp_path / "notes" / "house.md").write_text(f"# House\n\n{house}\n")
    (tmp_path / "notes" / "shed.md").write_text(
        "# Shed\n\nA red kettle with two lids.\n\n## Tools\n\nA saw.\n"
    )
    with Index.build(tmp_path / "notes", tmp_path / "index") as index:
        assert found(index, "title:kettle") == {"house.md"}
        assert found(index, 'title:"red kettle"') == found(index, "heading:lid*") == {"house.md"}
        assert found(index, "title:shed") == found(index, "-title:kettle title:tools") == {"shed.md"}
        assert found(index, "title:saw") == set()


def test_literal_switches_marks_off(index: Index) -> None:
    assert found(index, '"red kettle"', literal=True) == found(index, "red kettle")
    assert not index.search("gaskett", literal=True)
    with pytest.raises(ConfigError, match="literal must be a bool"):
        Query("a", literal=1)  # type: ignore[arg-type]


def test_similar_words_replace_unknown_ones_and_are_named(index: Index) -> None:
    hits = index.search("gaskett")
    assert [hit.document for hit in hits] == ["d"] and hits[0].snippet[0].marks
    assert hits.notes == ('no "gaskett": searched for gaskets',) and hits.replaced == {"gaskett": "gaskets"}
    assert hits.to_json()["replaced"] == {"gaskett": "gaskets"}
    assert index.retrieve("kettel").replaced == {"kettel": "kettle"}
    assert index.retrieve("mashinery").replaced == {"mashinery": "machinery"}
    assert index.retrieve("mashinerry").replaced == {"mashinerry": "machinery"}
    assert not index.retrieve("kettle").notes and "replaced" not in index.retrieve("kettle").to_json()


def test_words_written_apart_or_as_one_find_the_other(index: Index) -> None:
    assert index.retrieve("redkettles").replaced == {"redkettles": "red kettles"}
    hits = index.search("bluestove")
    assert hits[0].document == "a" and hits.notes == ('no "bluestove": searched for blue stove',)
    assert index.retrieve("mach inery").replaced == {"mach": "machinery", "inery": "machinery"}
    # The words are there, but never next to each other in this order.
    assert not index.retrieve("stovered").replaced


def test_words_that_are_also_written_short_find_the_other_form(tmp_path: Path) -> None:
    entries = [Document(f"2024-{n:02}-05", f"Called mum. Slept badly. Day {n:02}.") for n in range(1, 13)]
    entries += [
        Document("knee", "Dr. Okafor looked at my knee. No surgery."),
        Document("run", "She asked about Easter. Ran 6 km on 3 Oct, the knee was fine."),
    ]
    with Index.build(entries, tmp_path / "index") as index:
        for mode in ("bm25", "walk"):
            hits = index.search("What did the doctor say about my knee?", mode=mode)
            assert hits[0].document == "knee" and not hits.nothing_fits
            assert index.search("october", mode=mode)[0].document == "run"


def test_long_questions_keep_words_that_may_be_right(index: Index) -> None:
    """A word that no document has may be right: in a question, only slips within it are replaced."""
    question = "Where in the whole house did somebody find the {} of the stove?"
    assert index.retrieve(question.format("mashinery")).replaced == {"mashinery": "machinery"}
    assert index.retrieve(question.format("gaskett")).replaced == {"gaskett": "gaskets"}
    for word in ("settle", "battle", "machinist", "gaskete"):
        assert not index.retrieve(question.format(word)).replaced


def test_unknown_words_are_named_if_nothing_matches(index: Index) -> None:
    context = index.retrieve("xyzzy plugh", mode="bm25")
    assert context.reason == "no_match" and context.unknown == ("xyzzy", "plugh")
    hits = index.search('"red kettel"')
    assert hits.reason == "no_match" and hits.notes[-1] == 'no passage has "red kettel"'
    assert index.search("type:pdf kettle").reason == "nothing_fits_filter"
    assert index.search('"blue kettle" -red').reason == "no_match"


def test_an_unknown_field_names_the_fields(index: Index) -> None:
    (note,) = index.search("colour:red kettle").notes
    assert note.startswith("colour: is not a field") and "from:, to:, after:" in note and "lang:" in note
    (note,) = index.search("after:lunch kettle").notes
    assert "is not a date" in note


def test_batches_read_each_query(index: Index) -> None:
    queries: list[str | Query] = [
        "kettle",
        '"red kettle"',
        "gask*",
        Query("kettle -old"),
        Query('"blue kettle"'),
    ]
    contexts = index.retrieve_many(queries, mode="bm25")
    assert [c.text for c in contexts] == [index.retrieve(query, mode="bm25").text for query in queries]


def test_rights_and_filters_hold(index: Index) -> None:
    assert found(index, '"red kettle"', filter="year=2021") == {"a"}
    assert found(index, '"red kettle"', filter="lang=en") == set()
    allowed = Query("gaskett kettle", allow='from~"jonas"')
    assert {hit.document for hit in index.search(allowed)} == {"a"}
    hits = index.search(Query("gask* -old colour:red", allow="lang=en"))
    assert not hits.hits and not any("gask" in note and "left out" in note for note in hits.notes)
    assert "year:" not in " ".join(hits.notes)  # a field of documents that the caller may not see


def test_bad_input_is_read_in_bounded_time(index: Index) -> None:
    for query in ('"', "-", "--", '""', "-*", ":", "*" * 50, '"a', "a" * 20_000, "b* " * 500, '"' * 999):
        index.search(query)
    (note,) = index.search("a1* " * 500).notes
    assert "are read as text" in note
    with pytest.raises(DeadlineExceeded):
        index.search('"red kettle"', deadline=0)


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from('"“”-*: \naeikrt.lo/ü') | st.characters(), max_size=40))
def test_no_text_is_an_error(query: str) -> None:
    if query.strip():
        try:
            assert isinstance(_shared().search(query, 3), Hits)
        except InputError as error:
            assert "no value" in str(error), query  # of a field alone, such as "to:"


_opened: list[Index] = []


def _shared() -> Index:
    return _opened[0]


@pytest.fixture(autouse=True)
def _share(index: Index) -> None:
    _opened[:] = [index]


def test_phrases_and_prefixes_equal_the_oracle(tmp_path: Path) -> None:
    draw = random.Random(7)
    documents = [
        Document(f"{n:03}", " ".join(draw.choices(WORDS, k=draw.randint(3, 40))) + ".", draw.choice(WORDS))
        for n in range(120)
    ]
    with Index.build(documents, tmp_path / "index", settings=Settings(chunk_tokens=200)) as index:
        searcher = index._opened.searcher
        units = index._opened.generation.stages["units"]
        titles = unpack(units["document_titles_blob"], units["document_titles_offsets"])
        bodies = unpack(units["unit_texts_blob"], units["unit_texts_offsets"])
        texts = [(titles[at], text) for at, text in zip(units["unit_document"].tolist(), bodies, strict=True)]
        for _ in range(300):
            prefix = draw.random() < 0.4
            phrase = " ".join(draw.choices(WORDS, k=draw.randint(1, 3)))
            phrase = phrase[: -draw.randint(0, 3) or None].strip() if prefix else phrase
            got = searcher.matching(phrase, prefix=prefix)
            assert got is not None
            wanted = [
                n for n, (title, text) in enumerate(texts) if has_phrase(title, text, phrase, prefix=prefix)
            ]
            assert got[0].tolist() == wanted, (phrase, prefix)


def test_a_phrase_across_two_passages_is_in_both(tmp_path: Path) -> None:
    text = "word " * 150 + "copper " + "lantern " + "word " * 150
    with Index.build([Document("a", text)], tmp_path / "index", settings=Settings(chunk_tokens=151)) as index:
        units = index._opened.generation.stages["units"]
        texts = unpack(units["unit_texts_blob"], units["unit_texts_offsets"])
        assert ["copper" in text for text in texts] == [True, False]
        found = index._opened.searcher.matching("copper lantern")
        assert found is not None and found[0].tolist() == [0, 1]


def test_a_short_prefix_is_bounded_and_says_so(tmp_path: Path) -> None:
    letters = "bcdfghklmnprtvwz"
    words = [f"a{x}{y}{z}u{v}" for x in letters for y in letters for z in letters for v in "bdgkm"]
    assert len(words) > 10_000
    documents = [Document(f"{n:03}", " ".join(words[n::40])) for n in range(40)]
    with Index.build(documents, tmp_path / "index") as index:
        hits = index.search("a*", 50)
        (note,) = hits.notes
        assert "words begin so; only the 10,000 most frequent were looked up" in note
        assert len(index.search("abb*", 50)) > 0 and not index.search("abb*").notes


def test_mails_show_sender_and_date(tmp_path: Path) -> None:
    first = b"From: Jonas Peeters <jonas@x.org>\nTo: thomas@x.org\nSubject: new address\n"
    first += b"Date: Thu, 12 Sep 2024 09:12:00 +0000\n\nSint-Pietersnieuwstraat 41, Gent.\nSee you there.\n"
    second = b"From: Ada <ada@x.org>\nSubject: lid\nDate: Fri, 13 Sep 2024 10:00:00 +0000\n\n"
    second += b"The kettle has no lid.\n"
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "all.mbox").write_bytes(
        b"From a Thu Sep 12 09:12:00 2024\n" + first + b"\nFrom b Fri Sep 13 10:00:00 2024\n" + second
    )
    with Index.build(folder, tmp_path / "index") as index:
        (hit,) = index.search("from:jonas")
        assert (hit.sender, hit.date) == ("Jonas Peeters <jonas@x.org>", "2024-09-12")
        assert found(index, "date:2024-09-13") == {"all.mbox:2"}
        assert found(index, "to:thomas") == {"all.mbox:1"}
        excerpt = index.text("all.mbox")
        assert [line for line, _ in excerpt.heads] == [1, 3]
        rows = excerpt.rows()
        assert (
            rows[0] == (None, "From: Jonas Peeters <jonas@x.org>") and (3, "The kettle has no lid.") in rows
        )
        assert (None, "Date: 2024-09-13 10:00") in rows and "From: Ada" not in excerpt.text
        assert [line for line, _ in index.text("all.mbox:2").heads] == [1]
        assert index.text("all.mbox:1", lines=(2, 2)).heads == ()


def test_the_type_of_a_file_holds_for_its_rows_and_parts(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    rows = [text_row(1, "item", "price"), text_row(2, "kettle", "40")]
    (tmp_path / "files" / "stock.xlsx").write_bytes(xlsx({"Stock": rows}))
    (tmp_path / "files" / "kettle.md").write_text("A kettle.")
    with Index.build(tmp_path / "files", tmp_path / "index") as index:
        for query in ("type:xlsx kettle", "type:excel kettle", "type:sheet kettle"):
            assert [hit.document for hit in index.search(query)] == ["stock.xlsx/Stock#2"]
        assert [hit.document for hit in index.search("type:md kettle")] == ["kettle.md"]


@pytest.mark.parametrize(
    ("query", "notes"),
    [
        ("kettle frobnicate", ('no document has "frobnicate"',)),
        ("kettel frobnicate", ('no "kettel": searched for kettle', 'no document has "frobnicate"')),
        ("is there a frobnicate kettle?", ()),  # in a question a missing word often means nothing
        ("red kettle", ()),
        ("frobnicate", ()),  # nothing is found, and `unknown` names it
    ],
)
def test_words_that_no_document_has_are_named_next_to_results(
    index: Index, query: str, notes: tuple[str, ...]
) -> None:
    assert index.search(query).notes == notes
    assert index.retrieve(query).notes == notes
