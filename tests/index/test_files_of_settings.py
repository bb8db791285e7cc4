"""Files that only the settings of an index name: none is read before it is named or confirmed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import SettingsNotConfirmed
from ketrag_fast.index.named_sources import named_sources, trust_sources
from ketrag_fast.models.file_trust import files_named

PAPERS = [Document("a", "The Fram drifted.", "Fram", {"doi": "10.1000/A"}), Document("b", "As @fram.", "")]


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index that somebody else made; its settings name a file that the user has too."""
    (tmp_path / "refs.json").write_text('[{"id": "fram", "DOI": "10.1000/a"}]')
    with monkeypatch.context() as other:
        other.setenv("XDG_STATE_HOME", str(tmp_path / "state of somebody else"))
        named = Settings(system="cg-rag", bibliography=str(tmp_path / "refs.json"))
        Index.build(PAPERS, tmp_path / "theirs", settings=named).close()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state of the user"))
    shutil.copytree(tmp_path / "theirs", tmp_path / "ours")
    return tmp_path / "ours"


def update(path: Path) -> None:
    with Index.open(path) as index:
        index.update(add=Document("c", "It thawed.", ""))


def test_a_bibliography_is_read_after_confirmation(foreign: Path, tmp_path: Path) -> None:
    with Index.open(foreign) as index:
        assert index.retrieve("Fram", mode="bm25").passages, "queries read no such file"
    with pytest.raises(SettingsNotConfirmed, match=r"bibliography .* names the file .*refs\.json") as raised:
        update(foreign)
    assert raised.value.hint is not None and "--sources" in raised.value.hint
    assert [(one.spec, one.trusted) for one in named_sources(foreign)] == [
        (str(tmp_path / "refs.json"), False)
    ]
    trust_sources(foreign)
    assert all(one.trusted for one in named_sources(foreign))
    update(foreign)
    trust_sources(foreign, confirmed=False)
    with pytest.raises(SettingsNotConfirmed), Index.build([], foreign, rebuild=True):
        pass


def test_a_bibliography_that_the_user_names_is_confirmed(foreign: Path, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "d.md").write_text("# D\n\nThe ice drifted.\n")
    named = Settings(bibliography=str(tmp_path / "refs.json"))
    Index.build(folder, foreign, settings=named, replace=True).close()
    Index.build(folder, foreign, replace=True).close()
    assert all(one.trusted for one in named_sources(foreign))


def test_merging_reads_no_file_that_only_a_part_names(foreign: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsNotConfirmed):
        Index.merge([foreign, tmp_path / "theirs"], tmp_path / "both")
    assert main(["trust", "-i", str(foreign), "--sources"]) == 0


def test_a_recording_is_such_a_file(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    assert files_named({"llm": f"replay:{path}"}) == {str(path): "llm"}
    assert files_named({"llm": "openai:m@http://127.0.0.1/v1", "embedder": "native:x"}) == {}
