"""docs/how-to/extending.md shows the example as it stands, and its commands run."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from pathlib import Path

from tests.process import ROOT, command
from tests.systems.outside import Install, install

__all__ = ["install"]  # the fixture

PAGE = ROOT / "docs" / "how-to" / "extending.md"
EXAMPLE = ROOT / "examples" / "own_system"


def blocks(kind: str) -> list[str]:
    found = re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert found
    return found


def test_the_code_is_the_example_s() -> None:
    code = (EXAMPLE / "ketrag_feedback.py").read_text("utf-8")
    for block in blocks("python"):
        assert block in code, block
    for block in blocks("toml"):
        assert block in (EXAMPLE / "pyproject.toml").read_text("utf-8")


def test_the_commands_run(install: Install, tmp_path: Path) -> None:
    (block,) = blocks("sh")
    first, *rest = block.splitlines()
    assert first == "pip install examples/own_system"  # as tests/systems/test_own_system.py does
    assert install((EXAMPLE / "ketrag_feedback.py").read_text("utf-8"), "feedback", whole=True).broken == {}
    shutil.copytree(ROOT / "examples" / "polar", tmp_path / "examples" / "polar")
    assert len(rest) == 5
    for line in rest:
        program, *argv = shlex.split(line)
        assert program == "ketrag"
        done = command(*argv, cwd=tmp_path)
        assert done.code == 0, f"{line}: {done.err}"
        assert "feedback" in done.out or argv[0] in ("index", "retrieve")


def test_the_mode_of_the_guide_ranks(install: Install, tmp_path: Path) -> None:
    """The module of docs/how-to/own-mode.md is installed as its pyproject.toml says; its commands run."""
    page = (ROOT / "docs" / "how-to" / "own-mode.md").read_text("utf-8")
    ((_, module), (_, project)) = re.findall(r"^```(python|toml)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    about = tomllib.loads(project)["project"]
    assert about["entry-points"]["ketrag_fast.systems"] == {"titles": "ketrag_titles:SYSTEM"}
    assert install(module, "titles", whole=True).broken == {}
    shutil.copytree(ROOT / "examples" / "polar" / "articles", tmp_path / "docs")
    commands = [shlex.split(line) for line in re.findall(r"^        ketrag (.*)$", page, re.MULTILINE)]
    assert [argv[0] for argv in commands] == ["index", "retrieve", "eval"]
    for argv in commands[:2]:
        done = command(*argv, cwd=tmp_path)
        assert done.code == 0, done.err
    assert "[1] fram.md" in done.out
