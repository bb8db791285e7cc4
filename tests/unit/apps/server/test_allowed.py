"""A service whose operator says which documents are there at all: no request changes that."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Index
from ketrag_fast.errors import ConfigError
from tests.support.service import running
from tests.unit.apps.server.conftest import QUESTION

ALLOW = {"allow": "letters<=4 and not letters=3"}


@pytest.mark.usefixtures("loopback")
def test_only_what_is_allowed_is_there(folder: Path) -> None:
    with running(folder, settings=ALLOW) as service, service.client() as client:
        listed = client.get("/v1/indexes").json()
        assert listed["indexes"][0]["documents"] == 3
        for body in (
            {"question": "Which odd text names Colin Archer?", "budget": 500},
            {"question": QUESTION, "filter": "letters exists", "mode": "bm25"},
        ):
            found = client.post("/v1/retrieve", json=body).json()
            assert found["passages"] and all(p["document"] != "odd.md" for p in found["passages"])
        taken = client.post("/v1/retrieve", json={"question": QUESTION, "allow": "letters=3"})
        assert taken.status_code == 422, "no request says what is allowed"
        with Index.open(folder) as index:
            alone = index.retrieve(QUESTION, allow=ALLOW["allow"], mode="walk", budget=300)
        reply = client.post("/v1/retrieve", json={"question": QUESTION, "mode": "walk", "budget": 300})
        assert reply.json()["context"] == alone.text
        lost = client.post("/v1/retrieve", json={"question": QUESTION, "filter": "nothing=1"}).json()
        assert str(folder) not in str(lost)


def test_whoever_sees_a_part_changes_nothing(folder: Path) -> None:
    with pytest.raises(ConfigError, match="may not change"), running(folder, settings=ALLOW, writable=True):
        pass
