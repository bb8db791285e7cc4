"""The commands and the program of docs/how-to/search.md run, and print what the page shows."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.process import ROOT, command, python

PAGE = ROOT / "docs" / "how-to" / "search.md"
_BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
_SCORE = re.compile(r"\b\d+\.\d\d$", re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


def _run(folder: Path) -> None:
    for block, shown in _BLOCK.findall(PAGE.read_text("utf-8")):
        for line in block.splitlines():
            program, *argv = shlex.split(line)
            assert program == "ketrag"
            done = command(*argv, cwd=folder, XDG_DATA_HOME=str(folder / "data"))
            assert done.code == 0, f"{line}: {done.err}"
        if shown:
            assert _SCORE.sub("#", done.out) == _SCORE.sub("#", shown), line


def test_commands_print_what_the_page_shows(folder: Path) -> None:
    _run(folder)


def test_the_program_runs(folder: Path) -> None:
    _run(folder)
    code = re.search(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert code is not None
    done = python(code[1], cwd=folder)
    assert done.code == 0, done.err
    assert "Colin Archer" in done.out and done.out.endswith("0\n")
