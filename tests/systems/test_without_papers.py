"""The package without the published systems: commands work in a copy whose folder of them is deleted."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process import MODULE, POLAR, ROOT, environment

PACKAGE = ROOT / "python" / "ketrag_fast"
NAMES = re.compile(r"ket.?rag:|g2cons|noderag|cg.?rag|skeleton|\bknn\b|concepts", re.IGNORECASE)
"""Names of the published systems, of their modes and of their tables."""


class Library:
    """A copy of the package without the published systems, and a folder with an index."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        copy = folder / "python" / "ketrag_fast"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.pyd"))
        for library in [*PACKAGE.glob("*.so"), *PACKAGE.glob("*.pyd")]:
            (copy / library.name).hardlink_to(library)
        shutil.rmtree(copy / "systems" / "papers")
        self.notes = folder / "notes"
        self.notes.mkdir()
        for article in sorted((POLAR / "articles").glob("[a-f]*.md")):
            shutil.copy(article, self.notes)

    def start(self, *argv: str) -> subprocess.Popen[str]:
        variables = environment()
        variables["PYTHONPATH"] = str(self.folder / "python")
        return subprocess.Popen(
            [sys.executable, "-m", MODULE, *argv],
            cwd=self.folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def run(self, *argv: str, code: int = 0) -> str:
        """Run a command and return what it prints."""
        process = self.start(*argv)
        out, err = process.communicate(timeout=120)
        assert process.returncode == code, (argv, out, err)
        assert "Traceback" not in err, (argv, err)
        return out + err


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    library = Library(tmp_path_factory.mktemp("engine"))
    assert "added" in library.run("index", "notes", "-i", "ix", "--modes", "all")
    yield library


def test_the_copy_is_used_and_has_two_systems(library: Library) -> None:
    lines = """import ketrag_fast
from ketrag_fast.systems.registry import registry
print(ketrag_fast.__file__, *registry().presets)"""
    done = subprocess.run(
        [sys.executable, "-c", lines],
        env=environment() | {"PYTHONPATH": str(library.folder / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    file, *presets = done.stdout.split()
    assert Path(file).is_relative_to(library.folder)
    assert presets and not NAMES.search(" ".join(presets))


QUESTION = "Who led the Fram?"
COMMANDS = {
    "search": ("search", QUESTION),
    "search by words": ("search", QUESTION, "--mode", "bm25"),
    "search by vectors": ("search", QUESTION, "--mode", "text"),
    "search by both": ("search", QUESTION, "--mode", "fused"),
    "retrieve": ("retrieve", QUESTION, "--explain"),
    "ask": ("ask", QUESTION),
    "grep": ("grep", "Fram"),
    "themes": ("themes",),
    "survey": ("retrieve", "What are the expeditions about?", "--mode", "survey"),
    "stats": ("stats",),
    "doctor": ("doctor",),
    "documents": ("documents",),
    "graph": ("graph", "--graph", "walk", "--html", "graph.html"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command(library: Library, name: str) -> None:
    command, *rest = COMMANDS[name]
    printed = library.run(command, *rest, *(["--index"] if command == "grep" else ["-i"]), "ix")
    assert printed.strip()
    if command in ("stats", "doctor", "graph"):  # the others print the articles
        assert not NAMES.search(printed.replace(str(library.folder), "")), printed


def test_settings_are_listed(library: Library) -> None:
    printed = library.run("config", "list")
    assert "chunk_tokens" in printed
    assert not NAMES.search(printed), printed


def test_the_published_systems_are_unknown_and_the_error_says_what_there_is(library: Library) -> None:
    printed = library.run("index", "notes", "-i", "other", "--system", "noderag", code=2)
    assert "unknown system 'noderag'" in printed and "the presets by system are plain: default" in printed


def test_an_edit_is_indexed(library: Library) -> None:
    file = next(library.notes.glob("*.md"))
    file.write_text(file.read_text("utf-8") + "\n\nThe quokka waited at the pier.\n", "utf-8")
    assert "1 changed" in library.run("index", "notes", "-i", "ix")
    assert "quokka" in library.run("search", "quokka pier", "-i", "ix")


@pytest.mark.usefixtures("loopback")
def test_the_service_answers(library: Library) -> None:
    process = library.start("serve", "-i", "ix", "--port", "0")
    try:
        assert process.stderr is not None and process.stdout is not None
        line = next(line for line in (*[process.stderr.readline() for _ in range(1)], "") if line)
        address = re.search(r"http://[\w.:\[\]]+", line)
        assert address is not None, line
        request = urllib.request.Request(
            address[0] + "/v1/retrieve",
            json.dumps({"question": QUESTION}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            assert json.load(response)["passages"]
    finally:
        process.terminate()
        process.wait(30)


def test_nothing_of_the_engine_imports_the_published_systems() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in PACKAGE.rglob("*.py")
        if "papers" not in path.parts and "systems.papers" in path.read_text("utf-8")
    ]
    assert not wrong
