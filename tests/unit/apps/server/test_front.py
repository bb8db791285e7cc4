"""The core's HTTP front: the bytes of the application, and limits that hold without the interpreter."""

from __future__ import annotations

import contextlib
import json
import re
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.base.filters import ColumnReader
from ketrag_fast.models.embedders.discovery import resolve
from tests.support.endpoint import Endpoint, words_encoder
from tests.support.service import command, httpx, running
from tests.unit.apps.server.conftest import QUESTION, TEXTS, documents

pytestmark = [
    pytest.mark.usefixtures("loopback"),
]

HEAD = b"POST /v1/retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
TIMES = re.compile(rb'"timings_ms":\{[^}]*\}')


def request(body: dict[str, Any], *lines: bytes) -> bytes:
    """A whole request."""
    text = json.dumps(body).encode()
    head = HEAD + b"".join(line + b"\r\n" for line in lines)
    return head + b"Content-Length: %d\r\n\r\n%s" % (len(text), text)


def counted(client: Any, name: str) -> float:
    """The value of a metric."""
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def until(what: Callable[[], Any], seconds: float = 30) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


BODIES: list[dict[str, Any]] = [
    {"question": QUESTION, "mode": mode, "budget": budget, "top": top}
    for mode in ("bm25", "text", "fused", "walk", "auto", None)
    for budget, top in ((None, None), (0, None), (30, None), (600, 2))
]
BODIES += [
    {"question": "An odd text", "mode": "bm25"},
    {"question": "\u202e no \x7f match \U000e0041 qqq"},
    {"question": QUESTION, "filter": "letters<4", "explain": False},
    {"question": QUESTION, "filter": "letters>1000"},
    {"question": QUESTION, "index": "ketrag", "deadline": 20},
    {"question": '"an odd" -zzz', "literal": True},
]


def test_both_paths_send_the_same_bytes(folder: Path) -> None:
    with contextlib.ExitStack() as stack:
        services = [stack.enter_context(running(folder, cache=0, front=front)) for front in (True, False)]
        one, other = (stack.enter_context(service.client()) for service in services)
        for body in BODIES:
            fast, plain = (client.post("/v1/retrieve", json=body) for client in (one, other))
            assert (fast.status_code, plain.status_code) == (200, 200), body
            assert TIMES.sub(b"", fast.content) == TIMES.sub(b"", plain.content), body
            assert fast.json()["timings_ms"].keys() == plain.json()["timings_ms"].keys()
            assert sorted(fast.headers.keys()) == sorted(plain.headers.keys())
            same = [name for name in fast.headers if name not in ("date", "content-length")]
            assert [fast.headers[name] for name in same] == [plain.headers[name] for name in same]
        assert counted(one, "ketrag_batch_questions_count") == len(BODIES)
        seen = 'ketrag_requests_total{route="/v1/retrieve",status="200"}'
        assert counted(one, seen) == counted(other, seen) == len(BODIES)
        seconds = 'ketrag_request_seconds_bucket{le="+Inf",route="/v1/retrieve"}'
        assert counted(one, seconds) == counted(other, seconds) == len(BODIES)


def test_the_front_answers_itself_what_is_plain(folder: Path) -> None:
    with running(folder) as service, service.client() as client:
        for _ in range(3):
            client.post("/v1/retrieve", json={"question": QUESTION})
        state = service.server.server_state
        assert state.total_requests == 0, "the application had no request"
        client.post("/v1/retrieve", json={"question": QUESTION, "explain": True})
        assert state.total_requests == 1
        assert counted(client, "ketrag_cached_replies_total") == 2


@dataclass
class Held:
    """A service whose embedding model waits."""

    service: Any
    gate: threading.Event = field(default_factory=threading.Event)
    """Lets the model go on."""
    sizes: list[int] = field(default_factory=list)
    """Questions of each batch."""


@contextlib.contextmanager
def held(tmp_path: Path, **options: Any) -> Iterator[Held]:
    """A service on an index with a model that waits for `gate` from its second request on."""
    encoder = words_encoder()
    state = Held(None)
    asking = threading.Event()

    def encode(texts: Any) -> Any:
        if asking.is_set():
            state.sizes.append(len(texts))
            assert state.gate.wait(60)
        return encoder(texts)

    with Endpoint(encode) as endpoint:
        settings = Settings(threads=1, embedder=f"openai:mini@{endpoint.url}")
        folder = tmp_path / "index"
        Index.build(documents(), folder, settings=settings).close()
        given = {"embedder": settings.embedder}
        with running(folder, settings=given, cache=0, **options) as service:
            with service.client() as client:
                body = {"question": "warm", "mode": "text"}
                assert client.post("/v1/retrieve", json=body).status_code == 200
            state.service = service
            asking.set()
            try:
                yield state
            finally:
                state.gate.set()


def ask(client: Any, question: str, **fields: Any) -> Any:
    return client.post("/v1/retrieve", json={"question": question, **fields})


def test_questions_that_come_while_a_model_embeds_are_embedded_together(tmp_path: Path) -> None:
    with held(tmp_path, concurrency=2) as state, state.service.client() as client:
        waiting = state.service.service.waiting_in_front
        with ThreadPoolExecutor(20) as pool:
            head = pool.submit(ask, client, "Fram", mode="text")
            until(lambda: state.sizes)
            later = [pool.submit(ask, client, f"Maud {n}", mode="text") for n in range(12)]
            until(lambda: waiting() == 12)
            assert ask(client, "Fram", mode="bm25").status_code == 200  # it does not wait for the model
            state.gate.set()
            assert head.result().json()["question"] == "Fram"
            replies = [reply.result().json() for reply in later]
        assert [reply["question"] for reply in replies] == [f"Maud {n}" for n in range(12)]
        assert state.sizes == [1, 12]
        with Index.open(
            tmp_path / "index", settings=Settings(**state.service.service.options.settings)
        ) as index:
            wanted = [passage.unit for passage in index.retrieve("Maud 3", mode="text").passages]
        assert [passage["unit"]["id"] for passage in replies[3]["passages"]] == wanted


def test_a_model_that_is_waited_for_holds_no_core(tmp_path: Path) -> None:
    with (
        held(tmp_path, concurrency=1) as state,
        state.service.client() as client,
        ThreadPoolExecutor(9) as pool,
    ):
        busy = [pool.submit(ask, client, f"Fram {n}", mode="text") for n in range(8)]
        until(lambda: state.sizes)
        for _ in range(20):
            assert ask(client, "Fram", mode="bm25", budget=100).status_code == 200
        assert len(state.sizes) == 1, "an endpoint embeds one batch at a time"
        state.gate.set()
        assert [reply.result().status_code for reply in busy] == [200] * 8


@pytest.fixture(scope="module")
def with_minilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with a model of this package."""
    if resolve("all-MiniLM-L6-v2") is None:
        pytest.skip("all-MiniLM-L6-v2 is not installed")
    folder = tmp_path_factory.mktemp("minilm") / "index"
    settings = Settings(threads=1, modes="bm25,text", embedder="native:all-MiniLM-L6-v2")
    Index.build(documents(), folder, settings=settings).close()
    return folder


def test_a_long_question_delays_no_short_one(with_minilm: Path) -> None:
    """The only core embeds 20,000 characters: after a moment it is shared."""
    with running(with_minilm, cache=0, concurrency=1) as service, service.client() as client:
        until(lambda: client.get("/ready").status_code == 200)
        with ThreadPoolExecutor(1) as pool:
            for turn in range(
                20
            ):  # at least once, the long one must still run when the short one is answered
                text = f"{turn} " + "ship of the polar basin " * 830
                long = pool.submit(ask, client, text[:20_000], mode="text")
                until(lambda least=2 * turn: counted(client, "ketrag_batch_questions_count") > least)
                assert ask(client, "Fram", mode="bm25").status_code == 200
                overtaken = not long.done()
                assert long.result().status_code == 200
                if overtaken:
                    return
    pytest.fail("a short question waited for a long one")


def test_batches_on_several_cores_mix_nothing_up(with_minilm: Path) -> None:
    questions = [f"{'Who sailed the Fram? ' * (n % 40)} number {n}" for n in range(120)]
    with Index.open(with_minilm) as index:
        wanted = [index.retrieve(text, mode="text").to_json() for text in questions]
    with running(with_minilm, cache=0, concurrency=2) as service, service.client() as client:
        until(lambda: client.get("/ready").status_code == 200)
        with ThreadPoolExecutor(24) as pool:
            replies = list(pool.map(lambda text: ask(client, text, mode="text").json(), questions))
        assert counted(client, "ketrag_batch_questions_count"), "the front embedded them"
    for reply, same in zip(replies, wanted, strict=True):
        reply.pop("timings_ms"), same.pop("timings_ms")
        assert reply == same


def test_a_question_whose_time_is_over_while_it_is_embedded(tmp_path: Path) -> None:
    with held(tmp_path, concurrency=1) as state, state.service.client() as client:
        began = time.monotonic()
        late = ask(client, "Fram", mode="text", deadline=0.3)
        assert (late.status_code, late.json()["code"]) == (504, "deadline")
        assert time.monotonic() - began < 30
        assert ask(client, "Fram", mode="bm25").status_code == 200


def test_a_question_whose_time_is_over_while_metadata_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first filter of an index reads all metadata. The next question reads on; the front answers it."""
    readable, read = threading.Event(), ColumnReader._read_slice

    def wait_to_read(self: ColumnReader) -> bool:
        if readable.is_set():
            return read(self)
        time.sleep(0.01)
        return True  # there is more to read

    monkeypatch.setattr(ColumnReader, "_read_slice", wait_to_read)
    body = {"question": QUESTION, "filter": "letters<4"}
    with running(folder, cache=0) as service:
        try:
            with service.client() as client:
                late = client.post("/v1/retrieve", json={**body, "deadline": 0.3}, timeout=20)
                assert (late.status_code, late.json()["code"]) == (504, "deadline")
                assert late.json()["message"] == "no answer within 0.3 s"
        finally:
            readable.set()
        with service.client() as client:
            assert client.post("/v1/retrieve", json=body).json()["passages"]
            assert service.server.server_state.total_requests == 1, "the application had only the late one"


def test_a_full_queue_and_a_deadline_while_the_model_is_busy(tmp_path: Path) -> None:
    with held(tmp_path, concurrency=1, queue=4) as state, state.service.client() as client:
        waiting = state.service.service.waiting_in_front
        with ThreadPoolExecutor(20) as pool:
            busy = pool.submit(ask, client, "Fram", mode="text")
            until(lambda: state.sizes)
            with state.service.client() as other:
                late = ask(other, "Maud", mode="text", deadline=0.2)
            assert (late.status_code, late.json()["code"]) == (504, "deadline")
            assert late.json()["message"] == "no answer within 0.2 s"
            queued = [pool.submit(ask, client, f"Maud {n}", mode="text") for n in range(4)]
            until(lambda: waiting() == 4)
            refused = ask(client, "Gjøa", mode="text")
            assert (refused.status_code, refused.json()["code"]) == (429, "busy")
            assert int(refused.headers["retry-after"]) >= 1
            assert refused.headers["x-content-type-options"] == "nosniff"
            assert client.get("/health").status_code == 200
            state.gate.set()
            assert [reply.result().status_code for reply in (busy, *queued)] == [200] * 5
        assert counted(client, "ketrag_refused_total") == 1
        assert counted(client, 'ketrag_requests_total{route="/v1/retrieve",status="429"}') == 1
        assert counted(client, 'ketrag_requests_total{route="/v1/retrieve",status="504"}') == 1


def test_work_for_a_client_that_is_gone_is_dropped(tmp_path: Path) -> None:
    with held(tmp_path, concurrency=1) as state, state.service.client() as client:
        waiting = state.service.service.waiting_in_front
        with ThreadPoolExecutor(2) as pool:
            busy = pool.submit(ask, client, "Fram", mode="text")
            until(lambda: state.sizes)
            for n in range(20):
                with socket.create_connection(("127.0.0.1", state.service.port), timeout=10) as connection:
                    connection.sendall(request({"question": f"Maud {n}", "mode": "text"}))
            until(lambda: waiting() == 20)
            until(lambda: waiting() == 0)  # although the model is busy
            state.gate.set()
            assert busy.result().status_code == 200
        assert counted(client, 'ketrag_requests_total{route="/v1/retrieve",status="200"}') == 2


def test_a_running_request_is_finished_when_the_service_stops(tmp_path: Path) -> None:
    with held(tmp_path, concurrency=1) as state, state.service.client() as client:
        with ThreadPoolExecutor(2) as pool:
            busy = pool.submit(ask, client, "Fram", mode="text")
            until(lambda: state.sizes)
            state.service.server.should_exit = True
            until(lambda: state.service.service.stopping)
            state.gate.set()
            reply = busy.result()
        assert (reply.status_code, reply.headers["connection"]) == (200, "close")
        with pytest.raises(httpx.TransportError):
            client.get("/health")


def receive(connection: socket.socket, replies: int) -> bytes:
    """What comes until so many replies are complete."""
    got = b""
    while got.count(b"HTTP/1.1 ") < replies or not got.endswith(b"}"):
        data = connection.recv(1 << 16)
        if not data:
            break
        got += data
    return got


def test_a_request_in_pieces_and_many_behind_each_other(folder: Path) -> None:
    with running(folder, read_seconds=2.0) as service:
        whole = request({"question": "Fram", "mode": "bm25"})
        for pause in (0.001, 0.6):  # the second is passed on to the application on its way
            with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
                for at in range(0, len(whole), 90):
                    connection.sendall(whole[at : at + 90])
                    time.sleep(pause)
                assert receive(connection, 1).startswith(b"HTTP/1.1 200")
                connection.sendall(whole)
                assert receive(connection, 1).startswith(b"HTTP/1.1 200")
        with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
            many = [request({"question": f"Fram {n}", "mode": "bm25"}) for n in range(500)]
            sender = threading.Thread(target=connection.sendall, args=(b"".join(many),))
            sender.start()
            got = receive(connection, 500)
            sender.join()
        assert re.findall(rb'"question":"Fram (\d+)"', got) == [b"%d" % n for n in range(500)]


def test_a_client_that_does_not_read_is_closed_and_delays_nobody(folder: Path) -> None:
    with (
        running(folder, idle_seconds=1, cache=0, concurrency=1) as service,
        service.client() as client,
        socket.socket() as connection,
    ):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", service.port))
        connection.settimeout(0.5)
        long = "Fram polar basin " * 1000
        sent = 0
        with contextlib.suppress(TimeoutError, ConnectionError):
            while sent < 1 << 26:
                sent += connection.send(request({"question": long, "mode": "bm25"}))
        assert client.post("/v1/retrieve", json={"question": QUESTION}).status_code == 200
        until(lambda: is_closed(connection))


def is_closed(connection: socket.socket) -> bool:
    """Whether the service has closed a connection, without reading from it."""
    try:
        return connection.send(b"x") == 0
    except TimeoutError:
        return False
    except OSError:
        return True


def test_bytes_that_are_no_request_at_any_point_of_one(folder: Path) -> None:
    whole = request({"question": "Fram", "mode": "bm25"}, b"Connection: close")
    with running(folder, read_seconds=0.4) as service, service.client() as client:
        for end in (*range(0, 40, 3), *range(40, len(whole), 25)):
            with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
                connection.sendall(whole[:end] + b"\x00\xff")
                got = b""
                with contextlib.suppress(ConnectionError):
                    while data := connection.recv(1 << 16):
                        got += data
            assert not got.startswith(b"HTTP/1.1 2"), (end, got)
        assert client.post("/v1/retrieve", json={"question": QUESTION}).status_code == 200


@pytest.mark.parametrize("explain", [False, True], ids=["front", "application"])
def test_ten_thousand_connections(folder: Path, tmp_path: Path, explain: bool) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 12_000:
        pytest.skip(f"this system allows {hard:,} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the service inherits it
    try:
        options = ("--max-connections", "11000", "--read-seconds", "300")
        with command("-i", str(folder), *options, cwd=tmp_path) as (port, _):
            held = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(10_000)]
            whole = request({"question": QUESTION, "mode": "bm25", "explain": explain})
            try:
                for some in range(0, 10_000 if explain else 0, 500):  # the application takes them all over
                    for connection in held[some : some + 500]:
                        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    for connection in held[some : some + 500]:
                        assert receive(connection, 1).startswith(b"HTTP/1.1 200")
                latest = held[-500::5]  # the others may be idle for too long already
                for connection in latest:
                    connection.sendall(whole)
                for connection in latest:
                    assert receive(connection, 1).startswith(b"HTTP/1.1 200")
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
                    assert client.get("/health").status_code == 200
            finally:
                for connection in held:
                    connection.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_limit_on_connections_covers_both(folder: Path) -> None:
    with running(folder, connections=6) as service:
        open_ones = [socket.create_connection(("127.0.0.1", service.port), timeout=10) for _ in range(6)]
        for connection in open_ones[:3]:  # these are the application's
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert receive(connection, 1).startswith(b"HTTP/1.1 200")
        with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
            connection.sendall(request({"question": QUESTION}))
            reply = receive(connection, 1)
            assert reply.startswith(b"HTTP/1.1 429") and b"retry-after: 1" in reply
        open_ones.pop(0).close()
        open_ones.pop().close()

        def admitted() -> bool:
            with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
                connection.sendall(request({"question": QUESTION}))
                return receive(connection, 1).startswith(b"HTTP/1.1 200")

        until(admitted)
        for connection in open_ones:
            connection.close()


def test_every_document_of_the_index_is_described(folder: Path) -> None:
    with running(folder) as service, service.client() as client:
        reply = ask(client, " ".join(TEXTS.values())[:2000], budget=4000)
        assert service.server.server_state.total_requests == 0
        found = {passage["document"]: passage["metadata"] for passage in reply.json()["passages"]}
        assert found == {one.id: dict(one.metadata) for one in documents()}


def test_words_are_corrected_also_in_requests_whose_plan_is_known(with_minilm: Path) -> None:
    with running(with_minilm, cache=0) as service, service.client() as client:
        until(lambda: client.get("/ready").status_code == 200)
        for mode in ("bm25", "text"):
            ask(client, "Who sailed the Fram?", mode=mode)
            notes = [
                ask(client, text, mode=mode).json().get("notes") for text in ("Amundsan", "Amundsen xyzzy")
            ]
            assert notes == [['no "Amundsan": searched for amundsen'], ['no document has "xyzzy"']], mode
