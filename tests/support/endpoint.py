"""An embeddings server on loopback, and a proxy before it that does what bad networks and servers do."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Encode = Callable[[Sequence[str]], NDArray[Any]]


Fault = Callable[[BaseHTTPRequestHandler, bytes], None]


class Quiet(BaseHTTPRequestHandler):
    """Keeps connections open and logs nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass


class Served:
    """A server on loopback that runs while it is entered."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.over = threading.Event()
        """Ends the pauses of what still answers when the test is done."""
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.port = int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Endpoint(Served):
    """Serves `encode` by OpenAI's embeddings protocol. `refuse_over` words is answered with 400."""

    def __init__(self, encode: Encode, refuse_over: int | None = None) -> None:
        self.texts: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        lock = threading.Lock()
        outer = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                texts = body["input"]
                with lock:
                    outer.texts += texts
                    outer.bodies.append(body)
                    outer.keys.append(self.headers.get("Authorization"))
                    if refuse_over is not None and any(len(text.split()) > refuse_over for text in texts):
                        send(self, 400, {"error": {"message": "input is too long for the context length"}})
                        return
                    vectors = encode(texts)
                data = [
                    {"object": "embedding", "index": place, "embedding": row.tolist()}
                    for place, row in enumerate(vectors)
                ]
                usage = {"prompt_tokens": sum(len(text.split()) for text in texts), "total_tokens": 0}
                # The order of the entries is the server's business; their numbers count.
                reply = {"object": "list", "data": data[::-1], "model": body["model"], "usage": usage}
                send(self, 200, reply)

        super().__init__(Handler)


class Proxy(Served):
    """Passes requests on to `behind`; the first ones each meet the fault that stands for them, if any."""

    def __init__(self, behind: Served, faults: Sequence[Fault | None]) -> None:
        self.requests = 0
        self.times: list[float] = []
        left = list(faults)
        lock = threading.Lock()
        outer = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with lock:
                    outer.requests += 1
                    outer.times.append(time.monotonic())
                    fault = left.pop(0) if left else None
                _, content, _ = forward(behind.port, self.path, body)
                if fault is None:
                    send(self, 200, json.loads(content))
                else:
                    fault(self, content)

        super().__init__(Handler)


def forward(port: int, path: str, body: bytes | None) -> tuple[int, bytes, str]:
    """Pass a request on to a server; return the status, content and kind of its reply."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET" if body is None else "POST", path, body, {"Content-Type": "application/json"})
    reply = connection.getresponse()
    found = reply.status, reply.read(), reply.getheader("Content-Type") or ""
    connection.close()
    return found


def send(
    handler: BaseHTTPRequestHandler,
    status: int,
    body: Any,
    kind: str = "application/json",
    headers: dict[str, str] | None = None,
) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(content)))
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(content)


def status(code: int, retry_after: str | None = None) -> Fault:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return lambda handler, _: send(handler, code, {"error": {"message": "not now"}}, headers=headers)


def altered(change: Callable[[dict[str, Any]], None]) -> Fault:
    """A whole reply, with something wrong inside."""

    def fault(handler: BaseHTTPRequestHandler, content: bytes) -> None:
        reply = json.loads(content)
        change(reply)
        send(handler, 200, reply)

    return fault


def cut_short(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content[: len(content) // 2])
    handler.wfile.flush()
    handler.close_connection = True
    handler.connection.close()


def half_json(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    """Cut before it was framed: the length is right, the content is not."""
    send(handler, 200, content[: len(content) // 2])


def web_page(handler: BaseHTTPRequestHandler, _: bytes) -> None:
    send(handler, 200, b"<html>hello</html>", "text/html")


def endless(handler: BaseHTTPRequestHandler, _: bytes) -> None:
    """50 MB, if the client takes them."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(50_000_000))
    handler.end_headers()
    try:
        for _number in range(50):
            handler.wfile.write(b" " * 1_000_000)
    except OSError:
        pass
    handler.close_connection = True


def words_encoder(dimension: int = 16, reads: int | None = None) -> Encode:
    """A server's model in miniature: each word adds its vector; those after the first `reads` do not."""

    def encode(texts: Sequence[str]) -> NDArray[np.float64]:
        out = np.zeros((len(texts), dimension))
        for row, text in enumerate(texts):
            for word in text.split()[:reads]:
                seed = int.from_bytes(word.encode("utf-8", "replace")[:8].ljust(8, b"\0"), "little")
                out[row] += np.random.Generator(np.random.PCG64(seed)).standard_normal(dimension)
        return out

    return encode
