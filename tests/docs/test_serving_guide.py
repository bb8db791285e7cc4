"""The Python block of docs/how-to/serve.md gets an answer from a running service."""

from __future__ import annotations

import re
from pathlib import Path

from ketrag_fast import Document, Index
from tests.process import ROOT, python
from tests.support.chat import Chat
from tests.support.parts import part
from tests.support.service import command

part("openai", "dev")

PAGE = ROOT / "docs" / "how-to" / "serve.md"


def test_the_openai_client_gets_an_answer_with_the_token(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    Index.build([Document("a", "The Fram was built by Colin Archer.")], tmp_path / "index").close()
    (tmp_path / "token").write_text("secret-of-the-test\n", "utf-8")
    with Chat(lambda _: "Colin Archer [1].") as chat:
        options = ("-i", "index", "--token-file", "token", "--llm", f"openai:mini@{chat.url}")
        with command(*options, cwd=tmp_path) as (port, _):
            code = code.replace("127.0.0.1:8765", f"127.0.0.1:{port}")
            done = python(code, cwd=tmp_path)
            assert done.code == 0, done.err
            assert "Colin Archer [1]" in done.out
            (tmp_path / "token").write_text("wrong\n", "utf-8")
            done = python(code, cwd=tmp_path)
            assert done.code == 1
            assert "401" in done.err
