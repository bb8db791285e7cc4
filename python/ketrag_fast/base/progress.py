"""Progress as data. Work reports (done, total); the caller chooses a bar, JSON lines or silence."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Literal, TextIO

from ketrag_fast.errors import Cancelled
from ketrag_fast.records import asdict, dataclass

BAR_WIDTH = 24
REDRAW_SECONDS = 0.1
JSON_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Event:
    """Progress of a stage. `total`, `rate` (units per second) and `seconds_left` are None if unknown.

    `note` is additional information for people, such as the speed of a model.

    Examples:
        >>> from ketrag_fast import Index
        >>> events = []
        >>> Index.build(library, scratch / "ships", progress=lambda event: events.append(event)).close()
        >>> "links" in {event.stage for event in events if event.finished}
        True
    """

    stage: str
    done: int
    total: int | None
    unit: str = ""
    rate: float | None = None
    seconds_left: float | None = None
    finished: bool = False
    note: str = ""


Callback = Callable[[Event], bool | None]
"""A function that receives events. Returning False asks the work to stop; finished parts are kept."""


def stop_after(seconds: float, clock: Callable[[], float] = time.monotonic) -> Callback:
    """Return a callback that stops work after `seconds` from now; the work then raises Cancelled."""
    end = clock() + seconds
    return lambda _: clock() < end


Kind = Literal["auto", "bar", "json", "none"]


class Meter:
    """Converts the (done, total) reports of one stage to events with a rate and the time left.

    Pass it as `report=` to the kernels. Once the callback has returned False, every call returns False.
    """

    def __init__(
        self,
        stage: str,
        callback: Callback | None,
        unit: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stage = stage
        self.unit = unit
        self.stopped = False
        self.note = ""
        self._callback = callback
        self._clock = clock
        self._start = clock()
        self._last = (0, 0)

    @property
    def seconds(self) -> float:
        """Seconds since the stage started."""
        return self._clock() - self._start

    def __call__(self, done: int, total: int | None = None) -> bool | None:
        """Report progress; returns False if the work must stop."""
        self._last = (done, total or 0)
        return self._send(done, total or None, finished=False)

    def finish(self) -> bool | None:
        """Send the last event of the stage, marked `finished`."""
        done, total = self._last
        return self._send(max(done, total), total or None, finished=True)

    def _send(self, done: int, total: int | None, *, finished: bool) -> bool | None:
        if self.stopped:
            return False
        if self._callback is None:
            return None
        if isinstance(self._callback, Limited) and self._callback.is_silent:
            self.stopped = self._callback.is_over
            return False if self.stopped else None
        seconds = self.seconds
        rate = done / seconds if seconds > 0 and done > 0 else None
        left = None
        if rate is not None and total is not None:
            left = max(total - done, 0) / rate
        event = Event(self.stage, done, total, self.unit, rate, left, finished, self.note)
        if self._callback(event) is False:
            self.stopped = True
            return False
        return None


def stopper(meter: Meter) -> Callable[[], None]:
    """Return a function to call during long work: it reports to `meter`, and raises Cancelled to stop.

    An exception that the callback raises, for example at a deadline, also stops the work.
    """
    count = 0

    def check() -> None:
        nonlocal count
        count += 1
        if meter(count) is False:
            raise Cancelled(f"stopped during {meter.stage}")

    return check


class Limited:
    """A callback that also stops the work `seconds` after `start`; None sets no limit.

    With `soft` the callback does not stop the work at the limit: the work checks `reached` itself and
    finishes with partial results.
    """

    def __init__(
        self,
        callback: Callback | None,
        seconds: float | None,
        start: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.soft = False
        self._callback = callback
        self._end = None if seconds is None else start + seconds
        self._clock = clock

    @property
    def is_silent(self) -> bool:
        """Whether no callback receives the events."""
        return self._callback is None

    @property
    def is_over(self) -> bool:
        """Whether the work must stop."""
        return self.reached and not self.soft

    @property
    def reached(self) -> bool:
        """Whether the time limit has passed."""
        return self._end is not None and self._clock() >= self._end

    @property
    def left(self) -> float | None:
        """Seconds left until the limit, at least 0; None without a limit."""
        return None if self._end is None else max(self._end - self._clock(), 0.0)

    def __call__(self, event: Event) -> bool | None:
        """Forward the event, and return False once the limit has passed."""
        if self.is_over:
            return False
        return self._callback(event) if self._callback is not None else None


class Bar:
    """A progress bar on one terminal line, redrawn in place; the line of a finished stage stays."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._next = 0.0
        self._width = 0

    def __call__(self, event: Event) -> None:
        """Draw one event."""
        now = self._clock()
        if not event.finished and now < self._next:
            return
        self._next = now + REDRAW_SECONDS
        line = bar_line(event)
        padding = " " * max(self._width - len(line), 0)
        self._width = 0 if event.finished else len(line)
        self._stream.write("\r" + line + padding + ("\n" if event.finished else ""))
        self._stream.flush()


class JsonLines:
    """Writes events as JSON lines: at most two per second for each stage, and always the last event."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._next: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        """Write one event."""
        now = self._clock()
        if not event.finished and now < self._next.get(event.stage, 0.0):
            return
        self._next[event.stage] = now + JSON_SECONDS
        self._stream.write(json.dumps({"schema": "ketrag/progress/1", **asdict(event)}) + "\n")
        self._stream.flush()


def bar_line(event: Event) -> str:
    """Return a line like `tokenise  [######......]  1,200/6,119  8,400/s  0:01 left`."""
    parts = [f"{event.stage:<12}"]
    if event.total:
        filled = BAR_WIDTH * min(event.done, event.total) // event.total
        parts.append("[" + "#" * filled + "." * (BAR_WIDTH - filled) + "]")
        parts.append(f"{event.done:,}/{event.total:,}")
    elif event.done:
        parts.append(f"{event.done:,}")
    if event.unit and event.done:
        parts[-1] += f" {event.unit}"
    if event.rate is not None and event.done:
        parts.append(f"{event.rate:,.0f}/s" if event.rate >= 10 else f"{event.rate:.2g}/s")
    if event.note:
        parts.append(event.note)
    if event.seconds_left is not None and not event.finished:
        parts.append(f"{clock_text(event.seconds_left)} left")
    if event.finished:
        parts.append("done")
    return "  ".join(parts)


def clock_text(seconds: float) -> str:
    """Format seconds as `1:05` or `2:00:00`."""
    whole = int(seconds + 0.5)
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def sink(kind: Kind, stream: TextIO) -> Callback | None:
    """Return the callback for `--progress KIND`; `auto` is a bar on a terminal, otherwise silence."""
    if kind == "auto":
        kind = "bar" if stream.isatty() else "none"
    if kind == "bar":
        return Bar(stream)
    return JsonLines(stream) if kind == "json" else None
