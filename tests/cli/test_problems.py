"""What an index lacks: `index -v` and `documents --problems` name each file and part, `stats` counts them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.process import command
from tests.support.office_files import text_row, xlsx


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    (docs / "logs").mkdir(parents=True)
    (docs / "a.txt").write_text("The ferry leaves at noon.")
    (docs / "b.log").write_text("ignored")
    (docs / "c.tmp").write_text("excluded")
    (docs / ".hidden.txt").write_text("hidden")
    (docs / "logs" / "d.txt").write_text("in an ignored folder")
    (docs / ".gitignore").write_text("*.log\nlogs/\n")
    (docs / "e.odd").write_bytes(b"\0\1\2")
    (docs / "f.pdf").write_bytes(b"%PDF-1.4 damaged")
    rows = [text_row(1, "name"), text_row(2, "Ann")]
    (docs / "g.xlsx").write_bytes(xlsx({"Crew": rows, "Secret": rows}, hidden={"Secret": "hidden"}))
    return tmp_path


EXPECTED = {
    ".hidden.txt": "hidden",
    "b.log": "ignored by exclude or a .gitignore",
    "c.tmp": "ignored by exclude or a .gitignore",
    "logs": "ignored by exclude or a .gitignore",
    "e.odd": "no reader for .odd files",
    "g.xlsx/Secret": "the sheet",
}


def test_every_file_that_is_left_out_is_named(folder: Path) -> None:
    built = command("index", "docs", "-i", "x", "--exclude", "*.tmp", "-v", cwd=folder)
    for name, reason in EXPECTED.items():
        assert f"skipped {name}: {reason}" in built.err
    for _ in range(2):  # also after a build that reads nothing again
        listed = command("documents", "-i", "x", "--problems", "--json", cwd=folder).out
        problems = {one["document"]: one["message"] for one in json.loads(listed)["problems"]}
        assert EXPECTED.items() <= problems.items()
        assert set(problems) == {*EXPECTED, "f.pdf"}
        stats = json.loads(command("stats", "-i", "x", "--json", cwd=folder).out)
        assert stats["left_out"] == {"format": 1, "hidden": 1, "ignored": 4}
        assert [one["document"] for one in stats["failures"]] == ["f.pdf"]
        command("index", "docs", "-i", "x", "--exclude", "*.tmp", cwd=folder)
    text = command("documents", "-i", "x", "--problems", cwd=folder).out
    assert (
        "b.log: ignored by exclude or a .gitignore\n" in text and "g.xlsx/Secret: hidden: the sheet" in text
    )


def test_an_index_without_problems(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("The ferry leaves at noon.")
    command("index", "docs", "-i", "x", cwd=tmp_path)
    assert "no problems" in command("documents", "-i", "x", "--problems", cwd=tmp_path).err
