"""A chat endpoint on loopback whose replies are a function of the passage alone, at the speed asked for.

The server of `llama_server` decodes with real weights, which say nothing sensible; this one is for what
needs sensible replies: builds that are killed, stopped and gone on with.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from ketrag_fast.models.extraction.heuristic import extract

Answer = Callable[[str], str]
_FENCED = re.compile(r"^(={5,})\n(.*)\n\1$", re.DOTALL | re.MULTILINE)


def read_by_rules(prompt: str) -> str:
    """A terse reply with what the rules find in the passage of a prompt."""
    found = extract("", passage(prompt))
    return json.dumps({"e": found.entities, "r": found.relations})


def passage(prompt: str) -> str:
    """What stands between the fences."""
    found = _FENCED.search(prompt)
    assert found, prompt[-300:]
    return found.group(2)


class ChatEndpoint:
    """Serves `answer(prompt)` as model `rules`. `asked` holds the passages, in the order of asking; from
    `refuse_after` requests on everything is refused with 503.
    """

    def __init__(
        self, answer: Answer = read_by_rules, *, seconds: float = 0.0, refuse_after: int | None = None
    ) -> None:
        self.asked: list[str] = []
        self.answered: list[str] = []
        self.refuse_after = refuse_after
        lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle(self) -> None:
                with suppress(ConnectionError):  # whoever asked was killed
                    super().handle()

            def do_GET(self) -> None:
                data = [{"id": "rules", "object": "model", "owned_by": "tests"}]
                self._send(200, {"object": "list", "data": data})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                prompt = "\n".join(message["content"] for message in body["messages"])
                said = passage(prompt)
                with lock:
                    outer.asked.append(said)
                    refused = outer.refuse_after is not None and len(outer.asked) > outer.refuse_after
                if refused:
                    self._send(503, {"error": {"message": "no more"}})
                    return
                time.sleep(seconds)
                text = answer(prompt)
                usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(text.split())}
                try:
                    if body.get("stream"):
                        self._stream(text, usage)
                    else:
                        message = {"role": "assistant", "content": text}
                        choice = {"index": 0, "message": message, "finish_reason": "stop"}
                        self._send(200, {"model": "rules", "choices": [choice], "usage": usage})
                    with lock:
                        outer.answered.append(said)
                except OSError:  # whoever asked was killed
                    self.close_connection = True

            def _stream(self, text: str, usage: dict[str, int]) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                self.close_connection = True
                half = len(text) // 2
                for piece, finish in ((text[:half], None), (text[half:], "stop")):
                    choice = {"index": 0, "delta": {"content": piece}, "finish_reason": finish}
                    self._event({"model": "rules", "choices": [choice]})
                self._event({"model": "rules", "choices": [], "usage": usage})
                self.wfile.write(b"data: [DONE]\n\n")

            def _event(self, data: dict[str, Any]) -> None:
                self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
                self.wfile.flush()

            def _send(self, status: int, data: dict[str, Any]) -> None:
                payload = json.dumps(data).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.spec = f"openai:rules@http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
