"""The setting `newest`: newer documents first among passages of comparable relevance."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast import Document, Index, Query, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import ConfigError
from ketrag_fast.query.dates import newest_first

NOTE = "The harbour fee for {} is {} EUR a day, payable at the office of the harbour master."


def names(context: object) -> list[str]:
    return [passage.document for passage in context.passages]  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Three notes that fit equally well, one that fits less, and one that does not."""
    notes = {"2021": ("2021-03-01", 12), "2025": ("2025-03-01", 19), "2023": ("2023-03-01", 15)}
    documents = [
        Document(year, NOTE.format("yachts", fee), metadata={"date": day})
        for year, (day, fee) in notes.items()
    ]
    documents.append(Document("undated", NOTE.format("yachts", 11)))
    documents.append(Document("menu", "The office has a coffee machine.", metadata={"date": "2026-10-01"}))
    documents += [Document(f"other-{n}", f"Nothing of interest, number {n}.") for n in range(20)]
    return Index.build(documents, tmp_path_factory.mktemp("recency") / "index")


QUESTION = "What is the harbour fee for yachts a day, at the office?"


@pytest.mark.parametrize("mode", ["walk", "bm25"])
def test_newer_documents_come_first_among_comparable_passages(index: Index, mode: str) -> None:
    plain = index.retrieve(QUESTION, mode=mode)
    newest = index.retrieve(QUESTION, mode=mode, newest=True)
    assert sorted(names(newest)) == sorted(names(plain))
    assert names(newest)[:3] == ["2025", "2023", "2021"]
    assert names(plain)[:3] != names(newest)[:3]
    assert names(index.retrieve(Query(QUESTION, mode=mode, newest=True), top=1)) == ["2025"]
    assert names(index.retrieve(QUESTION, mode=mode, newest=False)) == names(plain)


def test_a_newer_document_that_fits_less_stays_behind(index: Index) -> None:
    found = names(index.retrieve(QUESTION, mode="bm25", newest=True))
    assert found.index("menu") >= 4


def test_many_queries_and_the_setting(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    one = index.retrieve(QUESTION, newest=True)
    many = index.retrieve_many([QUESTION, Query(QUESTION, newest=False)], newest=True)
    assert [names(context) for context in many] == [names(one), names(one)]
    assert [p.document for p in index.search(QUESTION, 1, newest=True).hits] == ["2025"]
    answer = index.ask(QUESTION, newest=True)
    assert answer.quotes[0].document == "2025"
    with Index.open(index.path, settings=Settings(newest=True)) as other:
        assert names(other.retrieve(QUESTION)) == names(one)
        assert names(other.retrieve(QUESTION, newest=False)) != names(one)
    for command in ("retrieve", "ask", "search"):
        assert main([command, "-i", str(index.path), "--newest", "--stale", QUESTION]) == 0
        assert re.findall(r"is (\d+) EUR", capsys.readouterr().out)[0] == "19"


def test_the_time_of_a_file_counts_last(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, day, head in (
        ("old.md", 1_600_000_000, ""),
        ("new.md", 1_700_000_000, ""),
        ("told.md", 1_500_000_000, "---\ndate: 2026-01-01\n---\n"),
    ):
        file = folder / name
        file.write_text(head + NOTE.format("yachts", len(name) + day % 7))
        os.utime(file, (day, day))
    with Index.build(str(folder), tmp_path / "index") as index:
        assert names(index.retrieve(QUESTION, newest=True)) == ["told.md", "new.md", "old.md"]


def test_of_near_copies_the_newest_is_printed(tmp_path: Path) -> None:
    """The older one has the word of the question and fits better."""
    text = (
        "Boats pay the {} at the office of the harbour master, who also sells tickets for the ferry to the "
        "islands and keeps the keys of the showers, the laundry and the boat house. "
        + "The quay on the far side of the bay is for fishermen alone, and nobody may moor there overnight. "
        + "Water and light are free for guests, while ice and bait are sold at the shop behind the church. "
        + "In a storm from the west the bridge is closed, and the pilot boat takes people across on request. "
        + "Dogs are welcome on every pier as long as they are on a lead, and children should wear a jacket. "
        + "Whoever finds a lost anchor or a chain is asked to tell the warden, who keeps a list of them."
    )
    notes = {"old": ("2021-03-01", "fee"), "new": ("2025-03-01", "charge")}
    documents = [
        Document(name, text.format(word), metadata={"date": day}) for name, (day, word) in notes.items()
    ]
    question = "Where do boats pay the fee?"
    with Index.build(documents, tmp_path / "index") as index:
        plain = index.retrieve(question, mode="bm25").passages
        newest = index.retrieve(question, mode="bm25", newest=True).passages
    assert [(one.document, [copy.document for copy in one.also_in]) for one in plain] == [("old", ["new"])]
    assert [(one.document, [copy.document for copy in one.also_in]) for one in newest] == [("new", ["old"])]


def test_bad_values(index: Index) -> None:
    with pytest.raises(ConfigError, match="newest must be a bool, got a str"):
        index.retrieve(QUESTION, newest="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scores", "days", "order"),
    [
        ([], [], []),
        ([1.0], [""], [0]),
        ([1.0, 0.9, 0.75], ["2020", "2021", "2022"], [1, 0, 2]),
        ([1.0, 1.0, 1.0], ["", "2020", ""], [1, 0, 2]),
        ([1.0, 1.0], ["2020-05", "2020"], [0, 1]),
        ([0.0, 0.0], ["2020", "2021"], [1, 0]),
        ([6.0, 5.5, -9.0], ["2020", "2021", "2022"], [1, 0, 2]),  # logits of a cross-encoder
        # Cosines that are all high: only those in the upper half are comparable.
        ([0.9, 0.89, 0.86, *[0.8] * 8], ["1", "2", "3", *["9"] * 8], [2, 1, 0, *range(3, 11)]),
    ],
)
def test_groups(scores: list[float], days: list[str], order: list[int]) -> None:
    assert newest_first(np.array(scores), days) == order


@given(st.lists(st.tuples(st.floats(-5, 5), st.sampled_from(["", "2020", "2021-01-01"])), max_size=20))
def test_any_scores_give_a_permutation(rows: list[tuple[float, str]]) -> None:
    rows.sort(key=lambda row: -row[0])
    order = newest_first(np.array([score for score, _ in rows]), [day for _, day in rows])
    assert sorted(order) == list(range(len(rows)))
    days = [rows[at][1] for at in order]
    if rows and all(score == rows[0][0] for score, _ in rows):
        assert days == sorted(days, reverse=True)
