"""`ketrag bench advise`: its output, and wrong use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.lab.advice.test_probes import library

from ketrag_fast import Index
from ketrag_fast.apps.cli.main import main


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("advise") / "index"
    Index.build(library(20), path).close()
    return path


def test_json_and_page(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    html = tmp_path / "advice.html"
    assert (
        main(["bench", "advise", "-i", str(index), "--questions", "30", "--json", "--html", str(html)]) == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "ketrag/advice/1"
    assert [one["question"] for one in told["findings"]] == [
        "Do questions need hops?",
        "Which mode?",
        "Which budget?",
        "Which size of chunks?",
        "Does an embedding model help?",
    ]
    assert {share["mode"] for share in told["shares"]} == {"bm25", "walk"}
    assert html.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_text(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "advise", "-i", str(index), "-q"]) == 0
    printed = capsys.readouterr()
    assert "Which mode?" in printed.out
    assert printed.err == ""


@pytest.mark.parametrize("questions", ["0", "-1", "many", "10001", "٣"])
def test_a_wrong_number(index: Path, questions: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "advise", "-i", str(index), "--questions", questions]) == 2
    assert "--questions" in capsys.readouterr().err


def test_no_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "advise", "-i", str(tmp_path / "none")]) == 4
    assert "none" in capsys.readouterr().err
