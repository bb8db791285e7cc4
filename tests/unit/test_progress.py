from __future__ import annotations

import io
import json

from ketrag_fast.base.progress import Bar, Event, JsonLines, Meter, bar_line, clock_text, sink


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_meter_gives_rate_and_time_left() -> None:
    clock, seen = Clock(), list[Event]()
    meter = Meter("embed", seen.append, "units", clock)
    assert meter(0, 40) is None
    clock.now += 2
    meter(10, 40)
    meter.finish()
    assert seen == [
        Event("embed", 0, 40, "units"),
        Event("embed", 10, 40, "units", 5.0, 6.0),
        Event("embed", 40, 40, "units", 20.0, 0.0, True),
    ]


def test_meter_stays_stopped_and_asks_no_more() -> None:
    asked: list[Event] = []

    def refuse(event: Event) -> bool:
        asked.append(event)
        return False

    meter = Meter("embed", refuse)
    assert [meter(1, 2), meter(2, 2), meter.finish()] == [False, False, False]
    assert len(asked) == 1
    assert meter.stopped
    assert Meter("embed", None)(1, 2) is None


def test_bar_redraws_in_place_and_not_too_often() -> None:
    clock, stream = Clock(), io.StringIO()
    bar = Bar(stream, clock)
    bar(Event("read", 1, 4, "files", 2.0, 61.4))
    bar(Event("read", 2, 4))
    clock.now += 1
    bar(Event("read", 3, 4))
    bar(Event("read", 4, 4, finished=True))
    lines = stream.getvalue().split("\r")
    assert lines[0] == ""
    assert lines[1] == "read          [######..................]  1/4 files  2/s  1:01 left"
    assert len(lines) == 4
    assert len(lines[2]) == len(lines[1])  # the longer line is wiped out
    assert lines[3].endswith("done\n")


def test_line_without_a_total() -> None:
    assert bar_line(Event("read", 1200, None, "documents")) == "read          1,200 documents"
    assert bar_line(Event("read", 0, None)) == "read        "


def test_clock() -> None:
    assert [clock_text(s) for s in (0.4, 59.6, 3661, 36_000)] == ["0:00", "1:00", "1:01:01", "10:00:00"]


def test_json_lines_are_few_and_end_with_the_last() -> None:
    clock, stream = Clock(), io.StringIO()
    show = JsonLines(stream, clock)
    for done in range(100):
        show(Event("read", done, 100))
    show(Event("read", 100, 100, finished=True))
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [event["done"] for event in found] == [0, 100]
    assert found[0]["schema"] == "ketrag/progress/1"


def test_auto_is_silent_without_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert sink("auto", io.StringIO()) is None
    assert isinstance(sink("auto", Terminal()), Bar)
    assert isinstance(sink("json", io.StringIO()), JsonLines)
    assert sink("none", Terminal()) is None
