"""The manual page and the reference pages are those that the tools write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.process import ROOT
from tests.support.parts import missing

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "COLUMNS": "80"}


@pytest.mark.parametrize("tool", ["make_man.py", "make_reference.py"])
def test_the_generated_pages_are_up_to_date(tool: str) -> None:
    done = subprocess.run([sys.executable, ROOT / "tools" / tool, "--check"], env=ENVIRONMENT, check=False)
    assert done.returncode == 0, f"python tools/{tool}"


def test_the_manual_page_is_valid_roff() -> None:
    if shutil.which("groff") is None:
        missing("groff is not installed")
    page = ROOT / "docs" / "reference" / "ketrag.1"
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-P-cbou", page],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stderr == ""
    assert "ketrag retrieve" in done.stdout and "chunk_tokens" in done.stdout
