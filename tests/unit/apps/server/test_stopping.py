"""SIGTERM ends the service, whatever its requests wait for."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.hostile import HOLD, Hostile
from tests.support.service import command, httpx
from tests.unit.apps.server.conftest import QUESTION

pytestmark = pytest.mark.usefixtures("loopback")
PATIENCE = 100
"""Seconds; a silent language model is waited for 300."""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGTERM")
def test_a_silent_language_model_does_not_keep_the_service(folder: Path) -> None:
    asked = threading.Event()
    replies: list[Any] = []

    def play(_: Any) -> Any:
        asked.set()
        return (HOLD,)

    with Hostile(play, "/chat/completions") as endpoint:
        spec = f"openai:mini@http://127.0.0.1:{endpoint.port}/v1"
        with command("-i", str(folder), "--llm", spec, cwd=folder.parent) as (port, process):

            def ask() -> None:
                url = f"http://127.0.0.1:{port}/v1/ask"
                with suppress(httpx.TransportError):  # it came after the signal, and was not accepted
                    replies.append(
                        httpx.post(url, json={"question": QUESTION}, timeout=PATIENCE, trust_env=False)
                    )

            threads = [threading.Thread(target=ask) for _ in range(3)]
            for thread in threads:
                thread.start()
            assert asked.wait(PATIENCE)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
            for thread in threads:
                thread.join(PATIENCE)
    assert {(reply.status_code, reply.json()["code"]) for reply in replies} == {(503, "stopping")}
