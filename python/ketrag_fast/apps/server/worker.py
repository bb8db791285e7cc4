"""A worker in a process of its own: `python -m ketrag_fast.apps.server.worker`, started by `supervisor`.

Standard input has one line of JSON (options, token, socket); when it ends, its parent is gone, and so goes
the worker.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import sys
import threading
from typing import Any, Final

from ketrag_fast.base.memory import enough_memory
from ketrag_fast.errors import KetragError

UNABLE: Final = 3
"""The exit code of a worker that cannot start: another try would end in the same way."""
READY: Final = "ready"


def main() -> int:
    """Serves until it is told to stop."""
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.INFO)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the parent says when to stop
    given = json.loads(sys.stdin.readline())
    from ketrag_fast.apps.server.options import ServerOptions
    from ketrag_fast.apps.server.running import serve

    listening = socket.socket(fileno=given["socket"])
    try:
        with enough_memory():
            serve(
                ServerOptions.from_json(given["options"]),
                given["token"],
                listening,
                on_start=_tell_parent,
                watched=_end_with_parent,
            )
    except KetragError as error:
        said = {"code": error.code, "message": error.message, "hint": error.hint}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
        return UNABLE
    return 0


def _tell_parent() -> None:
    sys.stdout.write(READY + "\n")
    sys.stdout.flush()


def _end_with_parent(server: Any) -> None:
    def watch() -> None:
        while os.read(0, 4096):
            pass
        server.should_exit = True

    threading.Thread(target=watch, daemon=True, name="ketrag-parent").start()


if __name__ == "__main__":
    sys.exit(main())
