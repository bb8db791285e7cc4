"""Modes are added to those that an index has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import ConfigError
from ketrag_fast.systems.planning import combine_modes
from ketrag_fast.types import Document

DOCUMENTS = [Document(f"d{n}", f"The ship number {n} sailed south with a crew of {n} men.") for n in range(6)]


@pytest.mark.parametrize(
    ("stored", "given", "modes"),
    [
        ("auto", "+knn", "auto,knn"),
        ("auto,g2cons", "+knn,+g2cons", "auto,g2cons,knn"),
        ("bm25", "+walk", "bm25,walk"),
        ("auto,g2cons", "auto,knn", "auto,g2cons,knn"),
        ("auto,g2cons", "auto", "auto"),
        ("auto,g2cons", "bm25, walk", "bm25,walk"),
        ("auto", "all", "all"),
    ],
)
def test_combined_modes(stored: str, given: str, modes: str) -> None:
    assert combine_modes(stored, given) == modes


def test_an_exact_list_for_a_rebuild() -> None:
    assert combine_modes("auto,g2cons", "auto,knn", only=True) == "auto,knn"
    assert combine_modes("auto,g2cons", "+knn", only=True) == "auto,g2cons,knn"


def modes_of(place: Path, **settings: Any) -> list[str]:
    with Index.build(DOCUMENTS, place, settings=Settings(**settings)) as index:
        modes: list[str] = index.stats()["modes"]
        return modes


def test_an_index_keeps_its_modes(tmp_path: Path) -> None:
    place = tmp_path / "ix"
    usual = modes_of(place)
    assert {*usual, "g2cons"} <= {*modes_of(place, modes="+g2cons")}
    with_knn = modes_of(place, modes="auto,knn")
    assert {*usual, "g2cons", "knn"} <= {*with_knn}
    assert modes_of(place) == with_knn
    with Index.open(place) as index:
        assert index.stats()["settings"]["modes"] == "auto,g2cons,knn"
    assert not {"g2cons", "knn"} & {*modes_of(place, modes="bm25")}
    assert {*usual, "g2cons"} <= {*modes_of(tmp_path / "new", modes="+g2cons")}


def test_a_mode_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="unknown mode 'knnk'"):
        Settings(modes="+knnk")
    with pytest.raises(ConfigError, match="unknown mode ''"):
        Settings(modes="+")
    (tmp_path / "a.txt").write_text("The ship sailed south.")
    place = str(tmp_path / "ix")
    assert main(["index", str(tmp_path / "a.txt"), "-i", place, "--modes", "+knn"]) == 0
    assert main(["estimate", str(tmp_path / "a.txt"), "-i", place, "--modes", "+g2cons"]) == 0
    assert main(["index", "-i", place, "--modes", "+g2cons", "--dry-run"]) == 0
