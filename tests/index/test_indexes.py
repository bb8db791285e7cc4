"""One query over several indexes: the ranking that one index of all documents would have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import ConfigError, DeadlineExceeded, InputError, ModeUnavailable, UnknownName
from ketrag_fast.eval import load_dataset
from ketrag_fast.eval.run import collect
from ketrag_fast.index.indexes import Indexes

QUESTION = "Who sailed the Fram?"
NORTH = [
    Document("fram", "Nansen sailed the Fram into the ice in 1893.", "Fram"),
    Document("whales", "Whales feed on krill near the surface.", "Whales"),
]
SOUTH = [
    Document("maud", "Amundsen sailed the Maud in 1918, long after the Fram.", "Maud"),
    Document("bread", "Bread is baked from flour and water.", "Bread"),
]


@pytest.fixture
def indexes(tmp_path: Path) -> Iterator[dict[str | None, Index]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(Index.build(documents, tmp_path / name))
            for name, documents in (("north", NORTH), ("south", SOUTH))
        }


def test_passages_are_sorted_by_relevance_and_numbered_again(indexes: dict[str | None, Index]) -> None:
    context = Indexes(indexes).retrieve(QUESTION, mode="bm25")
    alone = {name: index.retrieve(QUESTION, mode="bm25") for name, index in indexes.items()}
    found = context.passages
    assert {(one.index, one.document) for one in found} == {
        (name, one.document) for name, own in alone.items() for one in own.passages
    }
    assert {one.index for one in found} == {"north", "south"}
    assert [one.rank for one in found] == list(range(1, len(found) + 1))
    assert [one.relevance for one in found] == sorted((one.relevance for one in found), reverse=True)
    assert context.tokens == sum(one.tokens for one in found) == context.sections[0].tokens
    blocks = context.text.split("\n\n")
    assert [block.split("\n") for block in blocks] == [
        [f"[{one.rank}]", one.title, *one.text.split("\n"), *([""] if one is found[-1] else [])]
        for one in found
    ]


def test_one_index_answers_for_itself(indexes: dict[str | None, Index]) -> None:
    north = indexes["north"]
    assert Indexes({None: north}).retrieve(QUESTION).text == north.retrieve(QUESTION).text
    assert Indexes({None: north}).retrieve(QUESTION).passages[0].index is None


def test_top_and_budget_limit_the_whole(indexes: dict[str | None, Index]) -> None:
    whole = Indexes(indexes).retrieve(QUESTION, mode="bm25")
    first = Indexes(indexes).retrieve(QUESTION, mode="bm25", top=1)
    assert [one.document for one in first.passages] == [whole.passages[0].document]
    budget = whole.passages[0].tokens
    assert Indexes(indexes).retrieve(QUESTION, mode="bm25", budget=budget).tokens <= budget
    assert Indexes(indexes).retrieve("zzz", mode="bm25").reason == "no_match"
    assert Indexes(indexes).retrieve("zzz", mode="bm25").text == ""


def test_what_cannot_be_merged_is_refused(indexes: dict[str | None, Index]) -> None:
    with pytest.raises(ModeUnavailable, match="more than a list of passages"):
        Indexes(indexes).retrieve(QUESTION, mode="survey")
    with pytest.raises(DeadlineExceeded):
        Indexes(indexes).retrieve(QUESTION, deadline=1e-9)


def test_an_answer_quotes_passages_of_several(indexes: dict[str | None, Index]) -> None:
    answer = Indexes(indexes).ask(QUESTION, mode="bm25")
    assert answer.reason == "no_model"
    assert {answer.context.passages[quote.number - 1].index for quote in answer.quotes} == {"north", "south"}


def test_the_command(indexes: dict[str | None, Index], capsys: pytest.CaptureFixture[str]) -> None:
    both = ",".join(str(index.path) for index in indexes.values())
    assert main(["retrieve", QUESTION, "-i", both, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {passage["index"] for passage in printed["passages"]} == set(both.split(","))
    assert main(["retrieve", QUESTION, "-i", both]) == 0
    assert f"[{indexes['north'].path}] fram:" in capsys.readouterr().out
    assert main(["ask", QUESTION, "-i", both]) == 0
    # As in one index of all documents, only the best passage is quoted.
    assert f"[{indexes['south'].path}] maud:" in capsys.readouterr().out
    for option in (["--explain"], ["--html", "page.html"]):
        assert main(["retrieve", QUESTION, "-i", both, *option]) == 2
        assert "takes one index" in capsys.readouterr().err


def test_quoted_phrases_come_first_as_in_one_index(tmp_path: Path) -> None:
    texts = [
        "The ship of polar drift sailed north. Polar drift moves a ship.",
        "Polar drift of ships was studied by a ship in the north.",
        "A drift polar ship sails.",
        "The north wind moved the ship in a drift near polar ice.",
        "Ships in a polar sea of ice met the polar drift.",
        "Harbours have no ice.",
    ]
    documents = [Document(f"d{at}", text) for at, text in enumerate(texts)]
    settings = Settings(embedder="builtin", threads=1)
    question = 'Which ship did "north wind moved" describe in the polar drift?'
    with (
        Index.build(documents, tmp_path / "one", settings=settings) as one,
        Index.build(documents[::2], tmp_path / "even", settings=settings) as even,
        Index.build(documents[1::2], tmp_path / "odd", settings=settings) as odd,
    ):
        both = Indexes({"even": even, "odd": odd})
        for mode in ("bm25", "walk"):
            wanted = [passage.document for passage in one.retrieve(question, mode=mode, top=4).passages]
            found = [passage.document for passage in both.retrieve(question, mode=mode, top=4).passages]
            assert found[0] == wanted[0] == "d3"
        without = both.retrieve(question.replace('"', ""), mode="bm25", top=4).passages
        quoted = both.retrieve(question, mode="bm25", top=4).passages
        assert [row.document for row in quoted[1:]] == [
            row.document for row in without if row.document != "d3"
        ][:3]
        single = one.retrieve(question, mode="bm25", top=4).passages
        assert [(row.document, round(row.relevance, 6)) for row in quoted] == [
            (row.document, round(row.relevance, 6)) for row in single
        ]


def test_lines_texts_and_documents_of_several(indexes: dict[str | None, Index]) -> None:
    both = Indexes(indexes)
    lines = both.grep("sailed")
    assert [(line.document, line.index) for line in lines] == [("fram", "north"), ("maud", "south")]
    assert both.grep("sailed", limit=1) == lines[:1] and both.grep("sailed", limit=2) == lines
    assert both.grep("SAILED") == [] and len(both.grep("SAILED", ignore_case=True)) == 2
    assert (both.text("bread").index, both.text("bread").text) == ("south", SOUTH[1].text)
    with pytest.raises(UnknownName, match="titanic"):
        both.text("titanic")
    listed = {name: [one.document for one in own] for name, own in both.documents(containing="a").items()}
    assert listed == {"north": ["fram", "whales"], "south": ["maud", "bread"]}
    assert set(both.themes()) == {"north", "south"}


def test_rights_hold_for_lines_and_texts_of_several(tmp_path: Path) -> None:
    with ExitStack() as stack:
        opened = {}
        for name, team in (("north", "red"), ("south", "blue")):
            document = Document(name, f"The {name} ship sailed.", name, {"team": team})
            opened[name] = stack.enter_context(Index.build([document], tmp_path / name))
        both = Indexes(opened)
        assert [line.index for line in both.grep("sailed", allow="team=blue")] == ["south"]
        assert both.text("south", allow="team=blue").index == "south"
        with pytest.raises(UnknownName):
            both.text("north", allow="team=blue")
        assert [line.index for line in both.grep("sailed", filter="team=red")] == ["north"]


def test_lines_of_services_are_refused(indexes: dict[str | None, Index]) -> None:
    both = Indexes({"here": indexes["north"], "there": "http://127.0.0.1:1"})
    for call in (lambda: both.grep("a"), lambda: both.text("a"), both.documents, both.themes):
        with pytest.raises(ConfigError, match="there is a service"):
            call()


def test_several_indexes_are_evaluated_as_one(
    indexes: dict[str | None, Index], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = Indexes(indexes)
    rows = both.retrieve_many([QUESTION, "bread"], budgets=[0, 500], mode="bm25")
    assert [[context.budget for context in row] for row in rows] == [[0, 500], [0, 500]]
    assert rows[0][1].text == both.retrieve(QUESTION, budget=500, mode="bm25").text
    assert [one.text for one in both.retrieve_many([QUESTION])] == [both.retrieve(QUESTION).text]
    with pytest.raises(InputError, match="budget cannot be combined"):
        both.retrieve_many([QUESTION], budgets=[1], budget=1)
    folder = tmp_path / "set"
    folder.mkdir()
    questions = [("q1", QUESTION, "fram"), ("q2", "What is bread baked from?", "bread")]
    (folder / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text, _ in questions)
    )
    (folder / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"{name}\t{gold}\t1\n" for name, _, gold in questions)
    )
    dataset = load_dataset(folder)
    assert [one.gold for one in dataset.questions] == [{"fram"}, {"bread"}]
    found = collect(both, dataset, ["bm25"], [500])
    assert [one.found[:1] for one in found.results] == [("fram",), ("bread",)]
    assert [one.rank for one in found.results] == [1, 1]
    named = ",".join(str(index.path) for index in indexes.values())
    assert main(["eval", str(folder), "-i", named, "--mode", "bm25,walk", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {row["mode"] for row in printed["rows"]} == {"bm25", "walk"}
    assert all(row["mrr"] == 1.0 for row in printed["rows"])
    for option in (["--save", str(tmp_path / "saved")], ["--answers", ""]):
        assert main(["eval", str(folder), "-i", named, *option]) == 2
        assert "takes one index" in capsys.readouterr().err


def test_documents_of_several_are_listed(
    indexes: dict[str | None, Index], capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(index.path) for index in indexes.values()]
    assert main(["documents", "-i", ",".join(paths), "--json", "--first", "1", "--count", "2"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [(one["document"], one["index"]) for one in printed["documents"]] == [
        ("whales", paths[0]),
        ("maud", paths[1]),
    ]
    assert (printed["total"], printed["indexes"]) == (4, paths)
    assert main(["documents", "-i", ",".join(paths)]) == 0
    assert f"[{paths[1]}] bread" in capsys.readouterr().out
    assert main(["documents", "-i", paths[0], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["index"] == paths[0]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str | None, Index]]:
    """Two indexes, in which each argument of a query changes the result."""
    folder = tmp_path_factory.mktemp("fleet")
    rows = {
        "north": [*NORTH, Document("fleet/ice", "Ice presses the Fram.\nThe krill of the ice.", "Ice")],
        "south": [*SOUTH, Document("fleet/harbour", "Flour for the Maud.\nThe krill of the sea.", "Sea")],
    }
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                Index.build(
                    [Document(one.id, one.text, one.title, {"part": one.id[:2]}) for one in documents],
                    folder / str(name),
                    settings=Settings(threads=1, modes="walk,bm25,text"),
                )
            )
            for name, documents in rows.items()
        }


@pytest.mark.parametrize("several", [False, True])
def test_every_argument_reaches_the_indexes(fleet: dict[str | None, Index], *, several: bool) -> None:
    north = fleet["north"]
    both = Indexes(fleet if several else {None: north})
    plain: dict[str, Any] = {"query": "Fram krill ice maud", "mode": "bm25"}
    related: dict[str, Any] = {"related": "fleet/ice"}
    rows: list[tuple[dict[str, Any], dict[str, Any], tuple[str, ...], tuple[str, ...]]] = [
        (
            plain,
            {},
            ("fleet/ice", "fram", "whales"),
            ("fleet/ice", "maud", "fram", "fleet/harbour", "whales"),
        ),
        (plain, {"limit": 1}, ("fleet/ice",), ("fleet/ice",)),
        (plain, {"glob": "fleet/*"}, ("fleet/ice",), ("fleet/ice", "fleet/harbour")),
        (
            plain,
            {"grep": "the surface|The krill"},
            ("fleet/ice", "whales"),
            ("fleet/ice", "fleet/harbour", "whales"),
        ),
        (plain, {"filter": "part=wh"}, ("whales",), ("whales",)),
        (related, {}, ("fram", "whales"), ("fram", "whales")),
        (related, {"limit": 1}, ("fram",), ("fram",)),
        (related, {"glob": "w*"}, ("whales",), ("whales",)),
        (related, {"grep": "krill"}, ("whales",), ("whales",)),
        (related, {"filter": "part=wh"}, ("whales",), ("whales",)),
    ]
    for query, how, one, all_of_them in rows:
        hits = both.search(**query, **how)
        assert tuple(hit.document for hit in hits) == (all_of_them if several else one), (query, how)
        assert {hit.index for hit in hits if hit.document == "fram"} <= {"north" if several else None}
        if not several:
            assert hits == north.search(**query, **how)


def test_arguments_hold_for_lines_texts_lists_and_answers(fleet: dict[str | None, Index]) -> None:
    both = Indexes(fleet)
    rows: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["fleet/ice", "fleet/ice", "fram", "maud", "fleet/harbour", "fleet/harbour"]),
        ({"limit": 0}, []),
        ({"limit": 4}, ["fleet/ice", "fleet/ice", "fram", "maud"]),
        ({"limit": 5}, ["fleet/ice", "fleet/ice", "fram", "maud", "fleet/harbour"]),
        ({"glob": "fleet/*", "limit": 3}, ["fleet/ice", "fleet/ice", "fleet/harbour"]),
    ]
    for how, documents in rows:
        assert sorted(line.document for line in both.grep("Fram|Maud|krill of", **how)) == sorted(documents)
    with pytest.raises(DeadlineExceeded):
        both.grep("Fram", deadline=1e-9)
    assert (both.text("fleet/harbour", (2, 2)).text, both.text("fleet/harbour", 2).index) == (
        "The krill of the sea.",
        "south",
    )
    listed = both.documents(filter="part=fl", count=1)
    assert {name: [one.document for one in own] for name, own in listed.items()} == {
        "north": ["fleet/ice"],
        "south": ["fleet/harbour"],
    }
    contexts = both.retrieve_many(["Fram", "Maud"], mode="bm25", top=1, filter="part=fl")
    assert [[one.document for one in context.passages] for context in contexts] == [
        ["fleet/ice"],
        ["fleet/harbour"],
    ]
    (rows_of_one,) = both.retrieve_many(["krill"], budgets=[10, 500], mode="bm25", top=2)
    assert [(one.budget, len(one.passages)) for one in rows_of_one] == [(10, 1), (500, 2)]
    answer = both.ask("Who sailed the Maud?", mode="bm25", filter="part=ma", llm="none")
    assert [one.document for one in answer.context.passages] == ["maud"] and answer.quotes
    for wrong in ({}, {"north": "ftp://there"}):
        with pytest.raises(ConfigError):
            Indexes(wrong)


def test_the_nearest_name_of_any_index_is_suggested(fleet: dict[str | None, Index]) -> None:
    for both in (Indexes(fleet), Indexes(dict(reversed(fleet.items())))):
        with pytest.raises(UnknownName) as unknown:
            both.search(related="fleet/harbor")
        assert unknown.value.hint == "did you mean fleet/harbour?"
        assert [hit.index for hit in both.search(related="fleet/harbour", limit=1)] == ["south"]
        nothing = both.search(related="NoSuchName", limit=1)
        assert not nothing and nothing.reason == "no_match"
    with pytest.raises(ConfigError, match="related needs an index of this machine"):
        Indexes({"a": "http://127.0.0.1:1", "b": "http://127.0.0.1:1"}).search(related="fleet/harbour")
