"""examples/own_system, installed into a fresh environment without a network, and used by the command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import ketrag_fast
from tests.process import POLAR, ROOT
from tests.support.parts import missing

QUESTION = "In which town did the man die who led those left behind on Elephant Island?"


@dataclass(frozen=True)
class Environment:
    """A virtual environment that sees this one's packages and has the example installed."""

    python: Path
    folder: Path

    def run(self, *argv: str, code: int = 0, **more: str) -> str:
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("KETRAG_", "PYTHON", "PIP_"))}
        done = subprocess.run(
            [str(self.python), *argv],
            cwd=self.folder,
            env={**kept, **more},
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        assert done.returncode == code, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout if code == 0 else done.stderr

    def ketrag(self, *argv: str, code: int = 0, **more: str) -> str:
        return self.run("-m", "ketrag_fast.apps.cli.main", *argv, code=code, **more)

    def json(self, *argv: str) -> Any:
        return json.loads(self.ketrag(*argv, "--json"))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    for tool in ("pip", "setuptools"):
        if find_spec(tool) is None:
            missing(f"{tool} is not installed (pip install {tool}), and the example is installed with it")
    folder = tmp_path_factory.mktemp("own")
    venv.create(folder / "env", with_pip=False, symlinks=os.name != "nt")
    paths = {"base": str(folder / "env"), "platbase": str(folder / "env")}
    site = Path(sysconfig.get_path("purelib", "venv", paths))
    # What is installed here is seen there, this package first: nothing has to be downloaded.
    here = [Path(ketrag_fast.__file__).parents[1], *map(Path, sys.path)]
    seen = dict.fromkeys(str(path) for path in here if path.is_dir() and path != ROOT)
    (site / "here.pth").write_text("\n".join(seen), "utf-8")
    python = Path(sysconfig.get_path("scripts", "venv", paths)) / Path(sys.executable).name
    made = Environment(python, folder)
    source = shutil.copytree(ROOT / "examples" / "own_system", folder / "own_system")
    options = ("--no-index", "--no-build-isolation", "--no-deps", "--disable-pip-version-check", "--quiet")
    made.run("-m", "pip", "install", *options, str(source))
    shutil.rmtree(source)  # what is used from here on is what was installed
    made.ketrag(
        "index", str(POLAR / "articles"), "-i", "ix", "--system", "feedback", "-o", "feedback_spread=0.2"
    )
    return made


def test_it_is_installed_there_and_not_here(fresh: Environment) -> None:
    code = "import ketrag_feedback, sys; print(ketrag_feedback.__file__, sys.prefix)"
    file, prefix = fresh.run("-c", code).split()
    assert Path(file).is_relative_to(prefix)
    with pytest.raises(ImportError):
        import ketrag_feedback  # type: ignore[import-not-found]  # noqa: F401


def test_the_build_runs_its_stage_and_what_the_modes_need(fresh: Environment) -> None:
    stats = fresh.json("stats", "-i", "ix")
    assert stats["modes"] == ["bm25", "walk", "survey", "likelihood", "feedback"]
    assert stats["settings"]["system"] == "feedback"
    assert stats["settings"]["feedback_spread"] == 0.2
    assert "background" in stats["stages"]
    assert stats["systems"]["feedback"]["words"] > 1000
    assert "feedback:" in fresh.ketrag("stats", "-i", "ix")


def test_a_question(fresh: Environment) -> None:
    context = fresh.json("retrieve", QUESTION, "-i", "ix", "--mode", "feedback", "--budget", "600")
    assert context["mode"] == "feedback"
    assert 0 < context["tokens"] <= 600
    assert "Elephant Island" in context["context"]
    scores = [passage["score"] for passage in context["passages"]]
    assert scores == sorted(scores, reverse=True)
    assert {passage["channel"] for passage in context["passages"]} == {"feedback"}
    # The preset's mode is what a question gets that names none.
    assert fresh.json("retrieve", QUESTION, "-i", "ix", "--budget", "600")["context"] == context["context"]
    alone = ("-o", "feedback_weight=0", "--budget", "600")
    likelihood = fresh.json("retrieve", QUESTION, "-i", "ix", "--mode", "likelihood", "--budget", "600")
    unweighted = fresh.json("retrieve", QUESTION, "-i", "ix", "--mode", "feedback", *alone)
    assert [p["unit"] for p in unweighted["passages"]] == [p["unit"] for p in likelihood["passages"]]
    assert unweighted["context"] != context["context"]


def test_where_extensions_are_switched_off(fresh: Environment) -> None:
    off = {"KETRAG_EXTENSIONS": "none"}
    assert "feedback" not in fresh.ketrag("index", "--help", **off)
    said = fresh.ketrag("retrieve", QUESTION, "-i", "ix", "--mode", "feedback", code=2, **off)
    assert "mode: 'feedback' is not one of auto, bm25" in said


def test_an_index_whose_system_is_gone(fresh: Environment) -> None:
    """What the other systems built answers as before; a build would lose the rest, and says so."""
    off = {"KETRAG_EXTENSIONS": "none"}
    said = fresh.ketrag("retrieve", QUESTION, "-i", "ix", "--mode", "bm25", **off)
    assert said == fresh.ketrag("retrieve", QUESTION, "-i", "ix", "--mode", "bm25")
    stats = json.loads(fresh.ketrag("stats", "-i", "ix", "--json", **off))
    assert stats["modes"] == ["bm25", "walk", "survey"]
    assert fresh.ketrag("config", "show", "-i", "ix", **off)
    said = fresh.ketrag("index", "-i", "ix", code=2, **off)
    assert "built by the system feedback, which is not installed" in said
    assert "--system default" in said
    assert fresh.json("stats", "-i", "ix")["generation"] == stats["generation"]
    shutil.copytree(fresh.folder / "ix", fresh.folder / "other")
    fresh.ketrag("trust", "-i", "other", "--sources", **off)  # a copy reads no sources before
    fresh.ketrag("index", "-i", "other", "--system", "default", **off)
    assert "Elephant" in fresh.ketrag("retrieve", QUESTION, "-i", "other", **off)
