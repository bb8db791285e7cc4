"""The command in this process; the real process in tests/cli."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast.apps.cli.main import main
from tests.process import command


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Ada\n\nAda wrote programs.")


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["index"], 2, "no source was named"),
        (["index", "docs", "--chunk-tokens", "many"], 2, "chunk_tokens: 'many' is not a whole number"),
        (["index", "docs", "--system", "rag"], 2, "unknown system 'rag'"),
        (["index", "nowhere"], 1, "no such file or folder: nowhere"),
        (["index", "docs", "--limit-seconds", "0"], 130, "stopped"),
        (["retrieve", "Who?"], 4, "no index in .ketrag"),
        (["retrieve"], 2, "either a QUERY or --queries"),
        (["retrieve", " "], 2, "the question is empty"),
        (["retrieve", "Who?", "--budget", "-1"], 2, "budget: -1 is not a whole number from 0 up"),
        (["retrieve", "--queries", "nowhere.jsonl"], 1, "cannot read nowhere.jsonl"),
        (["stats", "-i", "docs"], 4, "no index in docs"),
        (["stats", "--config", "nowhere.toml"], 2, "settings file nowhere.toml is missing"),
    ],
)
def test_errors(tmp_path: Path, argv: list[str], code: int, message: str) -> None:
    found, out, err = command(*argv, cwd=tmp_path)
    assert (found, out) == (code, "")
    assert err.startswith("ketrag: error: ")
    assert message in err
    found, out, err = command(*argv, "--json", cwd=tmp_path)
    assert (found, out) == (code, "")
    data = json.loads(err)
    assert data["schema"] == "ketrag/error/1"
    assert message in data["message"]


@pytest.mark.parametrize("argv", [["bogus"], [], ["index", "--bogus"], ["config"], ["stats", "-q", "-v"]])
def test_wrong_usage(tmp_path: Path, argv: list[str]) -> None:
    done = command(*argv, cwd=tmp_path)
    assert (done.code, done.out) == (2, "")


def test_many_queries_in_input_order(tmp_path: Path) -> None:
    command("index", "docs", cwd=tmp_path)
    lines = ['{"_id": 7, "text": "one"}', "", '{"text": "two"}', '{"_id":"x","text":" "}', "{broken", '["a"]']
    lines += ['{"_id":"l","text":"\\ud800"}', '{"_id":"z","text":"last"}']
    (tmp_path / "q.jsonl").write_bytes("\n".join(lines).encode() + b"\n\xff\xfe\n")
    code, out, err = command("retrieve", "--queries", "q.jsonl", cwd=tmp_path)
    found = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (3, "")
    assert [entry["query_id"] for entry in found] == ["7", None, "x", None, None, "l", "z", None]
    codes = [entry.get("code") for entry in found]
    assert codes == [None, None, "empty_query", "document", "document", "document", None, "document"]
    assert "line 5 is not JSON" in found[3]["message"]
    assert found[6]["question"] == "last"


def test_standard_input_is_answered_line_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command("index", "docs", cwd=tmp_path)
    seen: list[int] = []

    def lines() -> Any:
        for number in range(3):
            seen.append(capsys.readouterr().out.count("\n"))
            yield json.dumps({"_id": str(number), "text": "Ada?"}).encode()

    class Input:
        buffer = lines()

    monkeypatch.setattr(sys, "stdin", Input())
    assert main(["retrieve", "--queries", "-"]) == 0
    assert seen == [0, 1, 1]  # each answer was out before the next line was asked for


def test_config_show(tmp_path: Path) -> None:
    (tmp_path / "ketrag.toml").write_text("knn-k = 0\nbudget = 100\n")
    variables = {"KETRAG_BUDGET": "0", "KETRAG_INDEX": "elsewhere"}
    argv = ("config", "show", "--system", "ket-rag", "--seed", "7", "--json")
    code, out, _ = command(*argv, cwd=tmp_path, **variables)
    data = json.loads(out)
    assert code == 0
    assert data["index"] == {"path": "elsewhere", "origin": "environment"}
    found = {name: (entry["value"], entry["origin"]) for name, entry in data["settings"].items()}
    assert found["knn_k"] == (0, "file")
    assert found["budget"] == (0, "environment")
    assert found["seed"] == (7, "flag")
    assert found["chunk_tokens"] == (1200, "system ket-rag")
    assert found["offline"] == (False, "default")
    command("index", "docs", "--core-ratio", "0", cwd=tmp_path)
    _, out, _ = command("config", "show", cwd=tmp_path)
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert rows["core_ratio"] == ["0.0", "index"]
    assert rows["sparse_model"] == ["none", "index"]


def test_colour_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, coloured in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.delenv("NO_COLOR", raising=False)
        assert main(["stats"]) == 4
        assert ("\033[" in stream.getvalue()) is coloured
