"""The driver of summaries: nothing is asked twice, one bad description spoils itself alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ketrag_fast.base.progress import Event, Meter
from ketrag_fast.errors import Cancelled
from ketrag_fast.models.extraction.run import Reading
from ketrag_fast.models.extraction.summaries import (
    Described,
    Summaries,
    Summary,
    summarise_descriptions,
    summary_of,
)
from ketrag_fast.models.llms.protocol import Prompt
from ketrag_fast.storage.journal import Journal
from tests.support.scripted_model import Scripted, reader

COUNT = 14


def said(prompt: Prompt) -> str:
    return '{"summary": "All of it."}'


def wanted() -> list[Described]:
    return summarise_descriptions([((f"N{n}",), [f"line b of {n}", f"line a of {n}"]) for n in range(COUNT)])


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Callable[..., tuple[list[Summary], Reading]]]:
    with Journal(tmp_path / "index.sqlite") as journal:

        def work(
            model: Scripted, told: Callable[[Event], bool | None] | None = None
        ) -> tuple[list[Summary], Reading]:
            who = reader(model)
            reading = Reading(journal, who, journal.reader(who.key, who.spec, who.identity).number)
            summaries = Summaries(reading)
            every = summaries.items(wanted())
            summaries.write(every, Meter("skeleton", told, "summaries"))
            return every, reading

        yield work


def test_stopped_and_gone_on_with(write: Callable[..., tuple[list[Summary], Reading]]) -> None:
    first, second = Scripted(said), Scripted(said)
    with pytest.raises(Cancelled, match="finished work is kept"):
        write(first, lambda event: False if event.done >= 3 else None)
    assert 0 < len(first.asked) < COUNT
    every, _ = write(second)
    assert len(first.asked) + len(second.asked) == COUNT
    assert all(summary_of(one) for one in every)


def test_lines_that_do_not_fit_are_no_dead_endpoint(
    write: Callable[..., tuple[list[Summary], Reading]],
) -> None:
    model = Scripted(said, room=lambda prompt: 5 if prompt.number else 500)
    every, reading = write(model)
    assert [summary_of(one) is not None for one in every] == [True] + [False] * (COUNT - 1)
    assert (len(model.asked), reading.outcome.asked) == (1, 1)
