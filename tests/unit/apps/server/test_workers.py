"""Several workers as processes: they share one address, one that is killed is replaced, all end together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.process import environment, ketrag
from tests.support.chat import Chat
from tests.support.service import command, httpx
from tests.unit.apps.server.conftest import QUESTION

pytestmark = [
    pytest.mark.usefixtures("loopback"),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="workers are found by /proc"),
]


def client(port: int) -> Any:
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False)


def children(process: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def wait_for(what: Any, seconds: float = 120) -> Any:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = what()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


@pytest.mark.parametrize("explain", [False, True], ids=["front", "application"])
def test_a_killed_worker_is_replaced_and_others_go_on(folder: Path, tmp_path: Path, explain: bool) -> None:
    with command("-i", str(folder), "--workers", "2", "--threads", "1", cwd=tmp_path) as (port, process):
        workers = children(process.pid)
        assert len(workers) == 2
        failed: list[str] = []
        good = [0]
        over = threading.Event()

        def ask() -> None:
            while not over.is_set():
                try:
                    with client(port) as own:
                        reply = own.post("/v1/retrieve", json={"question": QUESTION, "explain": explain})
                        assert reply.json()["passages"][0]["document"] == "fram.md"
                        good[0] += 1
                except httpx.TransportError as error:
                    failed.append(type(error).__name__)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        wait_for(lambda: good[0] > 20)
        os.kill(workers[0], signal.SIGKILL)
        wait_for(lambda: len(children(process.pid)) == 2 and workers[0] not in children(process.pid))
        after = good[0]
        wait_for(lambda: good[0] > after + 20)
        over.set()
        for thread in threads:
            thread.join()
        assert len(failed) <= 4, "only what the killed worker was doing fails"
        with client(port) as own:
            counted = own.get("/metrics").text
        line = next(
            row
            for row in counted.splitlines()
            if row.startswith('ketrag_requests_total{route="/v1/retrieve"')
        )
        assert float(line.split()[-1]) >= good[0] - 1, "all workers are counted together"
        alive = children(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        wait_for(lambda: not any(Path(f"/proc/{one}").exists() for one in alive))


def test_workers_end_with_their_parent(folder: Path, tmp_path: Path) -> None:
    with command("-i", str(folder), "--workers", "2", "--threads", "1", cwd=tmp_path) as (_, process):
        workers = children(process.pid)
        process.kill()
        process.wait(30)
        wait_for(lambda: not any(Path(f"/proc/{one}").exists() for one in workers))


def test_one_process_stops_gracefully(folder: Path, tmp_path: Path) -> None:
    with command("-i", str(folder), "--threads", "1", cwd=tmp_path) as (port, process):
        with client(port) as own:
            wait_for(lambda: own.get("/ready").status_code == 200)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        with pytest.raises(httpx.TransportError), client(port) as own:
            own.get("/health")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_keeps_it_from_starting_is_said(tmp_path: Path, workers: str) -> None:
    done = ketrag("serve", "-i", str(tmp_path / "none"), "--port", "0", "--workers", workers, cwd=tmp_path)
    assert done.code == 4
    assert "ketrag: error:" in done.err
    assert "Traceback" not in done.err


def test_wrong_usage(folder: Path, tmp_path: Path) -> None:
    for wrong in (["--host", "0.0.0.0"], ["--workers", "0"], ["--port", "70000"], ["--queue", "0"]):
        done = ketrag("serve", "-i", str(folder), *wrong, cwd=tmp_path, timeout=60)
        assert done.code == 2, (wrong, done.err)
        assert "Traceback" not in done.err


def test_a_token_from_the_environment(folder: Path, tmp_path: Path) -> None:
    token = "0123456789abcdef0123456789abcdef"
    with command("-i", str(folder), cwd=tmp_path, KETRAG_TOKEN=token) as (port, _), client(port) as own:
        assert own.get("/v1/stats").status_code == 401
        good = {"Authorization": f"Bearer {token}"}
        assert own.get("/v1/stats", headers=good).status_code == 200
        reply = own.post("/v1/retrieve", json={"question": "a", "mode": token}, headers=good)
        assert reply.status_code == 400
        assert token not in reply.text


def test_a_port_that_is_taken(folder: Path, tmp_path: Path) -> None:
    with command("-i", str(folder), cwd=tmp_path) as (port, _):
        done = ketrag("serve", "-i", str(folder), "--port", str(port), "--json", cwd=tmp_path, timeout=60)
        assert done.code == 2
        assert json.loads(done.err.strip().splitlines()[-1])["code"] == "config"


def test_nothing_of_it_is_imported_with_the_package() -> None:
    code = "import sys, ketrag_fast.apps.cli.main; print({'starlette', 'uvicorn', 'mcp'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_has_begun_is_finished_when_it_stops(folder: Path, tmp_path: Path, workers: str) -> None:
    with Chat(lambda _: "word " * 30, pause=0.05) as chat:
        options = ["--workers", workers, "--threads", "1", "--llm", f"openai:mini@{chat.url}"]
        with command("-i", str(folder), *options, cwd=tmp_path) as (port, process):
            body = {"question": QUESTION, "stream": True}
            with client(port) as own, own.stream("POST", "/v1/ask", json=body) as reply:
                lines = reply.iter_lines()
                assert next(lines) == "event: context"
                process.send_signal(signal.SIGTERM)
                said = list(lines)
            assert "event: answer" in said
            answer = json.loads(said[said.index("event: answer") + 1].removeprefix("data: "))
            assert answer["answer"] == " ".join(["word"] * 30) + " [?]"
            assert process.wait(30) == 0
