"""`ketrag stats` on a real index."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from ketrag_fast import Document, Index
from ketrag_fast.apps.cli.main import main


def test_it_is_written_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No Python value, no heading without lines, and sizes with their units."""
    Index.build([Document("a", "Ada wrote it.")], tmp_path / "ix").close()
    assert main(["stats", "-i", str(tmp_path / "ix")]) == 0
    out = capsys.readouterr().out
    lines = [*out.splitlines(), ""]
    assert "None" not in out and "{" not in out
    assert all(after.startswith("  ") for line, after in pairwise(lines) if line.endswith(":"))
    assert re.search(r"^disk:\n  arrays: [\d.]+ kB\n", out, re.MULTILINE)
    assert main(["stats", "-i", str(tmp_path / "ix"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["backends"]["dimension"] is None and data["disk"]["arrays"] > 1000
