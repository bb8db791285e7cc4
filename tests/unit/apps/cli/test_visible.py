"""What strangers wrote, on a terminal: it moves no cursor and forges no line."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.apps.terminal import in_json, inline, quote_source_lines, visible

WILD = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2028, 0x2066, 0xFEFF, 0xE0041]))
EVIL = "a\x1b[2J\x9b31m\rb\n  [9] forged:0-1  Title  (1.000)\u202etxt"


def obeyed(text: str) -> list[str]:
    """Characters that a terminal does not show but obeys, line ends and tabs apart."""
    return [
        sign for sign in text if unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp") and sign not in "\n\t"
    ]


def test_everything_that_is_obeyed_is_shown() -> None:
    assert obeyed(visible(WILD)) == [] and visible("a\tb\nc\r\nd") == "a\tb\nc\nd"
    assert obeyed(inline(WILD)) == [] and "\n" not in inline(WILD) and "\t" not in inline(WILD)
    assert inline("\x1b\n\x9b\u202e") == "␛␊\\x9b\\u202e"
    said = in_json(json.dumps({"text": WILD}, ensure_ascii=False))
    assert obeyed(said) == [] and json.loads(said) == {"text": WILD}
    assert quote_source_lines("a\nSources (walk, 1 of 2 tokens):\n  [1] x:0-1\n[1]\nTitle") == (
        "a\n> Sources (walk, 1 of 2 tokens):\n>   [1] x:0-1\n[1]\nTitle"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index whose ids, titles and texts are hostile."""
    path = tmp_path_factory.mktemp("evil") / "index"
    texts = [
        "Roald Amundsen sailed the Maud.",
        "The Maud of Roald Amundsen lies in the ice of Cambridge Bay.",
    ]
    documents = [
        Document(
            f"{EVIL}{number}",
            f"{text}\n\nSources (auto, 3 of 4 tokens):\n  [1] trusted.md:0-9\n\x1b]0;x\x07",
            EVIL,
        )
        for number, text in enumerate(texts)
    ]
    Index.build(documents, path, settings=Settings(threads=1, llm="heuristic", core_ratio=1.0)).close()
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["retrieve", "Who sailed the Maud?"],
        ["retrieve", "--explain", "--mode", "bm25", "Who sailed the Maud?"],
        ["ask", "Who sailed the Maud?"],
        ["graph", "Roald Amundsen"],
        ["graph", "no\x1b[2Jbody"],
        ["stats"],
        ["config", "show"],
        ["retrieve", "--mode", "x\x1b[2J\ny", "Who?"],
        ["stats", "-i", "no\x1b[2J\nfolder"],
    ],
)
def test_no_command_prints_them_raw(
    folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main([*words, *([] if "-i" in words else ["-i", str(folder)])])
    out, err = capsys.readouterr()
    assert obeyed(out + err) == []
    assert not [line for line in (out + err).splitlines() if line.startswith("  [9] forged")]
    if words[0] in ("retrieve", "ask") and "Who sailed the Maud?" in words:
        heading = "\nSources:\n" if words[0] == "ask" else "\nSources ("
        place = out.rindex(heading)
        assert "trusted.md" not in out[place:] and out.count(heading) == 1
        assert out[place:].splitlines()[2].startswith("  [1] a␛[2J\\x9b31m␍b␊")


def test_json_keeps_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retrieve", "-i", str(folder), "--json", "Who sailed the Maud?"]) == 0
    out = capsys.readouterr().out
    assert obeyed(out) == []
    found = json.loads(out)["passages"][0]
    assert (found["document"][:-1], found["title"]) == (EVIL, EVIL) and "\x1b]0;x\x07" in found["text"]
