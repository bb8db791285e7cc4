"""A reply to an assistant names the definitions of the found files whose names say what the query says."""

from __future__ import annotations

from pathlib import Path

from ketrag_fast import Index, Settings
from ketrag_fast.apps.server.mcp_text import Paths, search_reply

CODE = '''"""Guessing encodings of JSON bytes: UTF-8, UTF-16 and UTF-32."""

_NULL = b"\\x00"  # the bytes of JSON that guess the encoding
_NULL2 = _NULL * 2


def read(path):
    return path.read_bytes()


def guess_json_utf(data):
    sample = data[:4]
    return "utf-8" if sample.count(_NULL) == 0 else "utf-16"
'''


def test_other_definitions_have_their_line(tmp_path: Path) -> None:
    (tmp_path / "utils.py").write_text(CODE)
    (tmp_path / "notes.md").write_text("# Encoding\n\nWe guess the encoding of JSON bytes.\n")
    query = "guess the encoding of JSON bytes"
    with Index.build(tmp_path, tmp_path / ".ketrag", settings=Settings(threads=1)) as index:
        hits = index.search(query, 1, glob="*.py")
        found = index.inspect.definitions("utils.py", query)
        assert found == ((11, "guess_json_utf"),)
        assert index.inspect.definitions("notes.md", query) == ()
        assert index.inspect.definitions("none.py", query) == ()
        assert "also in" not in search_reply(hits, 8, 2000, Paths(local=True), lambda _: found).text  # shown
        reply = search_reply(hits, 8, 2000, Paths(local=True), lambda _: ((70, "guess_utf"),))
        assert "utils.py: guess_utf:70\n" in reply.text
        assert "also in" not in search_reply(hits, 8, 2000, Paths(local=True)).text
