"""The client of OpenAI-compatible endpoints next to the official `openai` package: the same requests to the same server
on loopback, one after another and from several threads. The server replies at once with canned content, so that the
time of the client is measured. Both clients keep their connections; each row is the best of some rounds, taken in turns.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import numpy as np

from common import header, table
from ketrag_fast.models.embedders.openai import OpenAIEmbedder
from ketrag_fast.models.llms.openai import OpenAIModel
from ketrag_fast.models.llms.protocol import Limits, Prompt

DIMENSION: Final = 1024
THREADS: Final = 4
_ROW: Final = np.random.default_rng(7).standard_normal(DIMENSION).astype("<f4")
_FORMS: Final = {
    "base64": json.dumps(base64.b64encode(_ROW.tobytes()).decode()),
    "float": json.dumps(_ROW.tolist()),
}


class Handler(BaseHTTPRequestHandler):
    """Replies as an endpoint does; each reply leaves in one piece, as good servers send it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """The list of models."""
        self._reply(b'{"object":"list","data":[{"id":"m","object":"model"}]}')

    def do_POST(self) -> None:
        """Vectors, or an answer."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/embeddings"):
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            row = _FORMS[body.get("encoding_format", "float")]
            rows = ",".join(
                f'{{"object":"embedding","index":{n},"embedding":{row}}}' for n in range(len(texts))
            )
            usage = '"usage":{"prompt_tokens":8,"total_tokens":8}'
            self._reply(f'{{"object":"list","model":"m","data":[{rows}],{usage}}}'.encode())
            return
        message = {"role": "assistant", "content": "Nansen sailed the Fram [1]. " * 8}
        usage = {"prompt_tokens": 100, "completion_tokens": 60, "total_tokens": 160}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        made = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
        self._reply(json.dumps({**made, "choices": [choice], "usage": usage}).encode())

    def _reply(self, content: bytes) -> None:
        head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:"
        self.wfile.write(f"{head} {len(content)}\r\n\r\n".encode() + content)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def serve() -> None:
    """Run the server, in a separate process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def best(works: Sequence[Callable[[], object]], count: int, rounds: int) -> list[float]:
    """Milliseconds a request of each, the best of some rounds in turns."""
    times = [float("inf")] * len(works)
    for _ in range(rounds):
        for at, work in enumerate(works):
            began = time.perf_counter()
            work()
            times[at] = min(times[at], 1000 * (time.perf_counter() - began) / count)
    return times


def pairs(port: int, count: int) -> list[tuple[str, int, Callable[[], object], Callable[[], object]]]:
    """Return the cases: name, requests, our client, the official client."""
    from openai import OpenAI

    url = f"http://127.0.0.1:{port}/v1"
    theirs = OpenAI(base_url=url, api_key="none", timeout=60, max_retries=0)
    embedder = OpenAIEmbedder(f"openai:m@{url}", longest=8000)
    model = OpenAIModel(f"openai:m@{url}")
    question, batch = ["Who sailed the Fram?"], [f"The Fram, text {n}." for n in range(64)]
    prompts = [Prompt(n, "Answer.", f"Who sailed the Fram? {n}") for n in range(count)]
    limits = Limits(tokens=100, seconds=60)
    threads = ThreadPoolExecutor(THREADS)

    def vectors(texts: list[str]) -> Any:
        data = theirs.embeddings.create(model="m", input=texts).data
        return np.array([row.embedding for row in data], np.float32)

    def chat(prompt: Prompt) -> Any:
        messages: Any = [
            {"role": "system", "content": prompt.instructions},
            {"role": "user", "content": prompt.text},
        ]
        return theirs.chat.completions.create(model="m", messages=messages, max_tokens=100, temperature=0)

    def one_by_one(call: Callable[[Any], Any], what: Sequence[Any]) -> Callable[[], object]:
        return lambda: [call(one) for one in what]

    def at_once(call: Callable[[Any], Any], what: Sequence[Any]) -> Callable[[], object]:
        return lambda: list(threads.map(call, what))

    def ours(prompt: Prompt) -> Any:
        return list(model.stream(prompt, limits))

    few = max(count // 10, 1)
    questions, batches = [question] * count, [batch] * few
    return [
        (
            "a question's embedding",
            count,
            one_by_one(embedder.embed, questions),
            one_by_one(vectors, questions),
        ),
        ("the same, 4 threads", count, at_once(embedder.embed, questions), at_once(vectors, questions)),
        ("64 embeddings", few, one_by_one(embedder.embed, batches), one_by_one(vectors, batches)),
        ("the same, 4 threads", few, lambda: embedder.embed(batch * few), at_once(vectors, batches)),
        ("an answer", count, one_by_one(ours, prompts), one_by_one(chat, prompts)),
        ("an answer, 4 threads", count, lambda: list(model.replies(prompts, limits)), at_once(chat, prompts)),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve()
        return
    os.environ.pop("KETRAG_OPENAI_API_KEY", None)
    process = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        rows = []
        for name, count, ours, theirs in pairs(int(process.stdout.readline()), args.requests):
            ours(), theirs()
            mine, other = best((ours, theirs), count, args.rounds)
            rows.append([name, mine, other, other / mine])
        import openai

        header("Clients of an endpoint", [f"openai {openai.__version__}; vectors of {DIMENSION} dimensions."])
        table(["request", "ms, ours", "ms, openai", "openai / ours"], rows)
    finally:
        process.terminate()
        process.wait(30)


if __name__ == "__main__":
    main()
