"""`ketrag estimate` through the real command, and the report of the build that follows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.test_end_to_end import CORPUS, ketrag


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("estimate")
    (folder / "docs").mkdir()
    for name, (_, text) in CORPUS.items():
        (folder / "docs" / f"{name}.txt").write_text(text, "utf-8")
    return folder


def test_an_estimate_then_the_build_then_both(place: Path) -> None:
    code, out, err = ketrag("estimate", "docs", "-i", "idx", "--json", cwd=place)
    assert code == 0, err
    said = json.loads(out)
    assert said["schema"] == "ketrag/estimate/1"
    assert (said["documents"], said["chunks"]) == (5, 5)
    assert said["usd"]["total"] == 0
    assert "stored in idx" in err
    code, out, err = ketrag("index", "docs", "-i", "idx", cwd=place)
    assert code == 0, err
    assert "estimated" in out
    assert "seconds" in out
    code, out, err = ketrag("index", "docs", "-i", "idx", "--json", cwd=place)
    assert json.loads(out)["estimate"] == []  # nothing was done that could be compared


def test_a_stored_estimate_is_not_an_unfinished_index(place: Path) -> None:
    assert ketrag("estimate", "docs", "-i", "planned", "-q", cwd=place)[0] == 0
    code, _, err = ketrag("stats", "-i", "planned", cwd=place)
    assert code == 4
    assert "no index in planned: only an estimate is stored there" in err
    assert "`ketrag index -i planned SOURCE...`" in err
    code, _, err = ketrag("index", "-i", "planned", cwd=place)
    assert (code, "no source was named" in err) == (2, True)


def test_without_an_index_nothing_is_left_behind(place: Path, tmp_path: Path) -> None:
    code, out, err = ketrag("estimate", str(place / "docs"), cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "time on this machine" in out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (("nowhere",), 1, "nowhere"),
        (("docs", "--sample", "0"), 2, "--sample"),
        (("docs", "--calls", "many"), 2, "--calls"),
        (("docs", "--prices", "none.toml"), 2, "none.toml"),
        (("docs", "--llm", "best"), 2, "best"),
        ((), 2, "SOURCE"),
    ],
)
def test_bad_input_is_named(place: Path, argv: tuple[str, ...], code: int, word: str) -> None:
    found, out, err = ketrag("estimate", *argv, "-q", cwd=place)
    assert (found, out) == (code, ""), err
    assert word in err


def test_prices_without_the_model_leave_usd_unknown_and_tokens_told(place: Path, tmp_path: Path) -> None:
    table = tmp_path / "p.toml"
    table.write_text('date = "2026-01-02"\n[models.known]\ninput = 1.0\noutput = 2.0\n')
    for model, total in (("known", None), ("other", "unknown")):
        llm = f"openai:{model}@https://api.example.org/v1"
        argv = ("estimate", "docs", "--llm", llm, "--prices", str(table), "--json")
        code, out, err = ketrag(*argv, cwd=place)
        assert code == 0, err
        said = json.loads(out)
        assert said["tokens_in"] > 0
        assert said["seconds"] is None
        assert "--spend" in said["notes"][0]
        if total is None:
            assert said["usd"]["total"] == pytest.approx((said["tokens_in"] + 2 * said["tokens_out"]) / 1e6)
        else:
            assert said["usd"]["total"] == total


def test_no_row_says_where_an_unknown_number_comes_from(place: Path, tmp_path: Path) -> None:
    table = tmp_path / "p.toml"
    table.write_text('date = "2026-01-02"\n[models.known]\ninput = 1.0\noutput = 2.0\n')
    llm = "openai:other@https://api.example.org/v1"
    code, out, err = ketrag(
        "estimate", "docs", "--llm", llm, "--prices", str(table), "--calls", "1", cwd=place
    )
    assert code == 0, err
    rows = [line.split("  ") for line in out.splitlines()]
    found = {row[0]: [cell.strip() for cell in row[1:] if cell.strip()] for row in rows}
    parts = [line for line in out.splitlines() if line.startswith("  ")]
    assert found["time on this machine"] == ["unknown", *(["known parts:"] if parts else [])]
    assert found["USD"] == ["unknown", f"no price of {llm}"]
    assert found["disk"][1] == found["memory"][1] == "measured"
    assert found["chunks"] == ["5", "counted"]
    assert out.splitlines()[-1] == (f"{llm} was not timed, because that may cost money: --spend times 1 call")
