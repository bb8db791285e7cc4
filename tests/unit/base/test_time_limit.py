"""Calls that do not return in time are left behind."""

from __future__ import annotations

import threading
import time

import pytest

from ketrag_fast.base.time_limit import in_time


def test_a_call_that_hangs_is_left_behind() -> None:
    end = threading.Event()
    begin = time.monotonic()
    assert in_time(lambda: end.wait(60), 0.05) is None
    assert time.monotonic() - begin < 30
    end.set()


def test_results_and_errors_are_passed_on() -> None:
    assert in_time(lambda: [1], 5.0) == [1]
    with pytest.raises(ZeroDivisionError):
        in_time(lambda: 1 // 0, 5.0)


def test_a_call_that_computes_gets_more_time() -> None:
    def compute() -> int:
        end = time.thread_time() + 0.3
        while time.thread_time() < end:
            pass
        return 1

    assert in_time(compute, 0.05) is None
    assert in_time(compute, 0.05, 60.0) == 1


def test_a_call_that_hangs_gets_no_more_time() -> None:
    end = threading.Event()
    begin = time.monotonic()
    assert in_time(lambda: end.wait(60), 0.05, 50.0) is None
    assert time.monotonic() - begin < 30
    end.set()


def test_no_second_call_is_made_while_one_of_its_name_hangs() -> None:
    end, calls = threading.Event(), []

    def call() -> bool:
        calls.append(1)
        return end.wait(60)

    assert [in_time(call, 0.05, name="disk") for _ in range(3)] == [None] * 3
    assert len(calls) == 1
    assert in_time(lambda: 2, 5.0, name="another disk") == 2
    end.set()
    deadline = time.monotonic() + 30
    while (found := in_time(lambda: 3, 5.0, name="disk")) is None and time.monotonic() < deadline:
        pass
    assert found == 3
