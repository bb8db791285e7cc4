"""What an import loads. The time itself depends on the machine: `.ci/smoke_test.py` prints it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.process import POLAR, environment

SLOW: Final = {
    "asyncio",
    "concurrent",
    "email",
    "filelock",
    "httpcore",
    "http",
    "logging",
    "multiprocessing",
    "pathspec",
    "ssl",
    "subprocess",
    "unittest",
    "xml",
    "zipfile",
}
"""Modules that take a few milliseconds each and that opening an index does not need."""
OPTIONAL: Final = {
    "hnswlib",
    "llama_cpp",
    "mcp",
    "nltk",
    "orjson",
    "pyarrow",
    "pypdfium2",
    "resiliparse",
    "scipy",
    "sentence_transformers",
    "starlette",
    "tiktoken",
    "torch",
    "transformers",
    "tree_sitter",
    "uvicorn",
    "watchfiles",
}


def modules(code: str, *arguments: str) -> set[str]:
    """Return the modules that a new interpreter loads for `code` and not for its own start."""
    lines = (
        f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before, file=sys.stderr)"
    )
    command = [sys.executable, "-c", lines, *arguments]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=True, env=environment())
    return set(done.stderr.splitlines()[-1].split())


def loaded(code: str) -> set[str]:
    """Return the top-level names of `modules`."""
    return {name.split(".")[0] for name in modules(code)}


def test_the_package_alone_loads_neither_numpy_nor_its_core() -> None:
    names = loaded("import ketrag_fast")
    assert "ketrag_fast" in names
    assert not names & {
        "numpy",
        "sqlite3",
        "dataclasses",
        "json",
        "pathlib",
        "re",
        "typing",
        *SLOW,
        *OPTIONAL,
    }


@pytest.mark.parametrize("code", ["from ketrag_fast import Index", "import ketrag_fast.apps.cli.main"])
def test_the_class_and_the_command_load_nothing_that_few_calls_need(code: str) -> None:
    names = loaded(code)
    assert "ketrag_fast" in names
    assert names & SLOW == set()
    assert names & OPTIONAL == set()


RUN: Final = "from ketrag_fast.apps.cli.main import main\nassert main(sys.argv[1:]) == 0"


def test_plain_commands_import_only_what_they_need(tmp_path: Path) -> None:
    index = str(tmp_path / "index")

    def count(*arguments: str) -> int:
        return sum(name.split(".")[0] == "ketrag_fast" for name in modules(RUN, *arguments))

    # Among these are `systems.papers`, which lists the published systems, `records`, `packed_texts`,
    # `local_servers`, and `systems.shared.cutting`, which an edit uses without the rest of the stage.
    assert count("index", str(POLAR / "articles"), "-i", index, "-q") <= 133
    assert count("retrieve", "-i", index, "Who led the Fram?") <= 100


COMMANDS: Final = {
    "search": ["search", "Who led the Fram?", "-i", "INDEX"],
    "search in files with a line": ["search", "ice", "--glob", "*.md", "--grep", "Fram", "-i", "INDEX"],
    "grep": ["grep", "Fram", "--index", "INDEX"],
    "get": ["get", "FILE", "-i", "INDEX"],
    "read": ["read", "FILE"],
    "collections": ["collections"],
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("imports") / "index")
    modules(RUN, "index", str(POLAR / "articles"), "-i", folder, "-q")
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_a_query_imports_no_numpy(index: str, name: str) -> None:
    places = {"INDEX": index, "FILE": str(min((POLAR / "articles").iterdir()))}
    names = {one.split(".")[0] for one in modules(RUN, *(places.get(word, word) for word in COMMANDS[name]))}
    assert "ketrag_fast" in names
    assert "numpy" not in names


def test_the_start_of_the_mcp_server_imports_no_numpy(index: str) -> None:
    names = {one.split(".")[0] for one in modules(RUN, "mcp", "-i", index)}
    assert "mcp" in names
    assert "numpy" not in names
