"""Filters at a question: the ranking without them, without what they leave out."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.base.filters import ColumnReader, Columns, condition_of, parse_filter
from ketrag_fast.errors import DeadlineExceeded, InputError
from ketrag_fast.query.query import Clock

PLACES = ("Oslo", "Bergen", "Narvik", "Larvik", "Sandefjord", "Tromso", "Hobart", "Dundee", "Buenos Aires")
THINGS = (
    "ship",
    "winter",
    "harbour",
    "captain",
    "sledge",
    "map",
    "library",
    "museum",
    "engine",
    "crew",
    "ice",
)


def documents() -> list[Document]:
    """Two hundred, in years and languages, some of them drafts."""
    dice = random.Random(3)
    made = []
    for number in range(200):
        words = " ".join(dice.choices(THINGS, k=12))
        place, other = dice.choice(PLACES), dice.choice(PLACES)
        about = {
            "year": 1880 + number % 60,
            "lang": ("en", "de", "no")[number % 3],
            "tags": dice.sample(("polar", "sea", "town"), k=2),
            "author": {"name": f"a{number % 7}"},
        }
        if number % 10 == 0:
            about["draft"] = True
        text = f"The {place} {words}. In {other} the {words} of {place}."
        made.append(Document(f"d{number}", text, f"{place} {number}", about))
    return made


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    settings = Settings(modes="auto,text,fused,keyword")
    return Index.build(documents(), tmp_path_factory.mktemp("filters") / "ix", settings=settings)


QUESTION = "Which captain of the ship from Oslo saw the winter harbour of Bergen?"


def test_all_that_is_left_is_found_within_a_small_budget(index: Index) -> None:
    """A filter that leaves a few far down the ranking finds them without the rest being printed."""
    for mode in ("bm25", "text", "walk", "fused"):
        found = index.retrieve(QUESTION, mode=mode, budget=400, filter="year=1939")
        assert {p.document for p in found.passages} == {"d59", "d119", "d179"}, mode


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ("draft=true", 20),
        ("draft!=true", 180),
        ("not draft exists", 180),
        ("lang in (en, de)", 134),
        ({"lang": ["en", "de"]}, 134),
        ({"lang": {"$nin": ["en", "de"]}}, 66),
        ("tags=polar or tags=sea", 200),
        ("author.name=a3 and not lang='en'", 19),
        ('lang="en" or (year<1890 and lang=de)', 79),
        ({"$or": [{"lang": "en"}, {"$and": [{"year": {"$lt": 1890}}, {"lang": "de"}]}]}, 79),
        ("year=1900.5", 0),
        ("year=nineteen", 0),
        ({}, 200),
    ],
)
def test_conditions(index: Index, given: object, count: int) -> None:
    found = index.retrieve(QUESTION, mode="bm25", budget=500, filter=given)  # type: ignore[arg-type]
    assert found.fitting == count
    assert (found.reason == "nothing_fits_filter") == (count == 0)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "year",
        "year>",
        "year>=1990 and",
        "(year=1",
        "year=1)",
        "yaer=1",
        "year in ()",
        "and",
        "'open",
        "not " * 10_000 + "year=1",
        "(" * 10_000 + "year=1",
        "x" * 2_000_000,
        {"year": {"$near": 3}},
        {"$where": "1"},
        {"year": {}},
        {"year": None},
        {"year": {"$in": 3}},
        {"$and": []},
        {"year": {"$gt": float("nan")}},
        {3: 4},
        {"year": list(range(20_000))},
    ],
)
def test_nonsense_is_refused(index: Index, given: object) -> None:
    with pytest.raises(InputError, match="filter"):
        index.retrieve(QUESTION, filter=given)  # type: ignore[arg-type]


def test_nested_without_end(index: Index) -> None:
    deep: dict[str, object] = {"year": 1}
    for _ in range(10_000):
        deep = {"$not": deep}
    with pytest.raises(InputError, match="nested"):
        index.retrieve(QUESTION, filter=deep)


def test_many_questions_and_the_command(
    index: Index, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    one = index.retrieve(QUESTION, mode="walk", budget=300, filter="lang=en")
    many = index.retrieve_many([QUESTION, QUESTION], mode="walk", budget=300, filter="lang=en")
    assert [context.text for context in many] == [one.text, one.text]
    why = index.retrieve(QUESTION, mode="walk", budget=300, filter="lang=en", explain=True)
    assert why.text == one.text
    place = str(index.path)
    assert (
        main(["retrieve", "-i", place, "--filter", "lang=en and year>1930", "--budget", "300", QUESTION]) == 0
    )
    assert "Sources" in capsys.readouterr().out
    assert main(["retrieve", "-i", place, "--filter", "lang=xx", QUESTION]) == 0
    assert "no document matches the filter" in capsys.readouterr().err
    assert main(["retrieve", "-i", place, "--filter", "language=en", QUESTION]) == 2
    assert "known fields: author.name, draft, lang, tags, year" in capsys.readouterr().err


def test_every_node_counts_against_the_limit() -> None:
    """Also those that say nothing: each costs a pass over all documents."""
    for given in (
        {"$and": [{}] * 20_000},
        {"$or": [{"$not": {}}] * 6_000},
        {"$or": [{"a": 1, "b": 2}] * 2_100},
        {"$and": [{"$and": [{"$and": [{}]}]}] * 6_000},
    ):
        with pytest.raises(InputError, match="more than 10,000 conditions and values"):
            condition_of(given)
    with pytest.raises(InputError, match="more than 10,000 conditions and values"):
        parse_filter(" or ".join(["not " * 15 + "a=1"] * 1_000))
    assert condition_of({"$or": [{"a": number} for number in range(4_999)]})


def test_a_list_of_values_costs_one_pass() -> None:
    """The time for a list does not grow with values times documents: there are a thousand times as many."""
    rows = [{"name": f"n{number % 5_000}", "year": number % 7_000} for number in range(30_000)]
    columns = Columns(rows)

    def seconds(field: str, values: list[object]) -> float:
        condition, wanted = condition_of({field: {"$in": values}}), {*values}
        began = time.thread_time()
        found = columns.fitting(condition)
        taken = time.thread_time() - began
        assert found.tolist() == [row[field] in wanted for row in rows]
        return taken

    for field, values in (
        ("name", [f"n{number}" for number in range(9_900)]),
        ("year", list(range(9_900))),
    ):
        few = min(seconds(field, values[:9]) for _ in range(5))
        many = min(seconds(field, values) for _ in range(5))
        assert many < 100 * few, field


class Stop(Exception):
    """Raised by a check."""


def test_the_clock_is_looked_at_between_the_nodes() -> None:
    columns = Columns([{"a": 1}] * 10)
    condition = condition_of({"$or": [{"$not": {"a": number}} for number in range(1_000)]})
    looks = 0

    def check() -> None:
        nonlocal looks
        looks += 1
        if looks == 500:
            raise Stop

    with pytest.raises(Stop):
        columns.fitting(condition, check=check)
    assert looks == 500
    looks = 1_000
    columns.fitting(condition, check=check)
    assert looks >= 2_000


def test_what_was_read_of_the_metadata_stays_for_the_next_question() -> None:
    """However short the deadlines are, an index has its columns in the end, and reads each row once."""
    read: list[int] = []

    def rows() -> Iterator[str]:
        for number in range(5_000):
            read.append(number)
            yield json.dumps({"n": number})

    reader = ColumnReader(rows)
    attempts = 0
    while True:
        left = 2

        def check() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Stop

        attempts += 1
        try:
            columns = reader.columns(check)
            break
        except Stop:
            assert attempts < 100
    assert attempts > 2 and read == list(range(5_000))
    assert columns.fitting(condition_of({"n": {"$lt": 10}})).sum() == 10
    # One reads at a time; another waits, and looks at its own clock.
    held = ColumnReader(rows)
    with held._lock, pytest.raises(Stop):
        held.columns(lambda: (_ for _ in ()).throw(Stop()))


def test_damaged_metadata_is_not_taken_for_a_shorter_list() -> None:
    reader = ColumnReader(lambda: iter(['{"a": 1}'] * 700 + ["{"] + ['{"a": 1}'] * 700))
    for _ in range(2):
        with pytest.raises(ValueError):
            reader.columns()


def test_a_filter_ends_at_the_deadline_of_its_question(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the question is what is looked at: here it is up in the middle of the filter."""
    given = {"$or": [{"year": number} for number in range(3_000)]}
    looks = 0
    left = Clock.left

    def up(self: Clock) -> float | None:
        nonlocal looks
        looks += 1
        if looks > 1_000:
            self._seconds = 0.0
        return left(self)

    monkeypatch.setattr(Clock, "left", up)
    with pytest.raises(DeadlineExceeded):
        index.retrieve(QUESTION, mode="bm25", filter=given, deadline=3600.0)
    assert looks == 1_001


def test_reading_the_metadata_ends_at_the_deadline_of_its_question(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first filter of an opened index reads it; here the time is up after three slices."""
    slices, left = 0, Clock.left

    def read_without_end(_: ColumnReader) -> bool:
        nonlocal slices
        slices += 1
        assert slices <= 3, "it reads on"
        return True

    def left_of(self: Clock) -> float | None:
        if slices == 3:
            self._seconds = 0.0
        return left(self)

    with Index.open(index.path) as fresh:
        with monkeypatch.context() as patched:
            patched.setattr(ColumnReader, "_read_slice", read_without_end)
            patched.setattr(Clock, "left", left_of)
            with pytest.raises(DeadlineExceeded):
                fresh.retrieve(QUESTION, mode="bm25", filter="lang=en", deadline=3600.0)
        assert fresh.retrieve(QUESTION, mode="bm25", filter="lang=en", deadline=3600.0).passages


def test_long_filters_in_words_are_read_in_one_pass() -> None:
    """The rest of the text is not copied at every word."""

    def seconds(words: int) -> float:
        text = " or ".join(["a=1"] * words) + " " * 10_000
        began = time.thread_time()
        parse_filter(text)
        return time.thread_time() - began

    few, many = (min(seconds(words) for _ in range(5)) for words in (100, 4_000))
    assert many < 400 * few
