"""A question whose answer is remembered never waits for a model that is busy with another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import DeadlineExceeded
from ketrag_fast.models.embedders.query_vectors import QueryEmbedder
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from tests.support.chat import Chat
from tests.support.endpoint import Endpoint, words_encoder

pytestmark = pytest.mark.usefixtures("loopback")

SLOW = "a slow one"


class Gate:
    """A server's answer to a slow question waits here until the test opens it."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def hold(self, text: str) -> None:
        if SLOW in text:
            self.entered.set()
            assert self.opened.wait(60)


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.opened.set()


def while_busy(gate: Gate, slow: Callable[[], Any], quick: Callable[[], Any]) -> None:
    """`quick` returns while `slow` is at the server."""
    thread = threading.Thread(target=slow)
    thread.start()
    try:
        assert gate.entered.wait(60)
        quick()
        assert thread.is_alive()
    finally:
        gate.opened.set()
        thread.join(60)


def test_remembered_vectors(gate: Gate, tmp_path: Path) -> None:
    real = words_encoder()

    def encode(texts: Sequence[str]) -> NDArray[Any]:
        for text in texts:
            gate.hold(text)
        return real(texts)

    with Endpoint(encode) as server:
        settings = Settings(embedder=f"openai:mini@{server.url}")
        Index.build([Document("d", "Ships sail.", "Ships")], tmp_path / "i", settings=settings).close()
        stored = open_current(Layout(tmp_path / "i")).manifest.models["embedder"]
        questions = QueryEmbedder(stored, settings)
        first = questions.vectors(["ships", "sails"])

        def quick() -> None:
            questions.load()
            assert np.array_equal(questions.vectors(["sails", "ships"]), first[::-1])

            with pytest.raises(DeadlineExceeded, match="did not embed"):
                questions.vectors(["another"], 0.1)

        while_busy(gate, lambda: questions.vectors([SLOW]), quick)
        assert questions.vectors([SLOW]).shape == (1, first.shape[1])
        gate.opened.clear()
        with pytest.raises(DeadlineExceeded, match="did not embed"):
            questions.vectors([f"{SLOW} once more"], 0.3)
        gate.opened.set()
        assert np.array_equal(questions.vectors(["sails", "ships"], 60), first[::-1])
        questions.close()


def test_an_answer_ends_at_the_deadline(tmp_path: Path) -> None:
    with Chat(lambda _: "word " * 200, pause=0.05) as server:
        spec = f"openai:mini@{server.url}"
        with Index.build([Document("d", "Ships sail.", "Ships")], tmp_path / "i") as index:
            # All words take ten seconds, and a busy machine takes one for the first.
            found = index.ask("Ships?", llm=spec, deadline=4.0)
            assert found.finish == "time" and 0 < len(found.text.split()) < 200
            assert any("cut (time)" in warning for warning in found.warnings)
            with index.inspect._opened.models.lend(spec), pytest.raises(DeadlineExceeded):
                index.ask("Ships?", llm=spec, deadline=0.1)
