"""What every test shares: sockets stay shut, and real passages come from tests/data."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from ketrag_fast.models.http.endpoints import is_loopback
from tests.support.parts import part

ROOT = Path(__file__).resolve().parent.parent

# `make test` runs several processes. Threads of torch and llama.cpp that wait for each other must sleep, or
# they take time from those that they wait for. OpenMP reads this when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# A shell without job control starts what runs in its background with Ctrl-C ignored, and children inherit
# that: the tests that interrupt a build would then send a signal that nobody hears.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# How long an example takes says more of the machine's other work than of the code.
hypothesis.settings.register_profile(
    "ketrag", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("ketrag")

LONGEST = (
    "unit/models/llms/test_gemma.py",
    "index/test_ray.py",
    "index/test_ray_serve.py",
    "soak/test_soak.py",
)
"""The files that take longest begin first, so that no process is left alone with one at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; the order is otherwise kept.

    What a browser shows is looked at twice if it is wrong: on a busy machine it loses clicks and frames. The
    last line of the run counts what was run again.
    """
    rank = {ROOT / "tests" / name: at for at, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path, len(LONGEST)))
    for item in items:
        if "page" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=2, only_rerun=["BrowserStuck", "AssertionError"]))


_connect = socket.socket.connect
_connect_ex = socket.socket.connect_ex
_getaddrinfo = socket.getaddrinfo


def _closed(*_: Any, **__: Any) -> Any:
    raise AssertionError("a test tried to open a network connection")


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Confirmations of endpoints and collections go to a folder of this run, never to the user's."""
    folder = str(tmp_path_factory.mktemp("state"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("LOCALAPPDATA",) if os.name == "nt" else ("XDG_STATE_HOME", "XDG_DATA_HOME"):
            patch.setenv(name, folder)
        yield


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may reach the network, loopback included, unless it opens the door itself."""
    monkeypatch.setattr(socket.socket, "connect", _closed)
    monkeypatch.setattr(socket.socket, "connect_ex", _closed)
    monkeypatch.setattr(socket, "getaddrinfo", _closed)


@pytest.fixture
def loopback(no_network: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opens this machine's own addresses, and nothing else."""

    def require(host: Any) -> None:
        if not (isinstance(host, str) and is_loopback(host)):
            raise AssertionError(f"a test tried to reach {host!r}")

    def connect(self: socket.socket, address: Any) -> Any:
        require(address[0])
        return _connect(self, address)

    def connect_ex(self: socket.socket, address: Any) -> Any:
        require(address[0])
        return _connect_ex(self, address)

    def getaddrinfo(host: Any, *rest: Any, **named: Any) -> Any:
        require(host)
        return _getaddrinfo(host, *rest, **named)

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket.socket, "connect_ex", connect_ex)
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.fixture(scope="session")
def passages() -> Path:
    """The folder of the passages of MuSiQue that are in the repository (tests/data/README.md)."""
    return ROOT / "tests" / "data" / "musique-train100"


@pytest.fixture(scope="session")
def llama_cpp() -> Any:
    """The library that runs GGUF models, or a skip that says it is absent."""
    part("gguf", "checks")
    return part("llama_cpp", "llm")


@pytest.fixture(scope="session")
def tiny_gguf(llama_cpp: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GGUF of 0.8 MB that llama.cpp loads: random weights, a real tokenizer, a chat template."""
    from tests.support.gguf_model import TINY, model_file

    return model_file(TINY, tmp_path_factory.mktemp("gguf"))
