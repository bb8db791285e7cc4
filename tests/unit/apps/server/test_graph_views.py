"""`GET /v1/graph-view`: pictures of graphs over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("loopback")


def test_an_overview_and_the_graphs_there_are(client: Any) -> None:
    reply = client.get("/v1/graph-view")
    assert reply.status_code == 200
    found = reply.json()
    assert found["schema"] == "ketrag/graph-view/1"
    assert found["graphs"] == client.get("/v1/graph").json()["graphs"]
    assert found["graph"] == found["graphs"][0] == "skeleton"
    assert found["returned"]["nodes"] == len(found["nodes"]["id"]) > 3
    assert not found["truncated"]
    assert client.get("/v1/indexes").json()["indexes"][0]["graphs"] == found["graphs"]


def test_around_names_and_around_a_question(client: Any) -> None:
    query = {"graph": "skeleton", "around": ["colin archer"], "limit": "3"}
    found = client.get("/v1/graph-view", params=query).json()
    assert found["nodes"]["title"][0] == "COLIN ARCHER"
    assert found["nodes"]["seed"] == [0]
    assert found["returned"]["nodes"] <= 3
    assert found["truncated"]
    asked = client.get(
        "/v1/graph-view", params={"graph": "walk", "question": "Who sailed the Fram?", "limit": "9"}
    ).json()
    assert "Fram" in asked["nodes"]["title"]


def test_a_filter_hides_documents_as_if_they_did_not_exist(client: Any) -> None:
    whole = client.get("/v1/graph-view?graph=walk").json()
    part = client.get("/v1/graph-view", params={"graph": "walk", "filter": "letters<4"}).json()
    assert any("Fram" in title for title in whole["nodes"]["title"])
    assert not any("fram" in title.lower() for title in part["nodes"]["title"])
    assert part["total"]["nodes"] < whole["total"]["nodes"]


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ({"graph": "nothing"}, 400, "unknown graph 'nothing'"),
        ({"graph": "concepts"}, 422, "no graph 'concepts'"),
        ({"around": "Nobody"}, 400, "no node 'Nobody'"),
        ({"around": "x" * 501}, 422, "around"),
        ({"limit": "0"}, 422, "limit"),
        ({"limit": "100001"}, 422, "limit"),
        ({"question": " "}, 400, "empty"),
        ({"filter": "letters<"}, 400, "filter"),
        ({"filter": "unknown=1"}, 400, "unknown"),
        ({"index": "other"}, 404, "other"),
        ({"colour": "red"}, 422, "colour"),
        ({"around": "#1", "generation": "999"}, 409, "generation"),
    ],
    ids=str,
)
def test_bad_requests(client: Any, query: dict[str, str], status: int, said: str) -> None:
    reply = client.get("/v1/graph-view", params=query)
    assert (reply.status_code, said in reply.json()["message"]) == (status, True), reply.text


def test_a_missing_graph_names_the_command_that_adds_it(client: Any) -> None:
    reply = client.get("/v1/graph-view", params={"graph": "concepts"})
    command = "ketrag index --modes auto,g2cons"
    assert reply.json()["hint"] == f"add it with `{command}`"
    assert client.get("/v1/graph").json()["missing"]["concepts"] == command
