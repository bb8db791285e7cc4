"""Documents divided into several indexes are ranked as in one."""

from __future__ import annotations

import gzip
import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, _core
from ketrag_fast.errors import DeadlineExceeded
from ketrag_fast.eval import load_dataset
from ketrag_fast.eval.datasets import DataSet
from ketrag_fast.index.indexes import Indexes
from ketrag_fast.query import shards

DATA = Path(__file__).parents[2] / "benches" / "data" / "2wiki"
QUESTIONS = 40
POLAR = [
    Document("fram", "The Fram was built by Colin Archer for Nansen.", "Fram", {"year": 1893, "team": "a"}),
    Document("archer", "Colin Archer was born in Larvik.", "Colin Archer", {"year": 1832, "team": "b"}),
    Document("maud", "The Maud was built by Christian Jensen.", "Maud", {"year": 1917, "team": "a"}),
    Document("larvik", "Larvik is a town by the sea.", "Larvik", {"year": 1671, "team": "b"}),
]


def shard_of(document: Document, count: int) -> int:
    return int(hashlib.sha256(document.id.encode()).hexdigest()[:8], 16) % count


def divided(stack: ExitStack, documents: list[Document], folder: Path, count: int) -> Indexes:
    indexes = {}
    for number in range(count):
        own = [one for one in documents if shard_of(one, count) == number]
        indexes[str(number)] = stack.enter_context(Index.build(own, folder / f"{count}-{number}"))
    return Indexes(indexes)


def documents_of(dataset: DataSet) -> list[Document]:
    assert dataset.corpus is not None
    rows = map(json.loads, dataset.corpus.read_text().splitlines())
    return [Document(row["_id"], row["text"], row.get("title") or "") for row in rows]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    folder = tmp_path_factory.mktemp("2wiki")
    for packed in DATA.glob("*.gz"):
        (folder / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    return load_dataset(folder)


@pytest.fixture(scope="module")
def whole(dataset: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index.build(documents_of(dataset), tmp_path_factory.mktemp("whole") / "index") as index:
        yield index


def keep_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank the candidates of indexes, as for indexes that are too large to be joined."""
    monkeypatch.setattr(shards, "MOST_JOINED", 0)


@pytest.fixture(params=["joined", "apart"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to rank: all units of the indexes, or the candidates of each."""
    if request.param == "apart":
        keep_apart(monkeypatch)
    return str(request.param)


def test_joined_indexes_walk_as_one(dataset: DataSet, whole: Index, tmp_path: Path) -> None:
    """The scores differ in the last digits at most, because sums have another order."""
    with ExitStack() as stack:
        several = divided(stack, documents_of(dataset), tmp_path, 3)
        for question in dataset.questions[:QUESTIONS]:
            one, many = (
                [passage.score for passage in which.retrieve(question.text, mode="walk", top=10).passages]
                for which in (whole, several)
            )
            assert one == pytest.approx(many[: len(one)], rel=1e-6) and len(one) >= 5


@pytest.mark.parametrize("count", [2, 5])
def test_several_indexes_rank_as_one(
    dataset: DataSet, whole: Index, tmp_path: Path, count: int, way: str
) -> None:
    questions = dataset.questions[:QUESTIONS]
    with ExitStack() as stack:
        several = divided(stack, documents_of(dataset), tmp_path, count)
        recall = {"one": 0.0, "several": 0.0}
        for question in questions:
            one, many = (
                [passage.score for passage in which.retrieve(question.text, mode="bm25", top=10).passages]
                for which in (whole, several)
            )
            # One index counts passages that it leaves out as copies.
            assert one == many[: len(one)] and len(one) >= 5
            for name, which in (("one", whole), ("several", several)):
                found = which.retrieve(question.text, mode="walk", top=5, budget=10_000).passages
                recall[name] += len(question.gold & {one.document for one in found}) / len(question.gold)
    tolerated = 0.02 if way == "apart" else 0.005
    assert recall["several"] >= recall["one"] - tolerated * len(questions)


@pytest.mark.usefixtures("way")
def test_candidates_with_the_words_of_the_question_alone_are_enough_for_bm25(
    dataset: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contexts equal those of candidates with all words, which questions with other forms of words need."""
    keep_apart(monkeypatch)
    asked: list[bool] = []
    candidates = shards.LocalShard.candidates

    def recorded(self: shards.LocalShard, words: shards.Words, *rest: Any) -> Any:
        asked.append(words.are_enough)
        return candidates(self, words, *rest)

    monkeypatch.setattr(shards.LocalShard, "candidates", recorded)
    german = Document("brief", "Die Briefe der Kapitäne liegen im Archiv. Der Kapitän schrieb sie.", "Brief")
    documents = [replace(one, metadata={"number": at}) for at, one in enumerate(documents_of(dataset))]
    with ExitStack() as stack:
        several = divided(stack, [*documents, german], tmp_path, 3)
        questions = [one.text for one in dataset.questions[:QUESTIONS]]
        for question in (
            *questions,
            '"Colin Archer" of Larvik',
            "Kapitän schrieb Brief",
            "no wrods",
            "films",
        ):
            for fields in ({}, {"top": 3, "filter": "number<150"}, {"min_score": 0.3}):
                own = {"mode": "bm25", **fields}
                narrow = several.retrieve(question, **own).to_json()
                with monkeypatch.context() as patch:
                    patch.setattr(_core, "reads_forms", lambda *_: True)
                    full = several.retrieve(question, **own).to_json()
                assert {**narrow, "timings_ms": {}} == {**full, "timings_ms": {}}
    assert set(asked) == {True, False}


def test_hops_lead_from_index_to_index(tmp_path: Path) -> None:
    """The second passage has no word of the question: only the first one leads to it."""
    with ExitStack() as stack:
        indexes = Indexes(
            {one.id: stack.enter_context(Index.build([one], tmp_path / one.id)) for one in POLAR}
        )
        question = "Where was the builder of the Fram born?"
        found = indexes.retrieve(question, mode="walk", top=2).passages
        assert [one.document for one in found] == ["fram", "archer"] or {one.document for one in found} == {
            "fram",
            "archer",
        }
        assert {one.index for one in found} == {"fram", "archer"}


@pytest.mark.usefixtures("way")
def test_filters_and_rights_hold_in_each_index(tmp_path: Path) -> None:
    with ExitStack() as stack:
        indexes = divided(stack, POLAR, tmp_path, 2)
        for fields in ({"filter": "team=a"}, {"allow": "team=a"}):
            for mode in ("bm25", "walk"):
                found = indexes.retrieve("Who built the Fram and the Maud?", mode=mode, **fields).passages  # type: ignore[arg-type]
                assert {one.document for one in found} == {"fram", "maud"}
        hits = indexes.search("Who built the Fram?", glob="maud")
        assert {hit.document for hit in hits} <= {"maud"}


@pytest.mark.usefixtures("way")
def test_a_document_of_two_indexes_is_returned_once(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(Index.build(POLAR[:2], tmp_path / "a"))
        second = stack.enter_context(Index.build(POLAR[:1] + POLAR[2:], tmp_path / "b"))
        for mode in ("bm25", "walk"):
            found = Indexes({"a": first, "b": second}).retrieve("Who built the Fram?", mode=mode).passages
            assert [one.document for one in found].count("fram") == 1


@pytest.mark.usefixtures("way")
def test_a_document_of_two_indexes_is_found_where_it_is_permitted(tmp_path: Path) -> None:
    with ExitStack() as stack:
        hidden = Document(POLAR[0].id, POLAR[0].text, POLAR[0].title, {"year": 1893, "team": "b"})
        first = stack.enter_context(Index.build([hidden, *POLAR[1:]], tmp_path / "a"))
        second = stack.enter_context(Index.build(POLAR[:1], tmp_path / "b"))
        indexes = Indexes({"a": first, "b": second})
        for mode in ("bm25", "walk"):
            found = indexes.retrieve("Who built the Fram?", mode=mode, allow="team=a").passages
            assert ("fram", "b") in {(one.document, one.index) for one in found}
            assert all((one.document, one.index) in {("fram", "b"), ("maud", "a")} for one in found)


@pytest.mark.usefixtures("way")
def test_a_new_generation_of_one_index_is_searched(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(Index.build(POLAR[:2], tmp_path / "a"))
        second = stack.enter_context(Index.build(POLAR[2:3], tmp_path / "b"))
        indexes = Indexes({"a": first, "b": second})
        before = indexes.retrieve("Which town is by the sea?", mode="walk").passages
        assert "larvik" not in {one.document for one in before}
        Index.build(POLAR[2:], tmp_path / "b", replace=True).close()
        assert second.refresh()
        after = indexes.retrieve("Which town is by the sea?", mode="walk").passages
        assert (after[0].document, after[0].index) == ("larvik", "b")


def test_a_late_index_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others share the deadline, and answer without the late one."""
    keep_apart(monkeypatch)
    candidates = shards.LocalShard.candidates

    def slow(self: shards.LocalShard, *arguments: object) -> object:
        if self.name == "1":
            time.sleep(0.2)
            raise DeadlineExceeded("the deadline passed")
        return candidates(self, *arguments)  # type: ignore[arg-type]

    with ExitStack() as stack:
        indexes = divided(stack, POLAR, tmp_path, 2)
        names = {one.document: one.index for one in indexes.retrieve("Fram Maud Archer Larvik").passages}
        monkeypatch.setattr(shards.LocalShard, "candidates", slow)
        context = indexes.retrieve("Fram Maud Archer Larvik", deadline=5.0)
        assert context.missing == ("1",) and "without 1" in context.warnings[0]
        assert context.to_json()["missing"] == ["1"]
        assert {one.document for one in context.passages} == {name for name, at in names.items() if at == "0"}
        assert indexes.search("Fram", deadline=5.0).missing == ("1",)
        with pytest.raises(DeadlineExceeded):
            indexes.retrieve("Fram", deadline=1e-9)


def test_a_query_of_function_words(tmp_path: Path) -> None:
    with ExitStack() as stack:
        indexes = divided(stack, POLAR, tmp_path, 2)
        found = indexes.retrieve("was by the", mode="walk").passages
        assert {one.index for one in found} == {"0", "1"}
