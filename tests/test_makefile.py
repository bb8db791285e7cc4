"""The commands that `make` would run and their environment, without running them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.process import ROOT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the Makefile is for Unix")


def make(*argv: str, **more: str) -> list[str]:
    """Return the lines that make prints."""
    program = shutil.which("make")
    assert program is not None
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        [program, *argv], cwd=ROOT, env=kept | more, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("how", [[], ["--jobs", "4"]])
def test_the_last_words_are_those_of_pytest(how: list[str]) -> None:
    lines = make("--dry-run", *how, "test", CI="true")
    assert " -m pytest " in lines[-1]
    assert any(line.startswith("cargo test") for line in lines)
    last = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()[-1]
    assert last == "exec make python-test"


def test_ci_runs_all_that_test_does() -> None:
    """`.ci/run` makes `checks`, two targets at a time, and then the tests of Python."""
    test, checks = (make("--dry-run", target, CI="true") for target in ("test", "checks"))
    missing = [line for line in test if line not in checks and "--no-print-directory" not in line]
    assert missing == test[-1:]
    assert any("mkdocs build --strict" in line for line in checks)


def test_bytecode_is_kept_whatever_the_caller_says(tmp_path: Path) -> None:
    """Else every process of the suite compiles all modules that it imports."""
    probe = tmp_path / "probe.mk"
    probe.write_text("probe:\n\t@echo said $${PYTHONDONTWRITEBYTECODE-nothing}\n")
    for value in ("1", ""):
        lines = make("-f", "Makefile", "-f", str(probe), "probe", PYTHONDONTWRITEBYTECODE=value)
        assert lines == ["said nothing"]


def test_no_variable_is_defined_twice() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    names = re.findall(r"^(\w+)\s*[:?]?=", text, re.MULTILINE)
    assert len(names) > 15
    assert sorted(names) == sorted(set(names))


def test_extraction_is_measured_with_random_weights_and_with_a_trained_model() -> None:
    runs = [line for line in make("--dry-run", "bench-llm") if "benches/extraction_speed.py" in line]
    assert [line.endswith(" --gemma") for line in runs] == [False, True]
