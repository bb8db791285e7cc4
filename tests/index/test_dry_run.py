"""What a change would do, without doing it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index
from ketrag_fast.apps.cli.main import main

NAMES = ("Amundsen", "Shackleton", "Nansen", "Frank Wild", "Tom Crean")


def text(seed: str) -> str:
    dice = random.Random(seed)
    return " ".join(
        f"{dice.choice(NAMES)} met {dice.choice(NAMES)} by w{dice.randrange(40)} w{dice.randrange(40)}."
        for _ in range(8)
    )


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    base = tmp_path / "notes"
    base.mkdir()
    for number in range(12):
        (base / f"n{number}.md").write_text(text(str(number)), "utf-8")
    return base


def foresee(capsys: pytest.CaptureFixture[str], *argv: object, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*map(str, argv), "--dry-run", "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_build_is_foreseen(notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "ix"
    assert main(["index", str(notes), "-i", str(place)]) == 0
    (notes / "n1.md").unlink()
    (notes / "n2.md").write_text(text("changed"), "utf-8")
    (notes / "new.md").write_text(text("new"), "utf-8")
    before = sorted((p.name, p.stat().st_mtime_ns) for p in place.rglob("*.npy"))
    found = foresee(capsys, "index", "-i", place)
    assert found["documents"] == {"total": 12, "added": 1, "removed": 1, "updated": 1}
    assert found["characters"] == len(text("changed")) + len(text("new"))
    assert main(["index", "-i", str(place), "--dry-run"]) == 0
    said = f"12 documents (1 added, 1 changed, 1 removed; {found['characters']} characters to read)"
    assert capsys.readouterr().out.endswith(f"{said}; nothing was done\n")
    found = foresee(capsys, "index", notes / "n3.md", "-i", place, "--replace")
    assert (found["documents"]["total"], found["documents"]["removed"]) == (1, 11)
    assert sorted((p.name, p.stat().st_mtime_ns) for p in place.rglob("*.npy")) == before
    with Index.open(place) as index:
        assert (index.generation, index.inspect.document_count) == (1, 12)
    assert main(["index", str(notes), "-i", str(tmp_path / "none"), "--dry-run"]) == 4
    assert "ketrag estimate" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
