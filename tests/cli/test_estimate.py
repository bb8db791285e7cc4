"""`ketrag estimate` through the real command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.test_end_to_end import CORPUS
from tests.process import command


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("estimate")
    (folder / "docs").mkdir()
    for name, (_, text) in CORPUS.items():
        (folder / "docs" / f"{name}.txt").write_text(text, "utf-8")
    return folder


@pytest.mark.parametrize("index", [(), ("-i", "planned")])
def test_nothing_is_left_behind(place: Path, tmp_path: Path, index: tuple[str, ...]) -> None:
    code, out, err = command("estimate", str(place / "docs"), *index, cwd=tmp_path)
    assert (code, err) == (0, "")
    rows = dict(line.rsplit("  ", 1) for line in out.splitlines())
    assert {name.strip(): value for name, value in rows.items()}["documents"].strip() == "5"
    assert "time on this machine" in out
    assert "per million words" in out
    assert list(tmp_path.iterdir()) == []


def test_an_index_decides_what_is_not_said(place: Path) -> None:
    assert command("index", "docs", "-i", "idx", "--modes", "all", "-q", cwd=place)[0] == 0
    for argv, has_knn in (((), False), (("-i", "idx"), True)):
        code, out, err = command("estimate", "docs", *argv, "--json", cwd=place)
        assert code == 0, err
        found = json.loads(out)
        assert found["schema"] == "ketrag/estimate/1"
        assert (found["documents"], found["sampled"], found["chunks"]) == (5, 5, 5)
        assert found["usd"]["total"] == 0
        assert ("knn" in found["stages"]) == has_knn


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (("nowhere",), 1, "nowhere"),
        (("docs", "--prices", "none.toml"), 2, "none.toml"),
        (("docs", "--llm", "best"), 2, "best"),
        ((), 2, "SOURCE"),
    ],
)
def test_bad_input_is_named(place: Path, argv: tuple[str, ...], code: int, word: str) -> None:
    found, out, err = command("estimate", *argv, "-q", cwd=place)
    assert (found, out) == (code, ""), err
    assert word in err


@pytest.mark.parametrize(("model", "is_known"), [("known", True), ("other", False)])
def test_a_model_without_a_price_leaves_usd_unknown(
    place: Path, tmp_path: Path, model: str, is_known: bool
) -> None:
    table = tmp_path / "p.toml"
    table.write_text('date = "2026-01-02"\n[models.known]\ninput = 1.0\noutput = 2.0\n')
    llm = f"openai:{model}@https://api.example.org/v1"
    code, out, err = command("estimate", "docs", "--llm", llm, "--prices", str(table), "--json", cwd=place)
    assert code == 0, err
    found = json.loads(out)
    assert found["tokens_in"] > 0
    assert f"without the time that {llm} takes" in found["notes"][0]
    spent = (found["tokens_in"] + 2 * found["tokens_out"]) / 1e6
    assert found["usd"]["total"] == (pytest.approx(spent) if is_known else "unknown")
