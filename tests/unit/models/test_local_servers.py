"""`ollama:MODEL` and `lmstudio:MODEL` are names of the endpoints that these programs open on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.base.config.local_servers import SERVERS, spell_out
from ketrag_fast.errors import ConfigError
from tests.process import ketrag
from tests.support.chat import Chat
from tests.support.endpoint import Endpoint, words_encoder

pytestmark = pytest.mark.usefixtures("loopback")
DOCUMENTS = [Document("fram", "The Fram was built by Colin Archer.", "Fram")]
LISTED = (
    {"id": "llama3.2:latest", "object": "model", "created": 1727700000, "owned_by": "library"},
    {"id": "nomic-embed-text:latest", "object": "model", "created": 1727700000, "owned_by": "library"},
)
"""How Ollama lists its models: with a tag, which a request may leave out, and without a context length."""


@pytest.mark.parametrize(
    ("spec", "endpoint"),
    [
        ("ollama:llama3.2", "openai:llama3.2@http://127.0.0.1:11434/v1"),
        ("ollama:hf.co/x/y:Q4_K_M", "openai:hf.co/x/y:Q4_K_M@http://127.0.0.1:11434/v1"),
        ("ollama:nomic#query: |text: ", "openai:nomic@http://127.0.0.1:11434/v1#query: |text: "),
        ("lmstudio:qwen", "openai:qwen@http://127.0.0.1:1234/v1"),
        ("openai:m@https://host/v1", "openai:m@https://host/v1"),
        ("ollama", "ollama"),
        ("ollama: ", "ollama: "),
        (None, None),
    ],
)
def test_a_short_name_is_the_address_of_the_program(spec: str | None, endpoint: str | None) -> None:
    assert spell_out(spec) == endpoint


def test_settings_hold_the_address_and_others_are_refused() -> None:
    settings = Settings(llm="ollama:llama3.2", embedder="lmstudio:nomic", answer_llm="ollama:qwen")
    assert settings.llm == settings.given["llm"] == "openai:llama3.2@http://127.0.0.1:11434/v1"
    assert settings.embedder == "openai:nomic@http://127.0.0.1:1234/v1"
    assert settings.answer_llm == "openai:qwen@http://127.0.0.1:11434/v1"
    with pytest.raises(ConfigError, match="ollama:MODEL"):
        Index.build(DOCUMENTS, "never", settings=Settings(llm="ollama:"))


def test_an_answer_and_vectors_of_such_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Chat(lambda _: "Colin Archer [1].", listed=LISTED) as chat, Endpoint(words_encoder()) as vectors:
        monkeypatch.setitem(SERVERS, "ollama", chat.url)
        monkeypatch.setitem(SERVERS, "lmstudio", vectors.url)
        settings = Settings(embedder="lmstudio:nomic-embed-text")
        with Index.build(DOCUMENTS, tmp_path / "index", settings=settings) as index:
            assert index.retrieve("Who built the Fram?", mode="text").passages[0].document == "fram"
            answer = index.ask("Who built the Fram?", llm="ollama:llama3.2")
            assert answer.text == "Colin Archer [1]."
            assert index.stats()["settings"]["embedder"] == f"openai:nomic-embed-text@{vectors.url}"
        with Index.open(tmp_path / "index", settings=settings) as again:
            assert again.retrieve("Who built the Fram?", mode="text").passages
        assert {request["model"] for request in chat.requests} == {"llama3.2"}


def test_a_settings_file_of_a_folder_needs_confirmation(tmp_path: Path) -> None:
    Index.build(DOCUMENTS, tmp_path / "index").close()
    (tmp_path / "ketrag.toml").write_text('answer_llm = "ollama:llama3.2"\n')
    done = ketrag("ask", "-i", "index", "Who built the Fram?", cwd=tmp_path)
    assert done.code == 5
    assert "ketrag.toml:1: answer_llm names the endpoint http://127.0.0.1:11434/v1" in done.err
