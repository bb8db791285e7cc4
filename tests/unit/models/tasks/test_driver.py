"""The driver with a model that says what a test wants: limits, stops, turns, what does not fit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ketrag_fast.base.progress import Event, Limited, Meter
from ketrag_fast.errors import BackendError, Cancelled
from ketrag_fast.models.llms.protocol import Cancel, Limits, ModelReply, Prompt
from ketrag_fast.models.spending import Account
from ketrag_fast.models.tasks.driver import ERRORS, Driver
from ketrag_fast.models.tasks.task import Item, ParsedReply, Task
from ketrag_fast.storage.journal import Journal
from tests.support.scripted_model import Scripted

TASK: Task[str, str] = Task(
    name="echo",
    version=1,
    instructions="Say it again.",
    text=str,
    parse=lambda _, text, finish: ParsedReply(text) if text.startswith("ok") else None,
    tokens=200,
    subject="the word",
)
WORDS = [f"w{n}" for n in range(20)]


def ok(prompt: Prompt) -> str:
    return f"ok {prompt.text}"


def run(model: Scripted, words: list[str] = WORDS, **options: object) -> tuple[Driver, list[Item[str, str]]]:
    driver = Driver(model, **options)  # type: ignore[arg-type]
    items = driver.items(TASK, words)
    driver.run(items)
    return driver, items


def test_without_a_journal_nothing_is_kept_and_all_is_asked() -> None:
    driver, items = run(Scripted(ok, 3))
    assert [item.values for item in items] == [[f"ok {word}"] for word in WORDS]
    assert (driver.spent.asked, driver.spent.tokens_in, driver.spent.stopped) == (20, 2000, None)
    _, items = run(Scripted(ok), ["a", "b", "a"])
    assert items[0] is items[2]


def test_nobody_to_ask_leaves_what_is_kept(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.sqlite") as journal:
        driver = Driver.over(Scripted(ok), journal)
        driver.run(driver.items(TASK, WORDS[:5]))
        alone = Driver(None, journal, driver.number)
        items = alone.items(TASK, WORDS)
        alone.run(items)
        assert [item.whole for item in items] == [True] * 5 + [False] * 15
        assert alone.totals(items)["calls"] == 5
        assert journal.latest() is None  # models of tasks are no readers of chunks


def test_time_is_up() -> None:
    ticks = iter(range(10_000))
    driver, items = run(Scripted(ok), limit=Limited(None, 12, 0, lambda: next(ticks)))
    done = sum(item.whole for item in items)
    assert driver.spent.stopped == "limit_seconds"
    assert 0 < done < 20
    assert [item.whole for item in items] == [True] * done + [False] * (20 - done)


def test_money_is_up() -> None:
    account = Account(1.0, 0.0005)

    def pays(prompt: Prompt) -> str:
        account.book(100)
        return ok(prompt)

    driver, items = run(Scripted(pays))
    assert (driver.spent.stopped, sum(item.whole for item in items)) == ("limit_usd", 5)


def test_stopped_from_outside() -> None:
    driver = Driver(Scripted(ok))
    meter = Meter("ask", lambda event: False if event.done >= 3 else None)
    with pytest.raises(Cancelled, match="finished work is kept"):
        driver.run(driver.items(TASK, WORDS), meter)
    assert driver.spent.asked == 3


def test_a_dead_model_ends_it_and_one_bad_word_does_not() -> None:
    with pytest.raises(BackendError, match=f"{ERRORS} calls in a row failed; last error: gone"):
        run(Scripted(lambda _: ModelReply(0, "", "error", error="gone")))
    _, items = run(Scripted(lambda p: "no" if p.text == "w3" else ok(p)))
    assert [item.about for item in items if not item.values] == ["w3"]
    assert len(items[3].kept) == 2


def test_what_does_not_fit_gets_what_room_there_is_or_is_given_up() -> None:
    rooms = {1: 150, 2: 20}
    model = Scripted(ok, room=lambda prompt: rooms.get(prompt.number, 4000))
    driver, items = run(model, WORDS[:4])
    assert [limits.tokens for limits in model.limits] == [200, 200, 150]
    assert [item.whole for item in items] == [True, True, False, True]
    assert "the word does not fit the model's context of 4096 tokens: 20" in str(items[2].kept[0].error)
    assert driver.spent.asked == 3


def test_later_turns_follow_the_replies_of_earlier_ones(tmp_path: Path) -> None:
    chain = replace(
        TASK,
        more=lambda _, earlier: len(earlier) < 3,
        turn=lambda word, earlier: Prompt(0, "x", " ".join([word, *(r.text for r in earlier)])),
    )
    with Journal(tmp_path / "j.sqlite") as journal:
        driver = Driver.over(Scripted(lambda p: "ok" if p.text != "b ok" else "no"), journal)
        items = driver.items(chain, ["a", "b"])
        driver.run(items)
        assert [item.values for item in items] == [["ok"] * 3, ["ok"]]
        assert [item.whole for item in items] == [True, False]
        again = Driver(Scripted(ok), journal, driver.number)
        items = again.items(chain, ["a", "b"])
        again.run(items)
        assert again.spent.asked == 0  # the second turn of b was worth two replies, and had them


def test_progress_is_reported_in_the_callers_thread_alone() -> None:
    """A backend may ask from a thread of its own whether to stop; a bar is drawn in the main one."""

    class Threaded(Scripted):
        def replies(
            self, prompts: Iterable[Prompt], limits: Limits, cancel: Cancel | None = None
        ) -> Iterator[ModelReply]:
            assert cancel is not None
            time.sleep(0.25)  # so long that progress is due
            other = threading.Thread(target=cancel)
            other.start()
            other.join()
            yield from super().replies(prompts, limits, cancel)

    threads: set[int] = set()

    def seen(event: Event) -> None:
        threads.add(threading.get_ident())

    driver = Driver(Threaded(ok))
    driver.run(driver.items(TASK, WORDS), Meter("ask", seen))
    assert threads == {threading.get_ident()}
