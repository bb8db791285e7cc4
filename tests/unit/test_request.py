"""A request to the core: checked when it is made, used for many questions, open to rankings from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ketrag_fast import Index, Settings, _core
from ketrag_fast.errors import DeadlineExceeded, InputError
from ketrag_fast.kernels import fuse_ranks
from tests.process import POLAR

QUESTION = "Who found the Fram?"
OPTIONS: dict[str, bool | int | float | str | None] = {
    "tables": "own",
    "seed_keywords": None,
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    settings = Settings(modes="auto,text,fused,keyword")
    return Index.build(POLAR / "articles", tmp_path_factory.mktemp("request") / "index", settings=settings)


@pytest.fixture(scope="module")
def searcher(index: Index) -> _core.Searcher:
    return index._opened.searcher


def ranking(*ids: int) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    return np.array(ids, np.uint32), np.linspace(1, 0, len(ids))


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        (
            ("m", [("a", 0.7), ("b", 0.6)], [10]),
            {},
            "mode m: the shares sum to 1.29.*than 1: a 0.7, b 0.6",
        ),
        (("m", [("a", -0.1)], [10]), {}, "mode m: the share of channel a must not be -0.1"),
        (("m", [("a", float("nan"))], [10]), {}, "share of channel a must not be NaN"),
        (("m", [], [10]), {}, "mode m: it has no channel"),
        (("m", [("a", 0.1), ("a", 0.1)], [10]), {}, "channel a occurs twice"),
        (("m", [("a", 1.0)], [-1]), {}, "a budget must not be negative, got -1"),
        (("m", [("a", 1.0)], [10]), {"join": "sum"}, "join must be shares, fuse or vote, not"),
        (("m", [("a", 1.0)], [10]), {"rollover": "texts"}, "rollover must be none, last or first, not"),
        (("m", [("a", 1.0)], [10]), {"deadline": -1.0}, "deadline"),
        (("m", [("a", 1.0)], [10]), {"deadline": float("nan")}, "deadline"),
        (("m", [("a", 1.0)], [10]), {"options": {"odd": [1]}}, "option odd must be a bool, int"),
        (("m", [("a", 1.0)], [10]), {"options": {"big": 2**70}}, "option big is too large"),
        (("m", [("keyword", 1.0)], [10]), {}, "channel keyword needs the option seed_keywords"),
        (
            ("m", [("keyword", 1.0)], [10]),
            {"options": {**OPTIONS, "seed_keywords": True}},
            "channel keyword: the option seed_keywords must be a whole number.*not true",
        ),
        (
            ("m", [("text", 1.0)], [10]),
            {"options": {"tables": "half"}},
            'channel text: the option tables must be own or published, not "half"',
        ),
        (
            ("m", [("skeleton", 1.0)], [10]),
            {"options": {"seed_entities": None, "tables": "own"}},
            "seed_entities must be a whole number from 0 up, not nothing",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_when_it_is_made(
    arguments: Any, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        _core.Request(*arguments, **more)


def test_a_request_keeps_what_it_was_made_of() -> None:
    request = _core.Request("mine", [("bm25", 1.0)], [10, 20], top=3)
    assert (request.mode, request.budgets, request.top) == ("mine", [10, 20], 3)
    with pytest.raises(AttributeError):
        request.top = 4  # type: ignore[misc]


def test_one_request_serves_many_questions(searcher: _core.Searcher) -> None:
    request = _core.Request("bm25", [("bm25", 1.0)], [300, 1000])
    questions = [QUESTION, "Where did Tom Crean die?", "Which ship sank?"] * 4
    many = searcher.answer_many(request, questions, threads=3)
    for question, reply in zip(questions, many, strict=True):
        one = searcher.answer(request, question)
        assert [c.text for c in one.contexts] == [c.text for c in reply.contexts]
        assert [c.tokens <= b for c, b in zip(reply.contexts, request.budgets, strict=True)] == [True, True]
    assert many[0].contexts[1].sections[0][:2] == ("sources", "bm25")


def test_options_of_other_channels_are_passed_over(searcher: _core.Searcher) -> None:
    plain = _core.Request("walk", [("walk", 1.0)], [500], options=OPTIONS)
    more = _core.Request("walk", [("walk", 1.0)], [500], options={**OPTIONS, "fancy": 1.5, "on": True})
    assert (
        searcher.answer(plain, QUESTION).contexts[0].text == searcher.answer(more, QUESTION).contexts[0].text
    )


def test_the_channels_say_what_they_lack(searcher: _core.Searcher) -> None:
    missing = searcher.missing()
    known = {
        "bm25",
        "text",
        "knn",
        "keyword",
        "walk",
        "skeleton",
        "concepts",
        "core-graph",
        "noderag",
        "cg-rag",
    }
    assert set(missing) == known
    assert missing["bm25"] is None
    assert missing["skeleton"] == "an entity skeleton (index with --llm)"
    request = _core.Request("mine", [("skeleton", 1.0)], [10], options={"seed_entities": 3, "tables": "own"})
    with pytest.raises(InputError, match="mode mine needs an entity skeleton"):
        searcher.answer(request, QUESTION)


def test_a_ranking_from_outside_is_printed_in_its_order(index: Index, searcher: _core.Searcher) -> None:
    request = _core.Request("mine", [("mine", 1.0)], [4000])
    found = searcher.answer(request, QUESTION, given={"mine": ranking(7, 2, 5), "other": ranking()})
    printed = found.contexts[0]
    assert printed.units == [7, 2, 5]
    assert printed.scores == [1.0, 0.5, 0.0]
    assert printed.sections[0][:2] == ("sources", "mine")
    nothing = searcher.answer(request, QUESTION, given={"mine": ranking()})
    assert (nothing.reason, nothing.contexts[0].text) == ("no_match", "")
    lists = [ranking(i, i + 1) for i in range(6)]
    many = searcher.answer_many(request, [QUESTION] * 6, given={"mine": lists}, threads=2)
    assert [reply.contexts[0].units for reply in many] == [[i, i + 1] for i in range(6)]
    with pytest.raises(InputError, match="rankings of channel mine must have one row for each question"):
        searcher.answer_many(request, [QUESTION] * 5, given={"mine": lists})


@pytest.mark.parametrize(
    ("ids", "scores", "message"),
    [
        ([0, 10**6], [1.0, 0.5], "channel mine names unit 1000000, but there are"),
        ([3, 4, 3], [1.0, 0.5, 0.2], "channel mine names unit 3 twice"),
        ([3, 4], [1.0, float("nan")], "channel mine has no number as the score of unit 4"),
        ([3, 4], [1.0], "channel mine has 2 ids and 1 scores"),
    ],
)
def test_what_is_no_ranking_is_refused(
    searcher: _core.Searcher, ids: list[int], scores: list[float], message: str
) -> None:
    request = _core.Request("mine", [("mine", 1.0)], [400])
    given = {"mine": (np.array(ids, np.uint32), np.array(scores))}
    with pytest.raises(InputError, match=message):
        searcher.answer(request, QUESTION, given=given)


def test_a_ranking_for_a_channel_that_is_there_or_for_none(searcher: _core.Searcher) -> None:
    with pytest.raises(InputError, match="channel bm25 is built in"):
        searcher.answer(_core.Request("m", [("bm25", 1.0)], [9]), QUESTION, given={"bm25": ranking(1)})
    with pytest.raises(InputError, match='mode m: channel "mine" does not exist, and no ranking is given'):
        searcher.answer(_core.Request("m", [("mine", 1.0)], [9]), QUESTION)


def test_a_ranking_from_outside_shares_a_budget_with_channels(searcher: _core.Searcher) -> None:
    shares = [("mine", 0.3), ("bm25", 0.7)]
    request = _core.Request("both", shares, [2000], rollover="last", options=OPTIONS)
    printed = searcher.answer(request, QUESTION, given={"mine": ranking(4, 9)}).contexts[0]
    assert [section[:2] for section in printed.sections] == [("text", "mine"), ("text", "bm25")]
    assert printed.tokens == sum(section[2] for section in printed.sections) <= 2000
    assert len(set(printed.units)) == len(printed.units)
    assert printed.text.count("-----Text source that may be relevant-----") == 2


def test_lists_from_outside_are_fused_with_those_of_channels(searcher: _core.Searcher) -> None:
    words = searcher.answer(_core.Request("bm25", [("bm25", 1.0)], [2**62]), QUESTION).contexts[0].units
    request = _core.Request("both", [("bm25", 0.5), ("mine", 0.5)], [2**62], join="fuse")
    got = searcher.answer(request, QUESTION, given={"mine": ranking(9, 4, 1)}).contexts[0]
    ids, scores = fuse_ranks([words, np.array([9, 4, 1], np.uint32)], constant=10)
    assert got.units == ids.tolist()
    assert got.scores == scores.tolist()
    assert got.sections[0][1] == "both"


def test_the_deadline_is_counted_from_the_call(searcher: _core.Searcher) -> None:
    request = _core.Request("text", [("text", 1.0)], [400], options=OPTIONS, deadline=0.0)
    with pytest.raises(DeadlineExceeded):
        searcher.answer(request, QUESTION)
    with pytest.raises(DeadlineExceeded):
        searcher.answer_many(request, [QUESTION] * 3)


def test_proposals_are_taken_by_the_name_of_their_list(searcher: _core.Searcher) -> None:
    """Enough of them stand for the whole list; those of another list change nothing."""
    request = _core.Request("text", [("text", 1.0)], [100_000], options=OPTIONS, top=2)
    plain = searcher.answer(request, QUESTION).contexts[0].units
    others = np.setdiff1d(np.arange(len(searcher), dtype=np.uint32), plain)
    near = searcher.answer(request, QUESTION, near={"units": others}).contexts[0].units
    assert not set(near) & set(plain) and len(near) == 2
    unread = searcher.answer(request, QUESTION, near={"keywords": others}).contexts[0].units
    assert unread == plain
    with pytest.raises(InputError):
        searcher.answer(request, QUESTION, near={"units": others[::-1].copy()})
    with pytest.raises(InputError, match="near units must have one row for each question"):
        searcher.answer_many(request, [QUESTION] * 2, near={"units": others[None]})


def test_tables_after_texts_repeat_no_source(tmp_path: Path, index: Index) -> None:
    """Tables may stand last: what is printed above them is no source any more."""
    from tests.index.test_skeleton_modes import REPLIES
    from tests.support.skeleton_index import searcher_with_skeleton

    searcher = searcher_with_skeleton(index.path, tmp_path, REPLIES)
    options = {**OPTIONS, "seed_entities": 10, "tables": "own"}
    shares = [("texts", 0.3), ("skeleton", 0.7)]
    found = {
        rollover: searcher.answer(
            _core.Request("mine", shares, [3000], rollover=rollover, options=options),
            "Which ship did Amundsen sail to the Ross Ice Shelf?",
            given={"texts": ranking(2, 0, 60, 61, 62, 63, 64, 65)},
        ).contexts[0]
        for rollover in ("none", "last", "first")
    }
    for printed in found.values():
        names = [section[0] for section in printed.sections]
        assert names == ["text", "entities", "relationships", "sources"]
        assert printed.tokens == sum(section[2] for section in printed.sections) <= 3000
    last = found["last"].units
    assert len(set(last)) == len(last)
    assert len(set(found["none"].units)) < len(found["none"].units)
