"""A model on this machine, the same one behind an API on loopback, and rules: built, priced and compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.process import ROOT, command
from tests.support.llama_server import LlamaServer

pytestmark = pytest.mark.usefixtures("loopback")

MODEL = "tiny"
LIMITS = ("--llm-tokens", "48", "--threads", "1")


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
    code, out, err = command(
        "bench",
        "builds",
        "set",
        *argv,
        *LIMITS,
        "--budget",
        "400",
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


def test_a_sweep_reads_no_chunk_twice_and_tells_each_point_its_own(place: Path, server: LlamaServer) -> None:
    before = len(server.requests)
    llm = f"openai:{MODEL}@{server.url}"
    code, out, err = command(
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
    code, out, err = command(*argv, "--answer-with", llm, "--json", cwd=place)
    assert code == 0, err
    asked = [path for path, _ in server.requests[before:] if path.endswith("/chat/completions")]
    assert len(asked) >= 2
    rows = [row for configuration in json.loads(out)["configurations"] for row in configuration["rows"]]
    assert len(rows) == 2
    for row in rows:
        assert 0.0 <= row["em"] <= row["f1"] <= 1.0
