"""Schemathesis over the OpenAPI document: what it makes of the shapes, good and bad, against the service.

No reply may be a defect (5xx), have a status or form that the document does not tell, or show a path.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from ketrag_fast import Index, Settings
from tests.support.parts import part
from tests.support.service import running
from tests.unit.apps.server.conftest import documents

schemathesis = part("schemathesis", "checks")
from schemathesis import GenerationMode  # noqa: E402

pytestmark = pytest.mark.usefixtures("loopback")
OPERATIONS = (
    "POST /v1/retrieve",
    "POST /v1/search",
    "POST /v1/grep",
    "GET /v1/text",
    "POST /v1/shard/plan",
    "POST /v1/shard/counts",
    "POST /v1/shard/candidates",
    "POST /v1/shard/look-up",
    "POST /v1/shard/passages",
    "POST /v1/shard/state",
    "POST /v1/shard/copy",
    "POST /v1/ask",
    "GET /v1/indexes",
    "GET /v1/stats",
    "GET /v1/fields",
    "GET /v1/builds",
    "GET /v1/themes",
    "GET /v1/graph",
    "GET /v1/graph/{name}",
    "GET /v1/graph-view",
    "GET /v1/passages",
    "GET /v1/passages/{unit}",
    "GET /v1/documents",
    "POST /v1/documents",
    "POST /v1/uploads",
    "GET /v1/models",
    "GET /v1/models/{name}",
    "POST /v1/embeddings",
    "POST /v1/chat/completions",
    "GET /health",
    "GET /ready",
    "GET /metrics",
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("schema") / "index"
    Index.build(documents(), folder, settings=Settings(threads=1, llm="heuristic")).close()
    with running(folder, deadline=20.0, cache=0) as found:
        yield found


def operations(service: Any) -> dict[str, Any]:
    schema = schemathesis.openapi.from_dict(service.server.config.app.state.openapi)
    found = [result.ok() for result in schema.get_all_operations()]
    return {f"{one.method.upper()} {one.path}": one for one in found}


def test_the_list_is_whole(service: Any) -> None:
    assert tuple(operations(service)) == OPERATIONS


# What is not in this list takes nothing that could be wrong: no body, no query.
BAD = tuple(
    name for name in OPERATIONS if "POST" in name or name.endswith(("stats", "graph", "documents", "}"))
)
CASES = [(name, GenerationMode.POSITIVE) for name in OPERATIONS] + [
    (name, GenerationMode.NEGATIVE) for name in BAD if name != "GET /v1/models/{name}"
]


@pytest.mark.parametrize(("name", "mode"), CASES, ids=lambda one: getattr(one, "value", one))
def test_an_operation(service: Any, tmp_path_factory: pytest.TempPathFactory, name: str, mode: Any) -> None:
    operation = operations(service)[name]
    secrets = ("Traceback", str(tmp_path_factory.getbasetemp()), f"{Path.home()}/")
    strategy = operation.as_strategy(generation_mode=mode)

    @hypothesis.settings(
        max_examples=25,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    )
    @hypothesis.given(case=strategy)
    def asked(case: Any) -> None:
        reply = case.call(base_url=service.url, timeout=30)
        late = reply.status_code == 504 and reply.json()["code"] == "deadline"  # as it was asked for
        assert reply.status_code < 500 or late, (reply.status_code, reply.text)
        told = operation.definition.raw["responses"]
        assert str(reply.status_code) in told, (reply.status_code, reply.text)
        kind = reply.headers["content-type"][0].split(";")[0]
        assert kind in told[str(reply.status_code)]["content"], kind
        assert not [secret for secret in secrets if secret in reply.text]
        if kind == "application/json":
            data = reply.json()
            assert isinstance(data, dict)
            if reply.status_code >= 400:
                assert "error" in data or {"code", "message"} <= data.keys()

    asked()
