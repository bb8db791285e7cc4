"""The commands of docs/how-to/comparing.md run, in a folder with the examples."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest

from ketrag_fast.apps.cli.main import main
from ketrag_fast.eval.comparison.configurations import from_file
from ketrag_fast.eval.prices import read_prices
from tests.process import ROOT

PAGE = (ROOT / "docs" / "how-to" / "comparing.md").read_text("utf-8")


def _blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    commands = [line for block in _blocks("sh") for line in block.splitlines()]
    assert len(commands) > 4
    for command in commands:
        program, *argv = shlex.split(command)
        assert program == "ketrag"
        code = main(argv)  # in this process: seven interpreters would start for longer than they work
        said = capsys.readouterr()
        assert code == 0, f"{command}: {said.err}"
        assert said.out


def test_the_files_are_read(tmp_path: Path) -> None:
    prices, builds = _blocks("toml")
    (tmp_path / "prices.toml").write_text(prices, "utf-8")
    (tmp_path / "builds.toml").write_text(builds, "utf-8")
    assert set(read_prices(tmp_path / "prices.toml").models) == set(tomllib.loads(prices)["models"])
    assert [c.name for c in from_file(tmp_path / "builds.toml")] == ["local", "api", "recorded"]
