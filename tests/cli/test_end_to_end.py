"""The whole product through the real command: index, retrieve, eval, stats on a small data set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.process import ketrag

CORPUS = {
    "ada": ("Ada Lovelace", "Ada Lovelace wrote the first program for the Analytical Engine."),
    "engine": ("Analytical Engine", "The Analytical Engine was designed by Charles Babbage."),
    "babbage": ("Charles Babbage", "Charles Babbage was born in London in 1791. He studied in Cambridge."),
    "london": ("London", "London is the capital of England and lies on the Thames."),
    "bread": ("Bread", "Bread is baked from flour, water and yeast 😀. It is eaten with butter."),
}


def retrieve(cwd: Path, question: str, *argv: str) -> dict[str, Any]:
    code, out, err = ketrag("retrieve", question, "--json", *argv, cwd=cwd)
    assert code == 0, err
    data: dict[str, Any] = json.loads(out)
    assert data["schema"] == "ketrag/context/1"
    assert data["tokens"] <= data["budget"]
    for passage in data["passages"]:
        text = CORPUS[passage["document"]][1]
        assert text[passage["start"] : passage["end"]] == passage["text"]
    return data


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("product")
    data = folder / "set é"
    data.mkdir()
    rows = [{"_id": name, "title": title, "text": text} for name, (title, text) in CORPUS.items()]
    (data / "corpus.jsonl").write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    query = {"_id": "q", "text": "Where was the designer of the Analytical Engine born?"}
    question = {**query, "metadata": {"answers": ["London"]}}
    (data / "queries.jsonl").write_text(json.dumps(question), "utf-8")
    (data / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\tengine\t1\nq\tbabbage\t1\n")
    code, out, err = ketrag("index", str(data), "--modes", "auto,text,fused,keyword,knn", cwd=folder)
    assert (code, err) == (0, "")
    assert "5 documents (5 added" in out
    return folder


def test_second_call_does_nothing_and_says_so(place: Path) -> None:
    code, out, _ = ketrag("index", cwd=place)
    assert code == 0
    assert "nothing was done" in out


@pytest.mark.parametrize("mode", ["auto", "keyword"])
def test_each_mode_finds_the_passages(place: Path, mode: str) -> None:
    data = retrieve(place, "Who designed the Analytical Engine?", "--mode", mode)
    assert "engine" in [passage["document"] for passage in data["passages"]]
    assert data["mode"] == mode or mode == "auto"
    assert "Charles Babbage" in data["context"]


def test_stats_and_equal_digests(place: Path) -> None:
    code, out, err = ketrag("stats", "--json", cwd=place)
    assert code == 0, err
    data = json.loads(out)
    assert data["schema"] == "ketrag/stats/1"
    code, out, err = ketrag(
        "index",
        "set é",
        "--modes",
        "auto,text,fused,keyword,knn",
        "-i",
        "other",
        "--threads",
        "1",
        "--json",
        cwd=place,
    )
    assert code == 0, err
    assert json.loads(out)["digest"] == data["digest"]


def test_eval(place: Path) -> None:
    code, out, err = ketrag(
        "eval", "set é", "--mode", "bm25,walk,ket", "--budget", "3000,60", "--json", cwd=place
    )
    assert code == 0, err
    rows = json.loads(out)["rows"]
    assert [(row["mode"], row["budget"]) for row in rows[:4]] == [
        ("bm25", 3000),
        ("bm25", 60),
        ("walk", 3000),
        ("walk", 60),
    ]
    assert rows[0]["recall"] == 1.0
    assert rows[4]["status"] == "not run"
    code, out, err = ketrag("eval", "set é", "-i", ".ketrag", cwd=place)
    assert code == 0, err
    assert "walk" in out


def test_purging_says_what_it_did(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("a", "b"):
        (tmp_path / "docs" / f"{name}.txt").write_text(f"The quagga {name} is extinct.")
    assert ketrag("index", "docs", cwd=tmp_path)[0] == 0
    assert ketrag("remove", "a.txt", cwd=tmp_path)[0] == 0
    code, out, err = ketrag("remove", "--purge", "typo.txt", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "'typo.txt' matches no document" in err and "nothing was purged" in err
    assert (tmp_path / ".ketrag" / "gen-000001").is_dir()
    for _ in range(2):  # removed earlier, and purged earlier
        code, out, err = ketrag("remove", "--purge", "a.txt", cwd=tmp_path)
        assert (code, "is erased" in out, "not in the index" in err) == (0, True, False), (out, err)
    assert not (tmp_path / ".ketrag" / "gen-000001").exists()
    code, out, err = ketrag("remove", "--purge", "b.txt", "typo.txt", cwd=tmp_path)
    assert (code, "1 removed" in out, "typo.txt" in err) == (3, True, True)
