"""The driver: nothing is asked twice, nothing that arrived is lost, and one bad reply spoils one chunk."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ketrag_fast.base.progress import Event, Limited, Meter
from ketrag_fast.errors import BackendError, Cancelled, ExtractionError
from ketrag_fast.models.extraction.run import Reading, ReadingOutcome
from ketrag_fast.models.llms.protocol import ModelReply, Prompt
from ketrag_fast.storage.journal import Journal
from tests.support.scripted_model import Say, Scripted, chunks, good, reader

EMPTY = '{"e":[],"r":[]}'


class Place:
    """A journal, and builds over it."""

    def __init__(self, path: Path) -> None:
        self.path = path / "index.sqlite"
        self.events: list[Event] = []

    def read(
        self,
        model: Scripted,
        count: int = 12,
        *,
        stop: bool = False,
        limit: Limited | None = None,
        **more: object,
    ) -> ReadingOutcome:
        how = {name: more.pop(name) for name in ("retry_failed",) if name in more}
        who = reader(model, **more)  # type: ignore[arg-type]
        with Journal(self.path) as journal:
            number = journal.reader(who.key, who.spec, who.identity).number
            reading = Reading(journal, who, number, limit=limit, **how)  # type: ignore[arg-type]

            def told(event: Event) -> bool | None:
                self.events.append(event)
                return False if stop and event.done >= 3 else None

            return reading.read(chunks(count), Meter("replies", told, "chunks"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("slots", [1, 4, 50])
def test_each_chunk_once(place: Place, slots: int) -> None:
    first = Scripted(good, slots)
    found = place.read(first)
    assert (found.read, found.asked, found.hits) == (12, 12, 0)
    assert (found.tokens_in, found.tokens_out, found.tokens_shared) == (1200, 120, 840)
    assert not found.failed and not found.pending
    again = Scripted(good)
    found = place.read(again, 14)
    assert (found.read, found.asked, found.hits) == (14, 2, 12)
    assert len(again.asked) == 2


def test_the_order_is_that_of_importance(place: Place) -> None:
    model = Scripted(good)
    place.read(model, 5)
    assert [prompt.number for prompt in model.asked] == [0, 1, 2, 3, 4]


def broken(numbers: set[int], times: int = 99, text: str = "I cannot.") -> Say:
    seen: Counter[int] = Counter()

    def say(prompt: Prompt) -> str:
        seen[prompt.number] += 1
        return text if prompt.number in numbers and seen[prompt.number] <= times else good(prompt)

    return say


def test_an_unusable_reply_is_asked_for_once_more(place: Place) -> None:
    model = Scripted(broken({3, 7}, times=1))
    found = place.read(model)
    assert (found.read, found.asked, found.failed) == (12, 14, [])
    repeated = [p for p in model.asked if p.number == 3]
    assert repeated[0].text != repeated[1].text  # the same words would bring the same reply


def test_a_chunk_that_cannot_be_read_is_listed_and_not_asked_again(place: Place) -> None:
    found = place.read(Scripted(broken({3, 7})))
    assert (found.read, found.asked) == (10, 14)
    assert [(c.number, why.split(":")[0]) for c, why in found.failed] == [
        (3, "the reply could not be used"),
        (7, "the reply could not be used"),
    ]
    later = Scripted(good)
    assert len(place.read(later).failed) == 2
    assert later.asked == []
    found = place.read(later, retry_failed=True)
    assert (found.read, len(later.asked)) == (12, 2)


def test_a_failed_call_is_tried_again_now_and_in_the_next_build(place: Place) -> None:
    def refuses(prompt: Prompt) -> ModelReply | str:
        return ModelReply(0, "", "error", error="HTTP 500") if prompt.number == 2 else good(prompt)

    model = Scripted(refuses)
    found = place.read(model)
    assert [(c.number, why) for c, why in found.failed] == [(2, "HTTP 500")]
    assert len([p for p in model.asked if p.number == 2]) == 2
    assert place.read(Scripted(good)).read == 12


def test_gleanings_are_turns_of_their_own(place: Place) -> None:
    def glean(prompt: Prompt) -> str:
        return good(prompt) if not prompt.turns else '{"e":[["Here","place","gleaned"]],"r":[]}'

    place.read(Scripted(glean), 4)
    model = Scripted(glean, 3)
    found = place.read(model, 4, gleanings=1)
    assert (found.asked, found.read) == (4, 4)  # the first replies are kept
    assert all(prompt.turns[0][0] == good(prompt) for prompt in model.asked)
    assert place.read(Scripted(glean), 4, gleanings=1).asked == 0


def test_a_gleaning_that_fails_costs_the_chunk_nothing(place: Place) -> None:
    def say(prompt: Prompt) -> ModelReply | str:
        return good(prompt) if not prompt.turns else "sorry"

    found = place.read(Scripted(say), 4, gleanings=2)
    assert (found.read, found.asked, found.failed) == (4, 8, [])


def test_ten_barren_chunks_at_the_start_stop_the_build(place: Place) -> None:
    model = Scripted(lambda prompt: EMPTY)
    with pytest.raises(ExtractionError, match="no entity in the first 10 chunks") as caught:
        place.read(model, 40)
    assert "too small" in str(caught.value.hint)
    assert len(model.asked) == 10
    assert "continues anyway" in str(caught.value.hint)
    found = place.read(model, 40)  # the same command again
    assert (found.read, found.barren, len(model.asked)) == (40, 40, 40)


@pytest.mark.parametrize(
    ("reply", "hint"),
    [
        ("", "says nothing"),
        ("Sure! Here is the list you asked for.", "does not keep to the form"),
        (ModelReply(0, '{"e":[', "length"), "--llm-tokens"),
        (ModelReply(0, "", "time"), "--llm-seconds"),
        (ModelReply(0, "la la la la", "repetition"), "repeats itself"),
    ],
)
def test_the_likely_cause_is_named(place: Place, reply: ModelReply | str, hint: str) -> None:
    with pytest.raises(ExtractionError) as caught:
        place.read(Scripted(lambda prompt: reply), 40)
    assert hint in str(caught.value.hint)


def test_barren_chunks_later_on_stop_nothing(place: Place) -> None:
    found = place.read(Scripted(lambda p: good(p) if p.number == 9 else EMPTY), 40)
    assert (found.read, found.barren) == (40, 39)


def test_what_does_not_fit_is_listed_and_what_fits_tightly_gets_the_rest(place: Place) -> None:
    rooms = {2: 0, 5: -30, 7: 40}
    model = Scripted(good, room=lambda prompt: rooms.get(prompt.number, 5000))
    found = place.read(model, llm_tokens=64)
    assert [c.number for c, _ in found.failed] == [2, 5, 7]
    assert "does not fit the model's context of 4096 tokens" in found.failed[0][1]
    assert (found.read, found.asked) == (9, 9)
    assert place.read(Scripted(good), 12).read == 12  # another context, another chance


def test_nothing_fits(place: Place) -> None:
    model = Scripted(good, room=lambda prompt: -1)
    with pytest.raises(ExtractionError) as caught:
        place.read(model, 40)
    assert "--llm-context" in str(caught.value.hint)
    assert model.asked == []


def test_stopped_by_the_caller(place: Place) -> None:
    with pytest.raises(Cancelled) as caught:
        place.read(Scripted(good), 12, stop=True)
    assert "--publish-partial" in str(caught.value.hint)
    model = Scripted(good)
    assert place.read(model, 12).read == 12
    assert len(model.asked) < 12


def test_another_backend_error_ends_the_build_with_a_hint(place: Place) -> None:
    def refuses(prompt: Prompt) -> str:
        raise BackendError("the key is refused")

    with pytest.raises(BackendError, match="the key is refused") as caught:
        place.read(Scripted(refuses))
    assert "finished work is kept" in str(caught.value.hint)


def test_the_progress_line_says_how_it_goes(place: Place) -> None:
    place.read(Scripted(lambda p: EMPTY if p.number % 4 == 3 else good(p)))
    last = place.events[-1]
    assert (last.done, last.total) == (12, 12)
    assert "tokens/s, 25% without entities" in last.note


def test_a_wrong_number_and_a_monstrous_reply_do_no_harm(place: Place) -> None:
    class Confused(Scripted):
        def replies(self, *args: object, **more: object):  # type: ignore[no-untyped-def, override]
            yield ModelReply(999, "x", "stop")
            yield from super().replies(*args, **more)  # type: ignore[arg-type]

    monster = '{"e":[["Anna Qa","person","' + "\ud800 very long " * 100_000
    found = place.read(Confused(lambda p: monster if p.number == 0 else good(p)))
    assert found.read + len(found.failed) == 12
    assert len([c for c, _ in found.failed if c.number != 0]) == 0


def test_equal_chunks_are_read_once(place: Place) -> None:
    model = Scripted(good)
    who = reader(model)
    twice = [chunk for chunk in chunks(3) for _ in range(2)]
    with Journal(place.path) as journal:
        number = journal.reader(who.key, who.spec, who.identity).number
        found = Reading(journal, who, number).read(twice, Meter("replies", None))
    assert (found.read, found.asked) == (6, 3)
