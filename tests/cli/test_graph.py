"""`ketrag graph NAME` on an index with no other graph than that of the walk: passages with the name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.apps.cli.main import main

NOTES = {
    "Fram.md": "Built by [[Colin Archer]] at Larvik.",
    "Colin Archer.md": "A shipbuilder, born at Larvik in 1832. He drew the [[fram]].",
    "Maud.md": "The Maud was the last ship of Amundsen.",
}


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notes")
    for name, text in NOTES.items():
        (folder / name).write_text(text, "utf-8")
    Index.build(folder, folder / ".ketrag", settings=Settings(threads=1)).close()
    return folder / ".ketrag"


def shown(capsys: pytest.CaptureFixture[str], notes: Path, *argv: str) -> Sequence[str]:
    assert main(["graph", *argv, "-i", str(notes)]) == 0
    return capsys.readouterr().out.splitlines()


def test_passages_and_names_around_a_name(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, notes, "Larvik")
    assert lines[0] == "Larvik  (2 passages in the graph of the walk)"
    assert sorted(line.split("  ")[1] for line in lines[1:3]) == ["Colin Archer.md", "Fram.md"]
    assert lines[3] == "names in these passages:"
    assert "colin archer" in lines[4]


def test_a_document_may_be_named(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, notes, "Maud.md")
    assert lines[1].startswith("  Maud.md  ")
    assert "amundsen" in lines[-1]


def test_a_note_in_a_wiki_link_is_mentioned_in_lower_case_too(notes: Path) -> None:
    with Index.open(notes) as index:
        view = index.inspect.graph("walk", around="Fram")
    titles = [node.title for node in view.nodes]
    edges = {frozenset((titles[edge.source], titles[edge.target])) for edge in view.edges}
    assert frozenset(("Colin Archer", "fram")) in edges


def test_json_and_an_unknown_name(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = shown(capsys, notes, "Larvik", "--json")
    assert json.loads(line)["graph"] == "walk"
    assert main(["graph", "Nobody", "-i", str(notes)]) == 2
    assert "has no node 'Nobody'" in capsys.readouterr().err
