"""A model on this machine, the same one behind an API on loopback, and rules: built, priced and compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_end_to_end import ketrag
from tests.process import ROOT
from tests.support.llama_server import LlamaServer

from ketrag_fast.kernels.text import count_tokens

MODEL = "tiny"
LIMITS = ("--llm-tokens", "48", "--on-barren", "continue", "--threads", "1")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    found = (ROOT / "examples" / "polar" / "articles").glob("*")
    articles = sorted(found)[:4]
    rows = [
        {"_id": path.stem, "title": path.stem, "text": path.read_text("utf-8")[:300]} for path in articles
    ]
    (folder / "set").mkdir()
    (folder / "set" / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    question = {"_id": "q", "text": f"Who knew {articles[0].stem}?", "metadata": {"answers": ["Amundsen"]}}
    (folder / "set" / "queries.jsonl").write_text(json.dumps(question))
    (folder / "prices.toml").write_text(f'date = "2026-11-01"\n[models.{MODEL}]\ninput = 1.0\noutput = 4.0\n')
    return folder


@pytest.fixture(scope="module")
def server(tiny_gguf: Path) -> Iterator[LlamaServer]:
    with LlamaServer(tiny_gguf, name=MODEL) as running:
        yield running


def test_local_against_api(place: Path, tiny_gguf: Path, server: LlamaServer) -> None:
    argv = (
        "--build", f"local: llm=llama-cpp:{tiny_gguf}",
        "--build", f"api: llm=openai:{MODEL}@{server.url}",
        "--build", "rules: llm=heuristic",
        "--build", "gone: llm=openai:other@http://127.0.0.1:9/v1",
    )  # fmt: skip
    code, out, err = ketrag(
        "bench",
        "builds",
        "set",
        *argv,
        *LIMITS,
        "--budget",
        "400",
        "--html",
        "page.html",
        "--json",
        cwd=place,
    )
    assert code == 3, err  # `gone` cannot be reached
    data = json.loads(out)
    local, api, rules, gone = data["configurations"]
    assert [c["status"] for c in (local, api, rules, gone)] == ["ok", "ok", "ok", "not run"]
    for built in (local, api):
        cost = built["cost"]
        assert cost["calls"] >= built["counts"]["core_chunks"]
        assert cost["tokens_in"] > 300 * cost["calls"]
        assert cost["tokens_out"] > 0
    assert local["cost"]["usd"]["total"] == 0
    assert api["cost"]["usd"]["total"] == pytest.approx(
        (api["cost"]["tokens_in"] + 4 * api["cost"]["tokens_out"]) / 1e6
    )
    asked = [body for path, body in server.requests if path.endswith("/chat/completions")]
    assert len(asked) >= api["cost"]["calls"]
    assert (rules["cost"]["calls"], rules["cost"]["tokens_in"]) == (0, 0)
    assert rules["counts"]["entities"] > 0
    pairs = [(entry["a"], entry["b"]) for entry in data["overlaps"]]
    assert pairs == [("local", "api"), ("local", "rules"), ("api", "rules")]
    page = (place / "page.html").read_text("utf-8")
    assert "gone" in page
    assert "What the graphs have in common" in page


def _estimate(place: Path, llm: str, *more: str, of: str = "set") -> dict[str, Any]:
    code, out, err = ketrag("estimate", of, "--llm", llm, *LIMITS, *more, "--json", cwd=place)
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_an_estimate_times_the_model_and_learns_from_the_build(place: Path, tiny_gguf: Path) -> None:
    llm = f"llama-cpp:{tiny_gguf}"
    said = _estimate(place, llm, "-i", "idx", "--calls", "2")
    assert said["basis"]["tokens_in"] == "from timed calls"
    assert said["seconds"] > said["stages"]["language model"] > 0
    code, out, err = ketrag("index", "set", "-i", "idx", "--llm", llm, *LIMITS, "--json", cwd=place)
    assert code in (0, 3), err
    report = json.loads(out)
    rows = {row["name"]: row for row in report["estimate"]}
    assert rows["core_chunks"]["off_percent"] == 0
    assert abs(rows["tokens_in"]["off_percent"]) < 15
    same = _estimate(place, llm, "-i", "idx")
    assert (same["calls"], same["tokens_in"], same["core_chunks"]) == (0, 0, report["usage"]["core_chunks"])
    (place / "other").mkdir()
    for line in (place / "set" / "corpus.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        with (place / "other" / "corpus.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row | {"_id": f"other {row['_id']}"}) + "\n")
    again = _estimate(place, llm, "-i", "idx", of="other")
    assert again["basis"]["tokens_in"] == "from the last build"
    for name in ("calls", "tokens_in", "tokens_out"):
        assert again[name] == pytest.approx(report["usage"][name], rel=0.15), name


def test_an_endpoint_is_asked_only_when_told(place: Path, server: LlamaServer) -> None:
    llm = f"openai:{MODEL}@{server.url}"
    before = len(server.requests)
    said = _estimate(place, llm)
    assert len(server.requests) == before
    assert said["seconds"] is None
    told = _estimate(place, llm, "--spend", "--calls", "9")  # more than there are chunks: all are sent
    assert told["seconds"] is not None
    assert told["basis"]["tokens_in"] == "from timed calls"
    assert told["calls"] == said["calls"] > 0
    bodies = [body for path, body in server.requests[before:] if path.endswith("/chat/completions")]
    sent = ["".join(message["content"] for message in body["messages"]) for body in bodies]
    assert len(sent) == said["calls"]
    # Counted in cl100k tokens, with a few for the form of a chat.
    counted = int(count_tokens(sent).sum())
    assert counted < said["tokens_in"] <= counted + 20 * len(sent)


def test_a_sweep_reads_no_chunk_twice_and_tells_each_point_its_own(place: Path, server: LlamaServer) -> None:
    before = len(server.requests)
    llm = f"openai:{MODEL}@{server.url}"
    code, out, err = ketrag(
        "bench", "sweep", "set", "--vary", "core_ratio=0.25,0.5,1", "--llm", llm, *LIMITS, "--json", cwd=place
    )
    assert code == 0, err
    quarter, half, whole = (c["cost"] for c in json.loads(out)["configurations"])
    assert len(server.requests) - before <= whole["calls"] + 4  # and some to ask what is served
    assert 0 < quarter["tokens_in"] < half["tokens_in"] < whole["tokens_in"]
    assert quarter["calls"] < half["calls"] < whole["calls"]


def test_systems_are_judged_by_the_answers_of_a_model(place: Path, server: LlamaServer) -> None:
    """Random weights answer nothing sensible: their answers are asked for, kept, and scored all the same."""
    before = len(server.requests)
    llm = f"openai:{MODEL}@{server.url}"
    argv = ("bench", "systems", "set", "--systems", "default,g2cons", "--budget", "300")
    code, out, err = ketrag(*argv, "--answer-with", llm, "--html", "answers.html", "--json", cwd=place)
    assert code == 0, err
    asked = [path for path, _ in server.requests[before:] if path.endswith("/chat/completions")]
    assert len(asked) >= 2
    rows = [row for configuration in json.loads(out)["configurations"] for row in configuration["rows"]]
    assert len(rows) == 2
    for row in rows:
        assert 0.0 <= row["em"] <= row["f1"] <= 1.0
    assert "EM" in (place / "answers.html").read_text("utf-8")
