"""Without the packages of its extra each command says which one to install."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ketrag_fast.base.installed import install_command
from tests.process import python

CODE = """
import sys
sys.modules[sys.argv[1]] = None  # as if it were not installed
from ketrag_fast.apps.cli.main import main
sys.exit(main([sys.argv[2], "-i", sys.argv[3], "--json"]))
"""


@pytest.mark.parametrize(
    ("module", "command", "extra"),
    [("starlette", "serve", "server"), ("orjson", "serve", "server"), ("mcp", "mcp", "server")],
)
def test_the_extra_is_named(folder: Path, tmp_path: Path, module: str, command: str, extra: str) -> None:
    done = python(CODE, module, command, str(folder), cwd=tmp_path, timeout=60)
    assert done.code == 1
    said = json.loads(done.err.strip().splitlines()[-1])
    assert said["code"] == "backend_missing"
    assert install_command(extra) in said["hint"]
