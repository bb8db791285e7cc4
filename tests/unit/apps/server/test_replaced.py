"""An index that is built again while clients send questions: no reply fails, and later replies see it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from tests.support.service import running
from tests.unit.apps.server.conftest import QUESTION, documents

pytestmark = pytest.mark.usefixtures("loopback")
NEW = "Who commanded the Belgica in the pack ice?"


@pytest.mark.parametrize("front", [True, False], ids=["front", "application"])
@pytest.mark.parametrize("whole", [False, True], ids=["updated", "built again"])
def test_an_index_replaced_under_load(tmp_path: Path, front: bool, whole: bool) -> None:
    folder = tmp_path / "index"
    settings = Settings(threads=1)
    Index.build(documents(), folder, settings=settings).close()
    statuses: list[int] = []
    first: set[str] = set()
    wrong: list[Any] = []
    over = threading.Event()
    with running(folder, front=front) as service:

        def ask() -> None:
            with service.client() as client:
                while not over.is_set():
                    reply = client.post("/v1/retrieve", json={"question": QUESTION, "mode": "bm25"})
                    statuses.append(reply.status_code)
                    if reply.status_code != 200 or not reply.json()["passages"]:
                        wrong.append(reply.text)
                        return
                    first.add(reply.json()["passages"][0]["document"])

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for turn in range(3):
                belgica = Document(
                    "belgica.md", f"Gerlache commanded the Belgica in the pack ice, {turn} times."
                )
                if whole:
                    Index.build([*documents(), belgica], folder, settings=settings, rebuild=True).close()
                else:
                    with Index.open(folder) as index:
                        index.update(add=[belgica])
            with service.client() as client:
                until = time.monotonic() + 60
                while time.monotonic() < until:  # the service looks every 50 ms
                    reply = client.post("/v1/retrieve", json={"question": NEW, "mode": "bm25"}).json()
                    if any("2 times" in passage["text"] for passage in reply["passages"]):
                        break
                    time.sleep(0.02)
                else:
                    raise AssertionError("the last generation was not seen")
        finally:
            over.set()
            for thread in threads:
                thread.join()
    assert not wrong, wrong[0]
    assert len(statuses) > 3 and set(statuses) == {200}
    assert first == {"fram.md"}
