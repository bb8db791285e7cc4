"""Every shell and Python block of the README runs, in order, in a folder that contains the examples."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.process import ROOT, ketrag, python

README = ROOT / "README.md"


def _blocks(kind: str) -> list[str]:
    if not README.is_file():
        pytest.skip("this copy of the project has no README.md")
    blocks = re.findall(rf"^```{kind}\n(.*?)^```", README.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks, f"the README has no {kind} block"
    return blocks


def test_python_blocks_run_in_order(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    done = python("\n\n".join(_blocks("python")), cwd=tmp_path)
    assert done.code == 0, done.err


def test_commands_run_in_order(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    commands = [line for block in _blocks("sh") for line in block.splitlines()]
    assert len(commands) > 8
    for command in commands:
        program, *argv = shlex.split(command)
        assert program == "ketrag"
        done = ketrag(*argv, cwd=tmp_path)
        assert done.code == 0, f"{command}: {done.err}"


def _recall_at_5(run: str) -> dict[str, float]:
    """Return recall@5 of each mode of a stored run, rounded as on the page."""
    kept = json.loads((ROOT / "benches" / "results" / f"{run}.json").read_text("utf-8"))
    table = kept["tables"][0]
    at = table["columns"].index("recall@5")
    return {row[0]: float(f"{row[at][0]:.1f}") for row in table["rows"]}


def test_the_scores_are_those_of_the_benchmark() -> None:
    """The table of the README has the values of benches/results."""
    rows = re.findall(r"^\| `(\w+)` \| (none|MiniLM) \| (.+) \|$", README.read_text("utf-8"), re.MULTILINE)
    assert len(rows) >= 2
    for mode, model, cells in rows:
        suffix = "" if model == "none" else "-minilm"
        scores = [
            _recall_at_5(f"{name}{suffix}")[mode] for name in ("musique-dev", "2wiki-dev", "hotpotqa-dev")
        ]
        assert [float(cell) for cell in cells.split(" | ")] == scores, mode
