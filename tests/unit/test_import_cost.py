"""What an import loads. The time itself depends on the machine: `.ci/smoke_test.py` prints it."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

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


def loaded(code: str) -> set[str]:
    """Return the top-level modules that a new interpreter loads for `code` and not for its own start."""
    lines = (
        "import sys\nbefore = set(sys.modules)\n"
        f"{code}\nprint(*{{name.split('.')[0] for name in set(sys.modules) - before}})"
    )
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


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
