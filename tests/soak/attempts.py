"""One attempt in a process of its own: whatever happens to it ends as a line that says what it was."""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ketrag_fast.errors import KetragError

HANG = 10.0
"""Seconds after which an attempt counts as hanging and is killed, on a machine with nothing else to do."""
_SLICE = 0.5
RIGHT = "right"
FAULT = "FAULT"
"""What begins the line of an attempt that went as none may go."""


def fault(what: str) -> str:
    """The line of an attempt that went as none may go."""
    return f"{FAULT} {what}"


def attempt(
    work: Callable[..., str],
    *given: Any,
    seconds: float = HANG,
    kill_after: float | None = None,
    **named: Any,
) -> str:
    """What `work` said, an error's code, or what went wrong: a signal, a hang, an untyped error.

    With `kill_after` the process is killed after as many seconds, which ends as "killed".
    """
    # Where the machine has more to do than it can, all takes as many times longer.
    seconds *= max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    read, write = os.pipe()
    sys.stdout.flush()
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            faulthandler.enable(said.fileno())  # says where a signal found it
            if kill_after is None:
                faulthandler.dump_traceback_later(seconds * 0.9, file=said.fileno())
            _child(partial(work, *given, **named), write, said.fileno())
        os.close(write)
        begun = time.monotonic()
        line = _line(read, seconds if kill_after is None else kill_after)
        late = line is None
        if late:
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(read)
        if late and kill_after is not None:
            return "killed"
        if line:
            return line
        said.seek(0)
        last = said.read().decode("utf-8", "replace").strip()
        if late:
            return fault(f"hang: not done after {time.monotonic() - begun:.0f} s: {last[:900]}")
        last = f"{last[:300]} ... {last[-900:]}"
        name = signal.Signals(-code).name if code < 0 else f"exit {code}"
        return "killed" if name == "SIGKILL" else fault(f"ended by {name}: {last}")


def _line(read: int, seconds: float) -> str | None:
    """What a child writes until it ends; None if it takes longer, not counting pauses of both."""
    found = b""
    while seconds > 0:
        begun = time.monotonic()
        ready = select.select([read], [], [], min(seconds, _SLICE))[0]
        seconds -= min(time.monotonic() - begun, 2 * _SLICE)
        if not ready:
            continue
        more = os.read(read, 65536)
        if not more:
            return found.decode("utf-8", "replace")
        found += more
    return None


def _child(work: Callable[[], str], write: int, errors: int) -> None:
    os.dup2(errors, 2)
    code = 0
    try:
        os.write(write, judged(work).encode("utf-8", "replace")[:8000])
    except BaseException:  # noqa: BLE001 - nothing may leave a forked process
        code = 99
    os._exit(code)


def judged(work: Callable[[], str], wrong: tuple[str, ...] = ()) -> str:
    """What `work` says, or its error: typed errors by their code; all others, and those of codes in `wrong`,
    are faults.
    """
    try:
        return work()
    except KetragError as error:
        if error.code in ("internal", *wrong):
            return fault(f"{error.code}: {error} {frames_of(error)}")
        return f"error {error.code}"
    except BaseException as error:  # noqa: BLE001 - it is what we look for
        return fault(f"untyped {type(error).__name__}: {str(error)[:300]} {frames_of(error)}")


def frames_of(error: BaseException) -> str:
    """Where it was raised."""
    frames = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)]
    return f"at {' '.join(frames[-7:])}"
