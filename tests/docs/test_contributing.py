"""The change that CONTRIBUTING.md shows applies, its tests pass, and it is short."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.process import ROOT, environment
from tests.support.parts import missing

READERS = "tests/unit/readers"


def test_the_example_applies_and_its_tests_pass(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        missing("git is not installed")
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (diff,) = re.findall(r"^```diff\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert diff.count("\n") <= 120
    ignore = shutil.ignore_patterns("__pycache__")
    for folder in ("python", READERS, "tests/support"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignore)
    for name in ("tests/__init__.py", "tests/process.py", "tests/unit/__init__.py"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    applied = subprocess.run(
        ["git", "apply", "-"], cwd=tmp_path, input=diff, capture_output=True, text=True, check=False
    )
    assert applied.returncode == 0, applied.stderr
    names = [
        f"{READERS}/test_bibtex.py",
        f"{READERS}/test_fuzz.py::test_every_kind_has_a_sample",
        f"{READERS}/test_fuzz.py::test_mutated_files[a.bib]",
    ]
    paths = {**environment(), "PYTHONPATH": str(tmp_path / "python")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names]
    done = subprocess.run(command, cwd=tmp_path, env=paths, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout
