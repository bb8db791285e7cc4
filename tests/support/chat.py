"""A little chat server on loopback, and a proxy before any of them that does what bad networks do."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.endpoint import Fault, Quiet, Served, forward, send

Answer = Callable[[dict[str, Any]], str]


class Chat(Served):
    """Answers with `answer(request)`. `refuses(request)` names what it finds wrong, if anything: 400.

    `listed` are the models it tells of (None: it does not tell). Events of a stream are single words.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        refuses: Callable[[dict[str, Any]], str | None] = lambda _: None,
        listed: Sequence[dict[str, Any]] | None = ({"id": "mini", "max_model_len": 4096},),
        pause: float = 0.0,
    ) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.listings: list[str | None] = []
        """The key of each request for the list of models."""
        self.together = self.most = 0
        self.said: list[str] = []
        lock = threading.Lock()
        outer = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            answering = False

            def do_GET(self) -> None:
                outer.listings.append(self.headers.get("Authorization"))
                if listed is None:
                    send(self, 404, {"detail": "Not Found"})
                else:
                    send(self, 200, {"object": "list", "data": list(listed)})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    outer.requests.append(body)
                    outer.keys.append(self.headers.get("Authorization"))
                    outer.together += 1
                    outer.most = max(outer.most, outer.together)
                outer.over.wait(pause)
                self.answering = True
                try:
                    self._answer(body)
                except OSError:  # who asked has gone
                    self.close_connection = True
                finally:
                    self._end()

            def _end(self) -> None:
                """Counts before the last bytes are sent: who has read them may ask again at once."""
                with lock:
                    outer.together -= self.answering
                    self.answering = False

            def _answer(self, body: dict[str, Any]) -> None:
                wrong = refuses(body)
                if wrong is not None:
                    self._end()
                    send(self, 400, {"error": {"message": wrong}})
                elif body.get("stream"):
                    self._stream(answer(body))
                else:
                    message = {"role": "assistant", "content": answer(body)}
                    choice = {"index": 0, "message": message, "finish_reason": "stop"}
                    self._end()
                    send(self, 200, {"choices": [choice], "usage": usage(body)})

            def _stream(self, text: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream; charset=utf-8")
                self.send_header("Connection", "close")
                self.end_headers()
                self.close_connection = True
                for word in text.split(" "):
                    event = {"choices": [{"delta": {"content": f"{word} "}, "finish_reason": None}]}
                    self.wfile.write(b": alive\n\ndata: " + json.dumps(event).encode() + b"\n\n")
                    self.wfile.flush()
                    outer.said.append(word)
                    outer.over.wait(pause)
                self._end()
                last = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
                self.wfile.write(b"data: " + json.dumps(last).encode() + b"\n\ndata: [DONE]\n\n")

        super().__init__(Handler)


def usage(body: dict[str, Any]) -> dict[str, int]:
    sent = sum(len(message["content"].split()) for message in body["messages"])
    return {"prompt_tokens": sent, "completion_tokens": 5, "total_tokens": sent + 5}


class ChatProxy(Served):
    """Passes requests on to the server at `port` as they are; the first chat requests each meet the fault
    that stands for them, if any. `times` says when they came.
    """

    def __init__(self, port: int, faults: Sequence[Fault | None]) -> None:
        self.times: list[float] = []
        left = list(faults)
        lock = threading.Lock()
        outer = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._pass_on(None, None)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with lock:
                    outer.times.append(time.monotonic())
                    fault = left.pop(0) if left else None
                self._pass_on(body, fault)

            def _pass_on(self, body: bytes | None, fault: Fault | None) -> None:
                code, content, kind = forward(port, self.path, body)
                try:
                    if fault is None:
                        send(self, code, content, kind)
                    else:
                        fault(self, content)
                except OSError:
                    self.close_connection = True

        super().__init__(Handler)


def trickle(handler: BaseHTTPRequestHandler, _: bytes) -> None:
    """A reply that never ends, a byte at a time."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    for _number in range(600):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)
    handler.close_connection = True


def stream_cut(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    """A stream that ends before it is done."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.end_headers()
    handler.wfile.write(content[: content.rfind(b"data: [DONE]")])
    handler.close_connection = True
