"""Collections of joined indexes: their size is bounded, and a join waits for nobody and for no deadline."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.index.indexes import Indexes
from ketrag_fast.query import joined, shards
from ketrag_fast.query.joined import JoinedIndexes

TEXT = "The Fram sailed with Nansen, and the Maud with Amundsen."


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[list[Index]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                Index.build(
                    [Document(f"d{n}", TEXT, f"Log {n}")], tmp_path / str(n), settings=Settings(threads=1)
                )
            )
            for n in range(4)
        ]


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> JoinedIndexes:
    own = JoinedIndexes()
    monkeypatch.setattr(shards, "_JOINED", own)
    return own


def pair(opened: list[Index], *numbers: int) -> Indexes:
    return Indexes({str(n): opened[n] for n in numbers})


def test_collections_have_a_maximum_size_together(
    opened: list[Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    each = sum(opened[n]._opened.totals[2] for n in (0, 1))
    own = JoinedIndexes(2 * each)
    monkeypatch.setattr(shards, "_JOINED", own)
    sets = [(0, 1), (1, 2), (2, 3), (0, 3)]
    for numbers in sets:
        assert pair(opened, *numbers).retrieve("Fram", mode="walk").passages
    assert (len(own), own.keywords) == (2, 2 * each)
    joins: list[int] = []
    complete = joined._core.Union.complete

    class Counted:
        @staticmethod
        def complete(given: Any, **options: Any) -> Any:
            joins.append(len(given))
            return complete(given, **options)

    monkeypatch.setattr(joined._core, "Union", Counted)
    for numbers in ((2, 3), (0, 3)):  # the last two are kept
        pair(opened, *numbers).retrieve("Fram", mode="bm25")
    assert joins == []


def test_a_closed_index_releases_its_collections(
    opened: list[Index], cache: JoinedIndexes, tmp_path: Path
) -> None:
    with Index.build([Document("x", TEXT)], tmp_path / "x", settings=Settings(threads=1)) as index:
        Indexes({"x": index, "0": opened[0]}).retrieve("Fram", mode="walk")
        pair(opened, 1, 2).retrieve("Fram", mode="walk")
        before = cache.keywords
    del index
    gc.collect()
    assert 0 < cache.keywords < before
    pair(opened, 1, 2).retrieve("Fram", mode="walk")
    assert len(cache) == 1


def slow_joins(monkeypatch: pytest.MonkeyPatch, begun: Event, go_on: Event) -> list[float | None]:
    """The first join waits; all record the seconds that they may take."""
    complete, limits = joined._core.Union.complete, []

    class Slow:
        @staticmethod
        def complete(given: Any, *, seconds: float | None = None) -> Any:
            limits.append(seconds)
            if not begun.is_set():
                begun.set()
                assert go_on.wait(60)
            return complete(given, seconds=seconds)

    monkeypatch.setattr(joined._core, "Union", Slow)
    return limits


def test_a_join_delays_no_query_of_other_indexes(
    opened: list[Index], cache: JoinedIndexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, answers = Event(), Event(), []
    slow_joins(monkeypatch, begun, go_on)
    thread = Thread(target=lambda: answers.append(cache.find([opened[0]._opened], 1, None)))
    thread.start()
    assert begun.wait(60)
    try:
        assert cache.find([opened[2]._opened, opened[3]._opened], 1, None) is not None
        assert not answers
        # A query of the same indexes waits for the join, but only as long as it may.
        began = time.monotonic()
        assert cache.find([opened[0]._opened], 1, 0.05) is None
        assert 0.04 < time.monotonic() - began < 30
    finally:
        go_on.set()
        thread.join()
    assert answers[0] is cache.find([opened[0]._opened], 1, None)


def test_a_join_keeps_the_deadline(tmp_path: Path, cache: JoinedIndexes) -> None:
    """Without time to join them, the indexes are ranked apart; with time, they are joined."""
    documents = [Document(f"d{n}", f"{TEXT} Day {n} of the log, at {n} degrees.") for n in range(3000)]
    with ExitStack() as stack:
        halves = [
            stack.enter_context(Index.build(documents[n::2], tmp_path / str(n), settings=Settings(threads=1)))
            for n in range(2)
        ]
        generations = [one._opened for one in halves]
        began = time.process_time()
        assert cache.find(generations, 1, 1e-3) is None
        short = time.process_time() - began
        assert cache.find(generations, 1, 1e-3) is None  # not tried again in so little time
        began = time.process_time()
        assert cache.find(generations, 1, None) is not None
        assert short < (time.process_time() - began) / 2
