"""`ketrag eval` through the real command: data sets, saved runs, comparisons, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import small_model
from tests.process import ROOT, command

POLAR = str(ROOT / "examples" / "polar")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluation")
    code, _, err = command("index", POLAR, cwd=folder)
    assert code == 0, err
    arguments = ("--mode", "bm25,walk", "--budget", "800,400", "--save", "run", "-q", "--json")
    code, out, err = command("eval", POLAR, "-i", ".ketrag", *arguments, cwd=folder)
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert [(row["mode"], row["budget"]) for row in data["rows"]] == [
        (mode, budget) for mode in ("bm25", "walk") for budget in (800, 400)
    ]
    assert all(0 < row["mrr"] <= 1 and row["hit"].keys() == {"1", "5", "10"} for row in data["rows"])
    assert all(row["em"] is None for row in data["rows"])
    assert data["not_run"].keys() == {"em", "f1", "bertscore", "win_rate"}
    return folder


def error(place: Path, *argv: str) -> dict[str, Any]:
    code, out, err = command("eval", *argv, "--json", "-q", cwd=place)
    assert out == ""
    data: dict[str, Any] = json.loads(err.splitlines()[-1])
    assert data["message"] and "hint" in data
    return {**data, "exit": code}


def test_saved_runs_are_compared(place: Path) -> None:
    code, out, err = command("eval", "--compare", "run:bm25", "run:walk", "--budget", "400", cwd=place)
    assert (code, err) == (0, "")
    assert out.startswith("budget 400\nA: run:bm25\nB: run:walk\n")
    assert "all_gold: only with run:bm25 (1):" in out
    assert "gold answer:" in out
    code, out, _ = command("eval", "--compare", "run", "run", "--json", cwd=place)
    assert code == 0
    comparisons = json.loads(out)["comparisons"]
    assert len(comparisons) == 4
    assert all(c["changes"] == [] and c["differences"]["coverage"]["p"] == 1.0 for c in comparisons)


def test_a_judge_says_which_answers_are_better(place: Path, tiny_gguf: Path) -> None:
    lines = (ROOT / "examples" / "polar" / "queries.jsonl").read_text("utf-8").splitlines()[:2]
    answers = [
        {"_id": json.loads(line)["_id"], "mode": mode, "answer": mode}
        for line in lines
        for mode in ("bm25", "walk")
    ]
    (place / "two.jsonl").write_text("\n".join(map(json.dumps, answers)), "utf-8")
    judge = f"llama-cpp:{tiny_gguf}"
    arguments = ("--answers", "two.jsonl", "--compare", "bm25", "walk", "--budget", "400", "--judge", judge)
    code, out, err = command("eval", POLAR, "-i", ".ketrag", *arguments, "--json", "-q", cwd=place)
    assert code == 0, err
    found = json.loads(out)["comparisons"][0]
    assert found["win_rate"]["n"] == found["differences"]["em"]["n"] == 2
    bare = command(
        "eval", "--compare", "run:bm25", "run:walk", "--budget", "400", "--judge", judge, cwd=place
    )
    assert "win rate: not run" in bare[1]


def published(place: Path) -> str:
    """The name of a file of HotpotQA in `place` with one question."""
    entry = {
        "_id": "q",
        "question": "Who built the ship Fram?",
        "answer": "Colin Archer",
        "supporting_facts": [["Fram", 0]],
        "context": [["Fram", ["The Fram was built by Colin Archer."]], ["Ice", ["Ice is water."]]],
    }
    file = place / "hotpot.json"
    file.write_text(json.dumps([entry]), "utf-8")
    return file.name


def test_a_model_writes_the_answers_that_are_judged(place: Path, tiny_gguf: Path) -> None:
    dataset = published(place)
    arguments = (dataset, "--mode", "bm25", "--budget", "100", "--llm", f"llama-cpp:{tiny_gguf}")
    code, out, err = command("eval", *arguments, "--answers", "--save", "asked", "--json", "-q", cwd=place)
    assert code == 0, err
    rows = json.loads(out)["rows"]
    assert [(row["mode"], row["status"]) for row in rows] == [("bm25", "ok")]
    assert rows[0]["counted"]["em"] == 1
    assert rows[0]["em"] == 0.0  # its weights are random
    about = json.loads((place / "asked" / "run.json").read_text("utf-8"))
    assert len(about["answers"]["prompt"]) == 64
    code, _, err = command("eval", dataset, "--mode", "bm25", "--answers", "--json", "-q", cwd=place)
    assert code == 2
    assert "--answers needs a language model" in err


def test_the_saved_run_holds_every_question(place: Path) -> None:
    questions = (ROOT / "examples" / "polar" / "queries.jsonl").read_text("utf-8").count("\n")
    results = [json.loads(line) for line in (place / "run" / "results.jsonl").read_text("utf-8").splitlines()]
    assert len(results) == 4 * questions
    assert len((place / "run" / "trec" / "walk-800.trec").read_text().splitlines()) > questions
    about = json.loads((place / "run" / "run.json").read_text("utf-8"))
    assert about["index"]["digest"]
    assert about["index"]["settings"]["chunk_tokens"] == 200
    assert str(place) not in json.dumps(about)


def test_a_run_keeps_why_passages_were_found(place: Path) -> None:
    arguments = (POLAR, "-i", ".ketrag", "--mode", "walk", "--budget", "400", "--explain")
    code, out, err = command("eval", *arguments, "--save", "explained", "--json", "-q", cwd=place)
    assert code == 0, err
    lines = (place / "explained" / "results.jsonl").read_text("utf-8").splitlines()
    results = [json.loads(line) for line in lines]
    assert json.loads(out)["results"] == results
    for result in results:
        assert [passage["rank"] for passage in result["why"]] == list(range(1, len(result["why"]) + 1))
        assert list(dict.fromkeys(passage["document"] for passage in result["why"])) == result["found"]
        assert result["why"][0]["why"]
    question = json.loads((ROOT / "examples" / "polar" / "queries.jsonl").read_text("utf-8").splitlines()[0])
    retrieve = ("retrieve", question["text"], "--mode", "walk", "--budget", "400", "--explain", "--json")
    passages = json.loads(command(*retrieve, cwd=place)[1])["passages"]
    assert results[0]["question"] == question["_id"]
    assert [found["why"] for found in results[0]["why"]] == [found["why"] for found in passages]
    plain = (place / "run" / "results.jsonl").read_text("utf-8")
    assert '"why"' not in plain
    code, _, err = command("eval", "--compare", "explained:walk", "run:walk", "--budget", "400", cwd=place)
    assert code == 0, err
    assert (
        "add --save FOLDER or --json" in error(place, POLAR, "--explain", "--compare", "bm25", "walk")["hint"]
    )


def test_the_model_of_an_index_may_lie_elsewhere(place: Path) -> None:
    sizes = small_model.config(max_position_embeddings=66)
    own, other = small_model.save(place / "own", sizes), small_model.save(place / "other", sizes, seed=1)
    small_model.save(place / "moved", sizes)
    entry = {"_id": "q", "question": "w1 w2?", "answer": "w3", "context": [["w1", ["w2 w3."]]]}
    (place / "words.json").write_text(json.dumps([entry]), "utf-8")
    (place / "words.jsonl").write_text('{"_id": "w", "title": "w1", "text": "w2 w3."}\n', "utf-8")
    model = ("-i", "with-model", "--embedder")
    code, _, err = command("index", "words.jsonl", *model, f"native:{own}", "-q", cwd=place)
    assert code == 0, err
    asked = ("words.json", "--mode", "text", "--budget", "90")
    for name in ("own", "moved"):
        code, out, err = command("eval", *asked, *model, f"native:{place / name}", "--json", "-q", cwd=place)
        assert code == 0, err
        assert json.loads(out)["rows"][0]["coverage"] == 1.0
    refused = error(place, *asked, *model, f"native:{other}")
    assert refused["code"] == "model_mismatch"
    assert "fingerprint" in refused["message"]
    assert error(place, *asked, *model, "builtin")["code"] == "model_mismatch"


def test_published_files_are_indexed_and_scored(place: Path) -> None:
    dataset = published(place)
    code, out, _ = command("eval", dataset, "--mode", "walk,text", "--budget", "100", "--json", cwd=place)
    assert code == 0
    assert [(row["coverage"], row["recall"]) for row in json.loads(out)["rows"]] == [(1.0, 1.0)] * 2


def test_answers_are_judged(place: Path) -> None:
    (place / "answers.jsonl").write_text(json.dumps({"_id": "q", "answer": "By Colin Archer."}), "utf-8")
    arguments = (published(place), "--mode", "bm25", "--budget", "100", "--answers", "answers.jsonl")
    code, out, err = command("eval", *arguments, cwd=place)
    assert code == 0, err
    assert out.splitlines()[0].split()[-4:] == ["EM", "F1", "F1", "plain"]
    assert out.splitlines()[2].split()[-3:] == ["0.0", "80.0", "80.0"]
    assert "bertscore: no model is named (--bertscore FOLDER)" in out
    assert "not run" not in out


def test_what_is_absent_is_told_not_counted(place: Path) -> None:
    bare = place / "bare"
    bare.mkdir()
    (bare / "corpus.jsonl").write_text('{"_id": "p", "title": "", "text": "Ice is water."}\n')
    (bare / "queries.jsonl").write_text(
        '{"_id": "q", "text": "What is ice?", "metadata": {"answers": [""]}}\n'
    )
    code, out, err = command("eval", "bare", "--mode", "bm25", "--budget", "50", "--json", cwd=place)
    assert code == 0
    assert "1 gold answers are empty" in err
    assert "no question has an answer" in err
    assert "no question has a supporting passage" in err
    row = json.loads(out)["rows"][0]
    assert [row[name] for name in ("coverage", "recall", "all_gold", "mrr", "em")] == [None] * 5
    (bare / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\tgone\t1\n")
    _, out, err = command("eval", "bare", "--mode", "bm25", "--budget", "50", "--json", cwd=place)
    assert "1 judgements name passages that corpus.jsonl lacks" in err
    assert json.loads(out)["rows"][0]["recall"] is None


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        ((POLAR, "--budget", "12000,many"), "config", "'many' is not a whole number"),
        ((POLAR, "--budget", "12000,,3000"), "config", "budget is empty"),
        ((POLAR, "--budget", "-5"), "config", "-5"),
        ((POLAR, "--mode", "wlak"), "config", "mode"),
        ((POLAR, "--compare", "bm25", "run:walk"), "config", "run:walk"),
        ((POLAR, "--bertscore", "folder"), "config", "needs answers"),
        ((POLAR, "--answers", "none.jsonl"), "document", "none.jsonl"),
        ((POLAR, "--judge", "llama-cpp:x.gguf"), "config", "needs two sides"),
        (("--compare", "run:bm25", "run:walk", "--judge", "heuristic"), "config", "not a language model"),
        (("nowhere",), "document", "nowhere does not exist"),
        ((".",), "document", "queries.jsonl: No such file"),
        ((), "config", "eval needs a DATASET"),
        (("--compare", "run:bm25", "run:bread"), "config", "no mode 'bread'"),
        (("--compare", "run:bm25", "run"), "config", "name the mode of both"),
        (("--compare", "run", "nowhere"), "document", "not a saved evaluation run"),
        (("--compare", "run", "run", "--budget", "7"), "config", "no mode and budget in common"),
    ],
)
def test_what_makes_no_sense_is_refused(place: Path, argv: tuple[str, ...], code: str, said: str) -> None:
    found = error(place, *argv)
    assert (found["code"], found["exit"]) == (code, 2 if code == "config" else 1)
    assert said in found["message"]
