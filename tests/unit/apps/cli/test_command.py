"""The command in this process, on an index of two small stages; the real process in tests/cli."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import pytest

from ketrag_fast.apps.cli.main import main
from ketrag_fast.base.config import Settings
from ketrag_fast.build.runner import build
from ketrag_fast.errors import EmptyQuery, ModeUnavailable
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from ketrag_fast.types import BuildReport, Context, Passage
from tests.unit.build.small_stages import STAGES


class LittleIndex:
    """The facade's shape over the real runner; its answers repeat the question."""

    report: BuildReport
    interrupt = False

    def __init__(self, settings: Settings | None, number: int) -> None:
        self.settings = settings or Settings()
        self.number = number

    @classmethod
    def build(
        cls, sources: Any, path: Path, *, settings: Settings, replace: bool, examples: Any, **more: Any
    ) -> Self:
        assert examples is None
        if cls.interrupt:
            raise KeyboardInterrupt
        report = build(path, sources, STAGES, settings, others="drop" if replace else "read", **more)
        self = cls(settings, report.generation)
        self.report = report
        return self

    @classmethod
    def open(cls, path: Path, *, settings: Settings | None = None, deadline: float | None = None) -> Self:
        return cls(settings, open_current(Layout(path)).number)

    def retrieve(self, question: str, *, explain: bool = False) -> Context:
        if not question.strip():
            raise EmptyQuery("the question is empty")
        if self.settings.mode == "ket":
            raise ModeUnavailable("mode ket needs a skeleton", hint="give one with --llm")
        budget = self.settings.budget
        if "nothing" in question:
            return Context(question, "walk", budget, 0, "", reason="no_match", warnings=("no vectors",))
        why = ("shares ada",) if explain else ()
        passage = Passage(1, "chunk", 0, 0, "a.md", "Ada é", 0, 3, 1.5, 2, "walk", "Ada", why=why)
        return Context(question, "walk", budget, 2, "Ada é\nAda\n", (passage,), generation=self.number)

    def retrieve_many(self, questions: Sequence[str], *, explain: bool = False) -> list[Context]:
        if any("boom" in question for question in questions):
            raise EmptyQuery("boom")
        return [self.retrieve(question, explain=explain) for question in questions]

    def stats(self) -> dict[str, Any]:
        about = {"documents": 2, "edges": {"knn": 3}, "failures": [], "generation": self.number}
        spec, address = "openai:mini@http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"
        one = {"setting": "embedder", "spec": spec, "address": address, "trusted": False}
        return {**about, "endpoints": [one]}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture(autouse=True)
def facade(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[LittleIndex]:
    module = ModuleType("ketrag_fast.index")
    module.Index = LittleIndex  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ketrag_fast.index", module)
    monkeypatch.chdir(tmp_path)
    for name in ("KETRAG_INDEX", "KETRAG_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Ada\n\nAda wrote programs.")
    return LittleIndex


Run = pytest.CaptureFixture[str]


def ketrag(capsys: Run, *argv: str) -> tuple[int, str, str]:
    code = main(argv)
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def test_index_then_again(capsys: Run) -> None:
    code, out, err = ketrag(capsys, "index", "docs")
    assert (code, err) == (0, "")
    assert "1 document (1 added, 0 changed, 0 removed), generation 1" in out
    code, out, err = ketrag(capsys, "index")
    assert code == 0
    assert "nothing was done" in out
    code, out, _ = ketrag(capsys, "index", "docs", "--json")
    assert json.loads(out)["changed"] is False
    assert json.loads(out)["schema"] == "ketrag/index/1"


def test_index_in_part(capsys: Run, tmp_path: Path) -> None:
    (tmp_path / "docs" / "bad.txt").write_bytes(b"\0\0")
    code, out, err = ketrag(capsys, "index", "docs")
    assert code == 3
    assert "bad.txt: not text" in err
    assert "bad.txt" not in out
    code, out, err = ketrag(capsys, "index", "docs", "--json", "-q")
    assert (code, err) == (3, "")
    assert json.loads(out)["failures"][0]["document"] == "bad.txt"


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
def test_errors(capsys: Run, argv: list[str], code: int, message: str) -> None:
    found, out, err = ketrag(capsys, *argv)
    assert (found, out) == (code, "")
    assert err.startswith("ketrag: error: ")
    assert message in err
    found, out, err = ketrag(capsys, *argv, "--json")
    assert (found, out) == (code, "")
    data = json.loads(err)
    assert data["schema"] == "ketrag/error/1"
    assert message in data["message"]


@pytest.mark.parametrize("argv", [["bogus"], [], ["index", "--bogus"], ["config"], ["stats", "-q", "-v"]])
def test_wrong_usage(capsys: Run, argv: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert capsys.readouterr().out == ""


def test_interrupt_says_how_to_go_on(capsys: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LittleIndex, "interrupt", True)
    code, out, err = ketrag(capsys, "index", "docs")
    assert (code, out) == (130, "")
    assert "run the same command again" in err
    code, _, err = ketrag(capsys, "index", "docs", "--json")
    assert (code, json.loads(err)["code"]) == (130, "interrupted")


def test_retrieve(capsys: Run) -> None:
    ketrag(capsys, "index", "docs")
    code, out, err = ketrag(capsys, "retrieve", "Who is Ada?", "--explain")
    assert (code, err) == (0, "")
    assert out.startswith(
        "Ada é\nAda\n\nSources (walk, 2 of 4,000 tokens):\n  [1] a.md:0-3  Ada é  (1.500)\n"
    )
    assert "shares ada" in out
    code, out, _ = ketrag(capsys, "retrieve", "Who is Ada?", "--json", "--budget", "0")
    data = json.loads(out)
    assert (code, data["schema"], data["budget"]) == (0, "ketrag/context/1", 0)
    assert data["passages"][0]["unit"] == {"kind": "chunk", "id": 0}
    assert data["query_id"] is None
    code, out, err = ketrag(capsys, "retrieve", "nothing")
    assert (code, out) == (0, "")
    assert "no passages: nothing in the index matches the query" in err
    assert "no vectors" in err
    code, _, err = ketrag(capsys, "retrieve", "Ada?", "--mode", "ket")
    assert code == 4
    assert "hint: give one with --llm" in err


def test_many_queries_in_input_order(capsys: Run, tmp_path: Path) -> None:
    ketrag(capsys, "index", "docs")
    lines = ['{"_id": 7, "text": "one"}', "", '{"text": "two"}', '{"_id":"x","text":" "}', "{broken", '["a"]']
    lines += ['{"_id":"b","text":"boom"}', '{"_id":"l","text":"\\ud800"}', '{"_id":"z","text":"last"}']
    (tmp_path / "q.jsonl").write_text("\n".join(lines))
    code, out, err = ketrag(capsys, "retrieve", "--queries", "q.jsonl")
    found = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (3, "")
    assert [entry["query_id"] for entry in found] == ["7", None, "x", None, None, "b", "l", "z"]
    codes = [entry.get("code") for entry in found]
    assert codes == [None, None, "empty_query", "document", "document", "empty_query", "document", None]
    assert "line 5 is not JSON" in found[3]["message"]
    assert found[7]["question"] == "last"


def test_standard_input_is_answered_line_by_line(capsys: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ketrag(capsys, "index", "docs")
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


def test_stats(capsys: Run) -> None:
    ketrag(capsys, "index", "docs")
    code, out, _ = ketrag(capsys, "stats")
    assert (code, out) == (
        0,
        "documents: 2\nedges:\n  knn: 3\nfailures: none\ngeneration: 1\nendpoints: 1\n"
        "  http://127.0.0.1:9/v1 embeds queries (not confirmed: nothing is sent there)\n",
    )
    _, out, _ = ketrag(capsys, "stats", "--json")
    assert json.loads(out)["schema"] == "ketrag/stats/1"


def test_config_show(capsys: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ketrag.toml").write_text("knn-k = 0\nbudget = 100\n")
    monkeypatch.setenv("KETRAG_BUDGET", "0")
    monkeypatch.setenv("KETRAG_INDEX", "elsewhere")
    code, out, _ = ketrag(capsys, "config", "show", "--system", "ket-rag", "--seed", "7", "--json")
    data = json.loads(out)
    assert code == 0
    assert data["index"] == {"path": "elsewhere", "origin": "environment"}
    found = {name: (entry["value"], entry["origin"]) for name, entry in data["settings"].items()}
    assert found["knn_k"] == (0, "file")
    assert found["budget"] == (0, "environment")
    assert found["seed"] == (7, "flag")
    assert found["chunk_tokens"] == (1200, "system ket-rag")
    assert found["offline"] == (False, "default")
    ketrag(capsys, "index", "docs", "--core-ratio", "0")
    _, out, _ = ketrag(capsys, "config", "show")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert rows["core_ratio"] == ["0.0", "index"]
    assert rows["max_df_ratio"] == ["none", "index"]


def test_colour_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, coloured in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.delenv("NO_COLOR", raising=False)
        assert main(["stats"]) == 4
        assert ("\033[" in stream.getvalue()) is coloured
