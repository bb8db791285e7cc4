"""A worker process: `python -m ketrag_fast.apps.server.worker`, started by `supervisor`.

Standard input has one line of JSON (options, token, socket). It ends with the parent process, and the worker
stops then.
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
"""The exit code of a worker that cannot start and should not be retried."""
READY: Final = "ready"


def main() -> int:
    """Serve until stopped; return the exit code."""
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.INFO)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes; the parent decides
    message = json.loads(sys.stdin.readline())
    from ketrag_fast.apps.server.options import ServerOptions
    from ketrag_fast.apps.server.running import serve

    listening = socket.socket(fileno=message["socket"])
    try:
        with enough_memory():
            serve(
                ServerOptions.from_json(message["options"]),
                message["token"],
                listening,
                on_start=_tell_parent,
                watched=_end_with_parent,
            )
    except KetragError as error:
        data = {"code": error.code, "message": error.message, "hint": error.hint}
        sys.stdout.write(json.dumps(data) + "\n")
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
