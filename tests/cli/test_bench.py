"""`ketrag bench` through the real command, on a small data set and without a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.test_end_to_end import CORPUS
from tests.process import command

QUESTIONS = (
    ("q1", "Where was the designer of the Analytical Engine born?", ["London"]),
    ("q2", "What is bread baked from?", ["flour, water and yeast"]),
    ("q3", "On which river lies the capital of England?", ["Thames"]),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    data = folder / "set"
    data.mkdir()
    rows = [{"_id": name, "title": title, "text": text} for name, (title, text) in CORPUS.items()]
    (data / "corpus.jsonl").write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    asked = [{"_id": n, "text": text, "metadata": {"answers": a}} for n, text, a in QUESTIONS]
    (data / "queries.jsonl").write_text("\n".join(json.dumps(q) for q in asked), "utf-8")
    (data / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tengine\t1\nq1\tbabbage\t1\n")
    return folder


def test_systems(place: Path) -> None:
    code, out, err = command(
        "bench", "systems", "set", "--systems", "g2cons,cg-rag,default", "--budget", "200,60", "--json",
        cwd=place,
    )  # fmt: skip
    assert code == 0, err
    data = json.loads(out)
    assert data["schema"] == "ketrag/bench/1"
    assert [c["name"] for c in data["configurations"]] == ["g2cons", "cg-rag", "default"]
    assert [c["rows"][0]["mode"] for c in data["configurations"]] == ["g2cons", "cg-rag", "auto"]
    assert all(c["cost"]["usd"]["total"] == 0 for c in data["configurations"])
    assert all(c["counts"]["documents"] == 5 for c in data["configurations"])


def test_builds_apart_and_one_that_cannot_run(place: Path) -> None:
    argv = (
        "--build",
        "small: chunk_tokens=20",
        "--build",
        "lost: embedder=vectors:nowhere",
        "--budget",
        "60",
    )
    code, out, err = command("bench", "builds", "set", *argv, "--json", cwd=place)
    assert code == 3, err
    small, lost = json.loads(out)["configurations"]
    assert small["status"] == "ok"
    assert lost["status"] == "not run"
    assert lost["error"]
    assert lost["rows"] == []
    code, out, err = command("bench", "builds", "set", *argv[2:], "-q", cwd=place)
    assert code == 1, out


def test_a_sweep_builds_only_what_changes_and_equals_single_builds(place: Path) -> None:
    code, out, err = command(
        "bench", "sweep", "set", "--vary", "core_ratio=0.2,0.6,1", "--vary", "chunk_tokens=20,40",
        "--keep", "kept", "--llm", "heuristic", "--json", cwd=place,
    )  # fmt: skip
    assert code == 0, err
    found = {c["name"]: c for c in json.loads(out)["configurations"]}
    assert [c["counts"]["core_chunks"] for n, c in found.items() if n.startswith("core")] == [1, 3, 5]
    for flag, name in (("--core-ratio=0.6", "core_ratio=0.6"), ("--chunk-tokens=20", "chunk_tokens=20")):
        argv = ("set/corpus.jsonl", flag, "--llm", "heuristic", "-i", flag[2:6], "--json")
        code, out, err = command("index", *argv, cwd=place)
        assert code == 0, err
        assert json.loads(out)["digest"] == found[name]["digest"]


def test_budgets_are_varied_without_building(place: Path) -> None:
    code, out, err = command("bench", "sweep", "set", "--vary", "budget=30,60,120", "--json", cwd=place)
    assert code == 0, err
    rows = [row for c in json.loads(out)["configurations"] for row in c["rows"]]
    assert [row["budget"] for row in rows] == [30, 60, 120]


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (("builds", "set"), 2, "nothing to compare"),
        (("builds", "set", "--builds", "none.toml"), 2, "none.toml"),
        (("systems", "set", "--systems", "x"), 2, "unknown system 'x'"),
        (("sweep", "set"), 2, "nothing is varied"),
        (("sweep", "set", "--vary", "knn_k=1", "--budget", "12k"), 2, "--budget '12k'"),
        (("systems", "set", "--mode", "best"), 2, "--mode 'best'"),
        (("systems", "nowhere"), 1, "nowhere"),
        (("systems", "set", "--prices", "none.toml"), 2, "none.toml"),
        (("systems", "set", "--documents", "none"), 1, "none"),
    ],
)
def test_bad_input_is_named(place: Path, argv: tuple[str, ...], code: int, word: str) -> None:
    found, out, err = command("bench", *argv, "-q", cwd=place)
    assert (found, out) == (code, ""), err
    assert word in err


def test_a_set_without_answers_has_no_coverage(place: Path, tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "Who designed the Engine?"}))
    code, out, err = command(
        "bench", "systems", str(tmp_path), "--documents", "set/corpus.jsonl", "--systems", "default",
        "--json", "-q", cwd=place,
    )  # fmt: skip
    assert code == 0, err
    data = json.loads(out)
    assert data["configurations"][0]["rows"][0]["coverage"] is None
    assert any("no question has an answer" in note for note in data["notes"])
