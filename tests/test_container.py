"""The image of examples/service: built where a program that builds images can get its base, else linted."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.process import ROOT
from tests.support.parts import missing

FILE: Final = ROOT / "examples" / "service" / "Dockerfile"
TAG: Final = "ketrag-test"
COMMAND: Final = "/opt/ketrag/bin/ketrag"


def bases() -> list[str]:
    """The images that the file starts from."""
    lines = FILE.read_text("utf-8").splitlines()
    return [line.split()[1] for line in lines if line.startswith("FROM ")]


def succeeds(*command: str, seconds: float = 120) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=seconds, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def builder() -> str | None:
    """The program that builds the image: its service runs, and it has the base images or gets them."""
    for name in ("docker", "buildah"):
        if shutil.which(name) and succeeds(name, "info"):
            inspect = ["image", "inspect"] if name == "docker" else ["inspect", "--type", "image"]
            if all(succeeds(name, *inspect, one) or succeeds(name, "pull", one) for one in bases()):
                return name
    return None


def output(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_image_is_built_and_has_the_command() -> None:
    name = builder()
    if name is None:
        pytest.skip("no docker or buildah can build here: the file is linted")
    output(name, "build", "-f", str(FILE), "-t", TAG, ".")
    if name == "docker":
        printed = output(name, "run", "--rm", "--network", "none", "--entrypoint", COMMAND, TAG, "--version")
    else:
        container = output(name, "from", TAG).strip()
        try:
            printed = output(name, "run", container, "--", COMMAND, "--version")
        finally:
            output(name, "rm", container)
    assert printed.startswith("ketrag")


def test_the_file_passes_hadolint() -> None:
    linter = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if linter is None:
        missing("hadolint is not installed (pip install --group checks)")
    assert output(linter, str(FILE)) == ""


def test_what_the_image_copies_is_not_ignored() -> None:
    """The build needs the notices and the sources, and none of what a checkout collects."""
    ignored = set((ROOT / ".dockerignore").read_text("utf-8").split())
    assert {".git", ".venv*", "target"} <= ignored
    assert not ignored & {"rust", "python", "Cargo.lock", "pyproject.toml", "LICENSE", "THIRD-PARTY.md"}
