"""Effort instead of time: what a test asserts must not depend on how busy or how fast the machine is."""

from __future__ import annotations

import gc
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ketrag_fast.errors import Cancelled

Report = Callable[[int, int], bool]
_DOUBLINGS = 7


def is_stopped(call: Callable[[int, Report], Any], size: int) -> None:
    """`call(size, report)` ends with Cancelled where its first report says stop.

    A kernel reports every 50 ms or so: one that is done before is given twice the work, until it is not.
    """
    for _ in range(_DOUBLINGS):
        reports = 0

        def report(done: int, total: int) -> bool:
            nonlocal reports
            reports += 1
            return False

        try:
            call(size, report)
        except Cancelled:
            assert reports == 1, "it went on reporting after it was told to stop"
            return
        assert not reports, "it was told to stop and went on to its end"
        size *= 2
    raise AssertionError("it never reported")


@contextmanager
def processor_seconds(most: float) -> Iterator[None]:
    """What is done here takes at most so many seconds of the processor, by all threads."""
    begin = time.process_time()
    yield
    spent = time.process_time() - begin
    assert spent < most, f"{spent:.1f} s of the processor"


def grows_linearly(work: Callable[[int], object], size: int) -> None:
    """Twice the size takes at most three times the processor time; quadratic work takes four times.

    A tenth of a second is free, and the best of several tries counts, because caches and times vary. Garbage
    is not collected meanwhile: how long that takes depends on the objects of all tests of the process.
    """
    best = [float("inf"), float("inf")]
    for _ in range(8):
        for number, own in enumerate((size, 2 * size)):
            gc.collect()
            gc.disable()
            try:
                begin = time.process_time()
                work(own)
                best[number] = min(best[number], time.process_time() - begin)
            finally:
                gc.enable()
        if best[1] <= 3 * best[0] + 0.1:
            return
    raise AssertionError(f"{best[0]:.2f} s for {size:,}, {best[1]:.2f} s for twice that")


def ended_after(child: subprocess.Popen[Any], number: int, *, timeout: float = 300.0) -> tuple[Any, float]:
    """Sends a signal; (what the process printed, seconds of the processor from the signal to its end)."""
    import resource  # not on Windows, where no test sends signals

    def reaped() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return float(usage.ru_utime + usage.ru_stime)

    before = reaped() + _used(child.pid)
    child.send_signal(number)
    printed = child.communicate(timeout=timeout)
    return printed, reaped() - before


def _used(pid: int) -> float:
    """Seconds of the processor that a running process has used; infinite where the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("inf")
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))
