"""Every Python block of the README runs, in order, in a folder that has the examples beside it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.process import ROOT, python

README = ROOT / "README.md"


def test_python_blocks_run_in_order(tmp_path: Path) -> None:
    if not README.is_file():
        pytest.skip("this copy of the project has no README.md")
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks, "the README shows no Python"
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    done = python("\n\n".join(blocks), cwd=tmp_path)
    assert done.code == 0, done.err
