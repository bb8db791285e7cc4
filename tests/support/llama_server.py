"""An OpenAI-compatible server on loopback around a real llama.cpp model, without a web framework.

llama-cpp-python's own server needs five more packages; this one speaks the same three routes
(`/v1/models`, `/v1/chat/completions` with `response_format` and streaming, `/v1/embeddings`) and can be
told to behave like servers that offer less.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Literal

from tests.support.endpoint import Quiet, Served, send

Offers = Literal["schema", "object", "none"]


class _Refused(Exception):
    def __init__(self, status: int, message: str, code: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class LlamaServer(Served):
    """Serves the model of a GGUF as `name`. `offers` is the best response format that it accepts;
    `key` is demanded where given. `requests` keeps what it was asked, as (path, body)."""

    def __init__(
        self,
        path: Path,
        *,
        name: str = "tiny",
        offers: Offers = "schema",
        key: str | None = None,
        context: int = 2048,
        threads: int = 1,
    ) -> None:
        self.path, self.name, self.offers, self.key = path, name, offers, key
        self.context, self.threads = context, threads
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._lock = threading.Lock()
        self._models: dict[bool, Any] = {}
        outer = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(None)

            def do_POST(self) -> None:
                self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

            def _answer(self, data: bytes | None) -> None:
                try:
                    outer._serve(self, data)
                except _Refused as refused:
                    error = {"message": str(refused), "code": refused.code, "type": "invalid_request_error"}
                    send(self, refused.status, {"error": error})
                except OSError:
                    self.close_connection = True

        super().__init__(Handler)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        for model in self._models.values():
            model.close()

    def _model(self, embedding: bool) -> Any:
        """The real thing; call it with the lock held."""
        if embedding not in self._models:
            import llama_cpp

            self._models[embedding] = llama_cpp.Llama(
                str(self.path),
                n_ctx=self.context,
                n_threads=self.threads,
                n_threads_batch=self.threads,
                embedding=embedding,
                seed=1,
                verbose=False,
            )
        return self._models[embedding]

    def _serve(self, handler: BaseHTTPRequestHandler, data: bytes | None) -> None:
        if self.key is not None and handler.headers.get("Authorization") != f"Bearer {self.key}":
            raise _Refused(401, "Incorrect API key provided", "invalid_api_key")
        if data is None:
            if handler.path != "/v1/models":
                raise _Refused(404, "no such route", "not_found")
            entry = {"id": self.name, "object": "model", "owned_by": "test"}
            send(handler, 200, {"object": "list", "data": [entry]})
            return
        try:
            body = json.loads(data)
        except ValueError as error:
            raise _Refused(400, f"the request is no JSON: {error}", "bad_json") from error
        with self._lock:
            self.requests.append((handler.path, body))
        if body.get("model") != self.name:
            raise _Refused(404, f"The model `{body.get('model')}` does not exist", "model_not_found")
        if handler.path == "/v1/chat/completions":
            self._chat(handler, body)
        elif handler.path == "/v1/embeddings":
            self._embeddings(handler, body)
        else:
            raise _Refused(404, "no such route", "not_found")

    def _chat(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        wanted = self._format(body.get("response_format"))
        stream = bool(body.get("stream"))
        limit = body.get("max_tokens") or body.get("max_completion_tokens")
        with self._lock:
            model = self._model(False)
            try:
                made = model.create_chat_completion(
                    messages=body["messages"],
                    temperature=body.get("temperature", 0.0),
                    max_tokens=limit,
                    seed=body.get("seed", 1),
                    stop=body.get("stop") or [],
                    response_format=wanted,
                    stream=stream,
                )
                if stream:
                    made = self._events(made)
                    first = next(made)
            except ValueError as error:
                # llama-cpp-python: "Requested tokens (N) exceed context window of M"
                raise _Refused(400, str(error), "context_length_exceeded") from error
            except (KeyError, TypeError) as error:
                raise _Refused(400, f"a bad request: {error!r}", "invalid_value") from error
            if not stream:
                made["model"] = self.name
                send(handler, 200, made)
                return
            handler.send_response(200)
            handler.send_header("Content-Type", "text/event-stream")
            handler.send_header("Connection", "close")
            handler.end_headers()
            handler.close_connection = True
            handler.wfile.write(first)
            for event in made:
                handler.wfile.write(event)
                handler.wfile.flush()

    def _events(self, chunks: Iterable[dict[str, Any]]) -> Any:
        for chunk in chunks:
            chunk["model"] = self.name
            yield b"data: " + json.dumps(chunk).encode() + b"\n\n"
        yield b"data: [DONE]\n\n"

    def _format(self, wanted: dict[str, Any] | None) -> dict[str, Any] | None:
        """OpenAI's `response_format` as llama-cpp-python takes it; refused where this server lacks it."""
        kind = (wanted or {}).get("type", "text")
        if wanted is None or kind == "text":
            return None
        levels = {"none": 0, "object": 1, "schema": 2}
        if {"json_object": 1, "json_schema": 2}.get(kind, 3) > levels[self.offers]:
            raise _Refused(400, f"response_format {kind} is not supported by this model", "invalid_value")
        if kind == "json_schema":
            return {"type": "json_object", "schema": wanted["json_schema"]["schema"]}
        return {"type": "json_object"}

    def _embeddings(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        with self._lock:
            try:
                reply = self._model(True).create_embedding(body["input"], model=self.name)
            except (ValueError, RuntimeError) as error:
                raise _Refused(400, str(error), "context_length_exceeded") from error
        send(handler, 200, reply)
