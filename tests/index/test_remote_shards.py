"""Indexes behind services are ranked as indexes of this process are."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import (
    BackendError,
    ConfigError,
    DeadlineExceeded,
    InputError,
    ModeUnavailable,
    NetworkForbidden,
)
from ketrag_fast.index import remote, shard_copies
from ketrag_fast.index.indexes import Indexes
from ketrag_fast.index.shard_copies import ShardCopy
from ketrag_fast.models.http import kept_connections
from ketrag_fast.query import shards
from ketrag_fast.query.shards import WrongReply
from tests.process import ketrag
from tests.support.service import Running, running

pytestmark = pytest.mark.usefixtures("loopback")
POLAR = {
    "north": [
        Document("fram", "The Fram was built by Colin Archer for Nansen.", "Fram", {"year": 1893}),
        Document("maud", "The Maud was built by Christian Jensen.", "Maud", {"year": 1917}),
        Document("ice", "Ships with a round hull rise when the ice presses.", "Ice", {"year": 1900}),
    ],
    "south": [
        Document("archer", "Colin Archer was born in Larvik.", "Colin Archer", {"year": 1832}),
        Document("larvik", "Larvik is a town by the sea.", "Larvik", {"year": 1671}),
        Document("fram", "The Fram was built by Colin Archer for Nansen.", "Fram", {"year": 1893}),
    ],
}
QUESTIONS = (
    "Where was the builder of the Fram born?",
    "Who built the Maud?",
    '"Colin Archer" of Larvik',
    "Which town is by the see?",
    "the of a",
    "zzz",
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("shards")
    for name, documents in POLAR.items():
        settings = Settings(threads=1, modes="walk,bm25,text,fused,knn")
        Index.build(documents, folder / name, settings=settings).close()
    return {name: folder / name for name in POLAR}


@pytest.fixture(scope="module")
def served(folders: dict[str, Path]) -> Iterator[Running]:
    with running(folders["north"], indexes={name: str(path) for name, path in folders.items()}) as service:
        yield service


def addresses(service: Running) -> dict[str, str]:
    return {name: f"{service.url}#{name}" for name in POLAR}


@contextmanager
def local(folders: dict[str, Path], **fields: Any) -> Iterator[Indexes]:
    with ExitStack() as stack:
        opened = {
            name: stack.enter_context(Index.open(path, settings=Settings(**fields)))
            for name, path in folders.items()
        }
        yield Indexes(opened)


@contextmanager
def altered(service: Running, change: Callable[[str, Any], Any]) -> Iterator[str]:
    """A server that passes calls on to a service and alters the replies. `change` may return bytes."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            given = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body = json.dumps({name: value for name, value in given.items() if name != "bytes"}).encode()
            head = {"content-type": "application/json"}
            request = urllib.request.Request(service.url + self.path, body, head)
            with urllib.request.urlopen(request) as reply:
                data = change(self.path.rpartition("/")[2], json.load(reply))
            content = data if isinstance(data, bytes) else json.dumps(data).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def shown(context: Any) -> list[tuple[Any, ...]]:
    return [
        (one.rank, one.index, one.document, one.score, one.relevance, one.text, one.units, one.metadata)
        for one in context.passages
    ]


@pytest.mark.parametrize("mode", ["walk", "bm25", "text", "fused", "knn", "auto"])
def test_services_rank_as_local_shards(
    folders: dict[str, Path], served: Running, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(shards, "MOST_JOINED", 0)  # services are never joined
    far = Indexes(addresses(served))
    with local(folders) as near:
        for question in QUESTIONS:
            for fields in ({}, {"top": 2}, {"filter": "year<1895"}, {"min_score": 0.2}, {"explain": True}):
                one, other = (which.retrieve(question, mode=mode, **fields) for which in (near, far))
                assert shown(one) == shown(other)
                left, right = ({**context.to_json(), "timings_ms": {}} for context in (one, other))
                assert left == right
    far.close()


def test_the_front_answers_calls_as_the_application_does(
    folders: dict[str, Path], served: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries need nothing of the application. A request with an `Origin`, which it reads, gets the same."""
    service, passed = served.service, []
    in_turn = service.in_turn

    def counted(*arguments: Any) -> Any:
        passed.append(arguments)
        return in_turn(*arguments)

    monkeypatch.setattr(service, "in_turn", counted)
    sent: list[tuple[str, dict[str, Any]]] = []
    send = kept_connections.KeptConnections._write

    def recorded(self: Any, connection: Any, path: str, body: bytes, until: float) -> Any:
        sent.append((path, json.loads(body)))
        return send(self, connection, path, body, until)

    monkeypatch.setattr(kept_connections.KeptConnections, "_write", recorded)
    far = Indexes(addresses(served), copies=False)
    for mode in ("walk", "bm25"):
        assert far.retrieve("Where was the bilder of the Fram born?", mode=mode, deadline=20.0).passages
    far.close()
    assert not passed
    names = {path.rpartition("/")[2] for path, _ in sent}
    assert names >= {"plan", "candidates", "look-up", "passages"}
    with served.client() as client:
        for number, (path, body) in enumerate(sent, 1):
            one = client.post(path, json=body)
            other = client.post(path, json=body, headers={"Origin": served.url})
            assert (one.status_code, other.status_code, len(passed)) == (200, 200, number)
            assert one.headers["content-type"] == other.headers["content-type"]
            assert without_times(one.content) == without_times(other.content)
    assert any(body.get("bytes") for _, body in sent) and any(body.get("reading") for _, body in sent)


def without_times(content: bytes) -> bytes:
    return re.sub(rb'"timings_ms":\{[^}]*\}', b"", content)


def test_the_front_leaves_calls_with_errors_to_the_application(served: Running) -> None:
    with served.client() as client:
        plan = client.post("/v1/shard/plan", json={"question": "Fram"}).json()
        for path, body, status in (
            ("plan", {"question": "Fram", "mode": "none"}, 400),
            ("plan", {"question": "Fram", "unknown": 1}, 422),
            ("plan", {"question": "Fram", "index": "west"}, 404),
            ("candidates", {"question": "Fram", "state": plan["state"]}, 422),
            ("none", {}, 404),
        ):
            assert client.post(f"/v1/shard/{path}", json=body).status_code == status
        bad = client.post("/v1/shard/plan", content=b"[", headers={"content-type": "application/json"})
        assert bad.status_code == 400
        late = client.post("/v1/shard/plan", json={"question": "Fram", "seconds": 1e-9, "filter": "year>1"})
        assert (late.status_code, late.json()["code"]) == (504, "deadline")


def test_calls_have_lines_in_the_log_and_metrics(served: Running, folders: dict[str, Path]) -> None:
    def calls() -> float:
        labels = {"route": "/v1/shard/plan", "status": "200"}
        with served.client() as client:
            text = client.get("/metrics").text
        found = re.search(
            rf'^ketrag_requests_total{{(?=[^}}]*"{labels["route"]}").*"200".*}} (.*)$', text, re.M
        )
        return float(found[1]) if found else 0.0

    before = calls()
    with served.client() as client:
        assert client.post("/v1/shard/plan", json={"question": "Fram"}).status_code == 200
    assert calls() == before + 1


def test_a_service_that_restarts_is_asked_on_a_new_connection(folders: dict[str, Path]) -> None:
    with running(folders["north"]) as service:
        far = Indexes({"a": service.url, "b": f"{service.url}#ketrag"}, copies=False)
        first = far.retrieve("Fram", mode="bm25")
        for one in far._indexes.values():
            assert isinstance(one, remote.RemoteIndex)
            assert one._kept._idle
            for connection, _ in one._kept._idle:
                connection.shutdown(2)
        assert shown(far.retrieve("Fram", mode="bm25")) == shown(first)
        far.close()


def test_hits_of_services_are_those_of_local_shards(
    folders: dict[str, Path], served: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "MOST_JOINED", 0)
    far = Indexes(addresses(served))
    with local(folders) as near:
        for question in QUESTIONS:
            one, other = (which.search(question, 3) for which in (near, far))
            assert one == other
        one, other = (which.search("built by", 3, glob="fram", grep="Colin") for which in (near, far))
        assert one == other and [hit.document for hit in one] == ["fram"]


def test_a_service_next_to_an_open_index(folders: dict[str, Path], served: Running) -> None:
    with Index.open(folders["north"]) as index:
        both = Indexes({"here": index, "there": f"{served.url}#south"})
        found = both.retrieve(QUESTIONS[0], mode="walk", top=2)
        assert {(one.document, one.index) for one in found.passages} == {
            ("fram", "here"),
            ("archer", "there"),
        }
        answer = both.ask(QUESTIONS[0], mode="walk")
        assert answer.reason == "no_model" and answer.quotes


def test_a_document_of_two_services_is_returned_once(served: Running) -> None:
    found = Indexes(addresses(served)).retrieve("Fram", mode="bm25")
    assert [(one.document, one.index) for one in found.passages] == [("fram", "north")]


def test_one_service_answers_alone(folders: dict[str, Path], served: Running) -> None:
    far = Indexes({None: f"{served.url}#south"})
    with Index.open(folders["south"]) as index:
        for question in QUESTIONS[:3]:
            one, other = (which.retrieve(question, mode="walk") for which in (index, far))
            assert shown(one) == shown(other) and one.text == other.text
            assert index.search(question) == far.search(question)
    assert far.ask("Where was Colin Archer born?").quotes


def test_settings_hold_for_services(served: Running) -> None:
    far = Indexes(addresses(served), settings=Settings(top=1, mode="bm25", filter="year<1700"))
    found = far.retrieve("Larvik Fram")
    assert (found.mode, [one.document for one in found.passages]) == ("bm25", ["larvik"])
    with pytest.raises(ConfigError, match="a model answers over services"):
        far.ask("Larvik?", llm="openai:m@http://127.0.0.1:1/v1")
    with pytest.raises(ConfigError, match="a service decides"):
        far.retrieve("Larvik", allow="year<1700")
    with pytest.raises(ConfigError, match="which decides"):
        Indexes({"a": served.url}, settings=Settings(allow="year<1700"))


def test_a_change_between_the_calls_runs_the_query_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The document that is new in the second run is found."""
    for name, documents in POLAR.items():
        Index.build(documents, tmp_path / name, settings=Settings(threads=1)).close()
    paths = {name: str(tmp_path / name) for name in POLAR}
    new = Document("colin", "Colin Archer of Tolderodden designed yachts.", "Yachts")
    begin, calls = remote.RemoteIndex.begin, []
    with running(tmp_path / "north", indexes=paths) as service:

        def changing(self: Any, name: str, what: str, *rest: Any) -> Any:
            calls.append((name, what))
            if (name, what) == ("south", "candidates") and calls.count((name, what)) == 1:
                entry = service.service.indexes.find("south")
                documents = [*POLAR["south"], new]
                Index.build(documents, paths["south"], settings=Settings(threads=1), replace=True).close()
                entry.index.refresh()
            return begin(self, name, what, *rest)

        monkeypatch.setattr(remote.RemoteIndex, "begin", changing)
        found = Indexes(addresses(service)).retrieve("Who designed yachts?", mode="walk", top=1)
        assert [one.document for one in found.passages] == ["colin"] and not found.missing
        # The plan, similar words for "yachts", which no index had, and the plan of the second run.
        assert calls.count(("north", "plan")) == 3


def test_a_service_that_changes_twice_is_left_out(served: Running) -> None:
    count = iter(range(10**6))

    def change(what: str, data: Any) -> Any:
        return {**data, "state": f"{next(count)}-x"}

    with altered(served, change) as url:
        found = Indexes({"a": f"{served.url}#north", "b": f"{url}#south"}).retrieve("Fram", mode="walk")
    assert found.missing == ("b",) and "b changed during the query" in found.warnings[0]
    assert found.passages[0].index == "a"


def test_late_and_dead_services_are_named(served: Running) -> None:
    def slow(what: str, data: Any) -> Any:
        if what == "candidates":
            time.sleep(3)
        return data

    with altered(served, slow) as url:
        named = {"a": f"{served.url}#north", "late": f"{url}#south", "dead": "http://127.0.0.1:9#south"}
        began = time.monotonic()
        found = Indexes(named).retrieve("Fram", mode="walk", deadline=2.5)
        assert time.monotonic() - began < 2.9
    assert set(found.missing) == {"late", "dead"} and found.passages[0].index == "a"
    assert any("without late: no answer in time" in text for text in found.warnings)
    assert any(text.startswith("without dead: dead does not answer") for text in found.warnings)
    with pytest.raises(BackendError, match="dead does not answer"):
        Indexes({"dead": named["dead"], "gone": "http://127.0.0.1:9"}).retrieve("Fram")
    with pytest.raises((DeadlineExceeded, BackendError)):
        Indexes({"dead": named["dead"]}).retrieve("Fram", deadline=0.5)


def test_tokens_are_those_of_the_environment(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = {name: str(path) for name, path in folders.items()}
    with running(folders["north"], indexes=paths, token="a" * 32) as service:
        monkeypatch.delenv("KETRAG_TOKEN", raising=False)
        with pytest.raises(ConfigError, match=r"north refuses the request.*401") as caught:
            Indexes(addresses(service)).retrieve("Fram")
        assert "KETRAG_TOKEN" in str(caught.value.hint)
        monkeypatch.setenv("KETRAG_TOKEN", "a" * 32)
        assert Indexes(addresses(service)).retrieve("Fram").passages
    with pytest.raises(ConfigError, match="unencrypted"):
        Indexes({"a": "http://example.org"})
    with pytest.raises(NetworkForbidden):
        Indexes({"a": "https://example.org"}, settings=Settings(offline=True))


def garbled(data: dict[str, Any]) -> dict[str, Any]:
    content = bytearray(base64.b64decode(data["bundle"]))
    content[8:16] = b"\xff" * 8
    return {**data, "bundle": base64.b64encode(content).decode()}


WRONG: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "version": ("plan", lambda data: {**data, "protocol": 3}),
    "no shard": ("plan", lambda data: {"answer": 42}),
    "list": ("plan", lambda data: [data]),
    "language": ("plan", lambda data: {**data, "totals": {**data["totals"], "languages": {"250": 1}}}),
    "negative": ("plan", lambda data: {**data, "totals": {**data["totals"], "units": -1}}),
    "settings": ("plan", lambda data: {**data, "settings": {"walk_of_the_future": 1}}),
    "no mode": ("plan", lambda data: {name: value for name, value in data.items() if name != "mode"}),
    "counts": ("plan", lambda data: {**data, "counts": {"keywords": {"a": -1}}}),
    "texts": ("plan", lambda data: {**data, "counts": {key: {"fram": "1"} for key in data["counts"]}}),
    "base64": ("candidates", lambda data: {**data, "bundle": "%"}),
    "bundle": ("candidates", garbled),
    "look-up": ("look-up", garbled),
    "passages": ("passages", lambda data: {**data, "blocks": data["blocks"][1:]}),
    "units": (
        "passages",
        lambda data: {
            **data,
            "context": {
                **data["context"],
                "passages": [
                    {**one, "unit": {"kind": "chunk", "id": 4_000_000}} for one in data["context"]["passages"]
                ],
            },
        },
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_replies_name_the_shard(served: Running, name: str) -> None:
    where, change = WRONG[name]
    with altered(served, lambda what, data: change(data) if what == where else data) as url:
        # The altered service is first, so that its settings are used.
        far = Indexes({"bad": f"{url}#south", "good": f"{served.url}#north"})
        with pytest.raises(WrongReply, match="bad "):
            far.retrieve("Where was Colin Archer of Larvik born?", mode="walk")


def test_terms_of_another_language_are_counted(tmp_path: Path) -> None:
    """An index of German and English asks the others for the terms of its languages."""
    texts = {
        "north": ["The Fram was built by Colin Archer for the voyage to the ice.", "Larvik is a town."],
        "süd": ["Die Häuser der Stadt liegen am Fjord, und die Schiffe fahren hinaus.", "Archer was here."],
    }
    paths = {}
    for name, own in texts.items():
        documents = [Document(f"{name}{n}", text) for n, text in enumerate(own)]
        settings = Settings(threads=1, language="auto")
        with Index.build(documents, tmp_path / name, settings=settings):
            paths[name.replace("ü", "u")] = str(tmp_path / name)
    with running(tmp_path / "north", indexes=paths) as service, ExitStack() as stack:
        named = {name: f"{service.url}#{name}" for name in paths}
        opened = {name: stack.enter_context(Index.open(path)) for name, path in paths.items()}
        for question in ("Häuser am Fjord", "houses of Colin Archer"):
            one, other = (
                which.retrieve(question, mode="bm25") for which in (Indexes(opened), Indexes(named))
            )
            assert shown(one) == shown(other) and one.passages


def test_wrong_counts_name_the_shard(served: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan without the terms makes the call for them."""

    def change(what: str, data: Any) -> Any:
        if what == "plan":
            return {**data, "counts": {"keywords": {}, "names": {}, "subjects": {}}}
        return {**data, "keywords": [1]} if what == "counts" else data

    with altered(served, change) as url:
        far = Indexes({"bad": f"{url}#south", "good": f"{served.url}#north"})
        with pytest.raises(WrongReply, match="bad "):
            far.retrieve("Where was Colin Archer born?", mode="walk")


def test_replies_that_are_not_json_leave_the_shard_out(served: Running) -> None:
    with altered(served, lambda what, data: b"{") as url:
        far = Indexes({"good": f"{served.url}#north", "bad": f"{url}#south"})
        found = far.retrieve("Fram", mode="walk")
    assert found.missing == ("bad",) and "not JSON" in found.warnings[0]


def test_requests_that_a_service_refuses(served: Running) -> None:
    far = Indexes(addresses(served))
    with pytest.raises(InputError, match=r"north refuses the request.*colour"):
        far.retrieve("Fram", filter="colour=red")
    with pytest.raises(ModeUnavailable, match="refuses the request"):
        far.retrieve("Fram", mode="cg-rag")
    with pytest.raises(ConfigError, match="unknown index"):
        Indexes({"a": f"{served.url}#west", "b": f"{served.url}#north"}).retrieve("Fram")
    with pytest.raises(ConfigError, match="neither an open index nor an address"):
        Indexes({"a": "ftp://127.0.0.1"})


def test_bad_calls_to_a_shard_are_typed_errors(served: Running) -> None:
    with served.client() as client:
        plan = client.post("/v1/shard/plan", json={"question": "Fram"}).json()
        state = {"question": "Fram", "state": plan["state"]}
        words = {"weights": [["fram", 1.0]], "length": 40, "units": 6}
        leads = {name: [] for name in ("keywords", "names", "subjects", "seeds", "rest")}
        leads |= {"question": "Fram", "standard": [0.0, 1.0]}
        bad: list[tuple[str, dict[str, Any]]] = [
            ("plan", {}),
            ("state", {"question": "Fram"}),
            ("copy", {}),
            ("counts", {**state, "terms": {"keywords": [1], "names": [], "subjects": []}}),
            ("candidates", {**state, "weighting": {**words, "weights": [["fram"]]}, "count": 1}),
            ("candidates", {**state, "weighting": {**words, "weights": [[1, "x"]]}, "count": 1}),
            ("look-up", {**state, "weighting": words, "leads": {**leads, "seeds": [1]}}),
            ("look-up", {**state, "weighting": words, "leads": {**leads, "names": [["a", 1]]}}),
            ("passages", {**state, "units": [10**6], "scores": [1.0], "reading": {}}),
            (
                "passages",
                {
                    **state,
                    "units": [10**6],
                    "scores": [1.0],
                    "reading": {"text": "Fram", "replaced": {}, "unknown": []},
                },
            ),
        ]
        for what, body in bad:
            reply = client.post(f"/v1/shard/{what}", json=body)
            assert reply.status_code in (400, 422), (what, body, reply.text)
        other = client.post(
            "/v1/shard/counts",
            json={**state, "state": "0-x", "terms": {"keywords": [], "names": [], "subjects": []}},
        )
        assert other.json() == {"schema": "ketrag/shard/1", "protocol": 2, "state": plan["state"]}
        paths = client.get("/openapi.json").json()["paths"]
        assert {path for path in paths if path.startswith("/v1/shard/")} == {
            f"/v1/shard/{what}"
            for what in ("plan", "counts", "candidates", "look-up", "passages", "state", "copy")
        }


def test_the_command_takes_addresses(folders: dict[str, Path], served: Running, tmp_path: Path) -> None:
    named = f"{folders['north']},{served.url}#south"
    run = ketrag("retrieve", "-i", named, QUESTIONS[0], "--mode", "walk", "--top", "2", cwd=tmp_path)
    assert run.code == 0 and "archer:0-32" in run.out, run
    run = ketrag("search", "-i", f"{served.url}#south", "Larvik", "--json", cwd=tmp_path)
    assert json.loads(run.out)["hits"][0]["document"] == "larvik"
    run = ketrag("ask", "-i", f"{served.url}#south", "Where was Colin Archer born?", cwd=tmp_path)
    assert run.code == 0 and "born in Larvik" in run.out
    for command in (("grep", "Larvik"), ("get", "larvik"), ("themes",), ("documents",), ("stats",)):
        run = ketrag(*command, "--index", served.url, cwd=tmp_path)
        assert run.code == 2 and "is a service" in run.err, run


def test_commands_that_take_one_index_say_so(folders: dict[str, Path], tmp_path: Path) -> None:
    several = ",".join(map(str, folders.values()))
    for command in (("themes",), ("documents", "--outline"), ("stats",), ("graph", "Fram")):
        run = ketrag(*command, "-i", several, cwd=tmp_path)
        assert run.code == 2 and "this command takes one index" in run.err, run
        assert f"-i {folders['north']}" in run.err
    run = ketrag("ask", "-i", several, "What is this about?", "--survey", cwd=tmp_path)
    assert run.code == 4 and "which cannot be merged" in run.err, run
    for command in (("grep", "Larvik"), ("get", "larvik")):
        run = ketrag(*command, "--index", several, cwd=tmp_path)
        assert run.code == 0 and "Larvik" in run.out, run


@contextmanager
def copied(indexes: Indexes) -> Iterator[list[ShardCopy]]:
    """The copies of all services, which the first query makes."""
    indexes.retrieve(QUESTIONS[0])
    copies = [index.copy for index in indexes._indexes.values() if isinstance(index, remote.RemoteIndex)]
    try:
        yield [one for one in copies if one is not None]
    finally:
        indexes.close()


@pytest.mark.parametrize(
    "fields", [{}, {"top": 1}, {"budget": 40}, {"filter": "year>1850"}, {"min_score": 0.5}]
)
def test_copies_answer_as_open_indexes(folders: dict[str, Path], fields: dict[str, Any]) -> None:
    indexes = {name: str(path) for name, path in folders.items()}
    with running(folders["north"], indexes=indexes, copies=True, settings={"top": 2}) as service:
        own = Indexes(addresses(service))
        with copied(own) as copies, local(folders, top=2) as near:
            assert all(one._index is not None for one in copies) and len(copies) == 2
            for question in QUESTIONS:
                for mode in ("bm25", "walk", "text"):
                    one, other = (which.retrieve(question, mode=mode, **fields) for which in (near, own))
                    left, right = ({**context.to_json(), "timings_ms": {}} for context in (one, other))
                    assert left == right
            served = Indexes(addresses(service), copies=False)
            assert own.search(QUESTIONS[0]) == served.search(QUESTIONS[0])


def test_a_copy_is_dropped_when_its_index_changes_or_its_service_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_copies, "FRESH", 0.0)
    monkeypatch.setattr(shard_copies, "_PAUSES", 0.0)
    settings = Settings(threads=1)
    for name, documents in POLAR.items():
        Index.build(documents, tmp_path / name, settings=settings).close()
    indexes = {name: str(tmp_path / name) for name in POLAR}
    with ExitStack() as stack:
        service = stack.enter_context(running(tmp_path / "north", indexes=indexes, copies=True))
        own = Indexes(addresses(service))
        with copied(own) as copies:
            kept = [one._index for one in copies]
            Index.build(
                [*POLAR["south"], Document("tau", "Tau is a new word.", "Tau")], tmp_path / "south"
            ).close()
            until = time.monotonic() + 30
            while not own.retrieve("Tau", mode="bm25").passages and time.monotonic() < until:
                time.sleep(0.05)
            assert [one.document for one in own.retrieve("Tau", mode="bm25").passages] == ["tau"]
            assert copies[0]._index is kept[0] and copies[1]._index is not kept[1]
            stack.close()
            with pytest.raises(BackendError, match="does not answer"):
                own.retrieve(QUESTIONS[0])


@pytest.mark.parametrize("options", [{}, {"copies": True, "settings": {"citation_direction": "both"}}])
def test_nothing_is_copied_without_permission_or_with_settings_that_change_answers(
    folders: dict[str, Path], options: dict[str, Any]
) -> None:
    with running(folders["north"], **options) as service:
        own = Indexes({"north": service.url, "also": service.url})
        with copied(own) as copies:
            assert [one._index for one in copies] == [None, None]
        if not options:
            request = urllib.request.Request(
                service.url + "/v1/shard/copy", b'{"state": "1"}', {"content-type": "application/json"}
            )
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(request)


def test_a_user_who_sees_some_documents_copies_none(folders: dict[str, Path], tmp_path: Path) -> None:
    users = tmp_path / "users.jsonl"
    token = "a" * 40
    row = {"name": "anna", "sha256": hashlib.sha256(token.encode()).hexdigest(), "allow": "year<1850"}
    users.write_text(json.dumps({**row, "may": ["read"]}) + "\n")
    users.chmod(0o600)
    with running(folders["south"], copies=True, users=str(users)) as service:
        for what in ("state", "copy"):
            request = urllib.request.Request(
                f"{service.url}/v1/shard/{what}",
                json.dumps({"state": "1"} if what == "copy" else {}).encode(),
                {"content-type": "application/json", "authorization": f"Bearer {token}"},
            )
            if what == "state":
                with urllib.request.urlopen(request) as reply:
                    assert json.load(reply)["copy"] is None
                continue
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(request)


@pytest.mark.parametrize("bundle", ["", "!", base64.b64encode(b"no bundle").decode(), None])
def test_a_wrong_copy_is_not_used(folders: dict[str, Path], bundle: str | None) -> None:
    def change(what: str, data: Any) -> Any:
        return {**data, "bundle": bundle} if what == "copy" else data

    with running(folders["north"], copies=True) as service, altered(service, change) as address:
        own = Indexes({"north": address, "also": address})
        with copied(own) as copies:
            assert [one._index for one in copies] == [None, None]
            assert own.retrieve(QUESTIONS[0], mode="bm25").passages
