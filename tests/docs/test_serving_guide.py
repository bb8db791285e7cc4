"""The blocks of docs/how-to/serve.md and docs/reference/http-api.md get answers from a running service."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ketrag_fast import Document, Index, Settings
from tests.process import ROOT, python
from tests.support.chat import Chat
from tests.support.parts import part
from tests.support.service import command

part("openai", "checks")

ADDRESS = "127.0.0.1:8765"


def _blocks(page: str, kind: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text("utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@contextmanager
def _service(folder: Path, *options: str) -> Iterator[int]:
    """Run the command with a scripted LLM over an index of one document."""
    documents = [Document("a", "The Fram was built by Colin Archer.")]
    Index.build(documents, folder / "index", settings=Settings(modes="auto,text")).close()
    with Chat(lambda _: "Colin Archer [1].") as chat:
        options = ("-i", "index", "--llm", f"openai:mini@{chat.url}", *options)
        with command(*options, cwd=folder) as (port, _):
            yield port


def test_the_openai_client_gets_an_answer_with_the_token(tmp_path: Path) -> None:
    (code,) = _blocks("how-to/serve.md", "python")
    (tmp_path / "token").write_text("secret-of-the-test\n", "utf-8")
    (tmp_path / "token").chmod(0o600)  # as the guide does
    with _service(tmp_path, "--token-file", "token") as port:
        code = code.replace(ADDRESS, f"127.0.0.1:{port}")
        done = python(code, cwd=tmp_path)
        assert done.code == 0, done.err
        assert "Colin Archer [1]" in done.out
        (tmp_path / "token").write_text("wrong\n", "utf-8")
        done = python(code, cwd=tmp_path)
        assert done.code == 1
        assert "401" in done.err


def test_the_blocks_of_the_service_page_get_answers(tmp_path: Path) -> None:
    (code,) = _blocks("reference/http-api.md", "python")
    (requests,) = _blocks("reference/http-api.md", "sh")
    with _service(tmp_path) as port:
        done = python(code.replace(ADDRESS, f"127.0.0.1:{port}"), cwd=tmp_path)
        assert done.code == 0, done.err
        assert done.out.splitlines()[0] == "Colin Archer [1]."
        for request in requests.splitlines():
            line = request.replace(ADDRESS, f"127.0.0.1:{port}").replace(
                "curl -s", "curl -s --fail --noproxy *"
            )
            replied = subprocess.run(
                ["bash", "-c", f"set -f; {line}"], capture_output=True, text=True, check=True
            )
            assert "Colin Archer" in replied.stdout


def test_the_reference_lists_every_field_and_tool() -> None:
    """docs/reference/chat-and-mcp.md has a row for each field and each parameter of a tool."""
    part("mcp", "server")
    from ketrag_fast.apps.server.mcp_tools import _Tools, tool_calls
    from ketrag_fast.apps.server.openai_protocol import _RETRIEVAL, CHAT, EMBEDDINGS
    from ketrag_fast.apps.server.options import ServerOptions
    from ketrag_fast.apps.server.service import OpenIndexes

    text = (ROOT / "docs" / "reference" / "chat-and-mcp.md").read_text("utf-8")
    chat, embeddings, tools = re.split(r"^## ", text, flags=re.MULTILINE)[1:]

    def rows(section: str) -> set[str]:
        cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
        return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}

    assert {*CHAT, *_RETRIEVAL} <= rows(chat)
    assert rows(embeddings) == set(EMBEDDINGS)
    calls = tool_calls(_Tools(OpenIndexes(ServerOptions(indexes={})), local=True))
    parameters = {name for call in calls.values() for name in call.__annotations__ if name != "return"}
    assert rows(tools) == {*calls, *parameters, "structured"}
