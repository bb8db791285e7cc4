"""The command in the hands of a new user: counts, hints, and mistakes that change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process import command

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import ConfigError, InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Fram\n\nThe Fram was built by Colin Archer.")
    (tmp_path / "notes" / "b.odd").write_bytes(b"\x00\x01")
    return tmp_path


def test_modes_that_nobody_reads_for_are_refused(folder: Path) -> None:
    """Else the index would have no mode at all."""
    with pytest.raises(ConfigError, match="modes: ket needs entities that an LLM extracts") as caught:
        Index.build(folder / "notes", folder / "new", settings=Settings(modes="ket"))
    assert "heuristic needs no model" in (caught.value.hint or "")
    assert not (folder / "new").exists()
    Index.build(folder / "notes", folder / "ix").close()
    done = command("index", "-i", "ix", "--modes", "ket,skeleton", cwd=folder)
    assert done.code == 2 and "ket,skeleton" in done.err
    with Index.open(folder / "ix") as index:
        assert index.retrieve("Who built the Fram?").passages
    assert command("index", "-i", "ix", "--modes", "ket", "--llm", "heuristic", cwd=folder).code == 0


def test_a_filter_without_metadata_says_where_metadata_comes_from(folder: Path) -> None:
    with Index.build([Document("a", "The Fram.")], folder / "ix") as index:
        with pytest.raises(InputError, match="no document has a field 'year'") as caught:
            index.retrieve("Fram", filter="year>=1990")
        assert "front matter" in (caught.value.hint or "")
    with Index.build([Document("a", "The Fram.", metadata={"lang": "en"})], folder / "iy") as index:
        with pytest.raises(InputError, match="known fields: lang") as caught:
            index.retrieve("Fram", filter="year>=1990")
        assert "front matter" not in (caught.value.hint or "")


def test_a_token_file_that_is_missing(folder: Path) -> None:
    Index.build(folder / "notes", folder / ".ketrag").close()
    done = command("serve", "--port", "0", "--token-file", "token", cwd=folder)
    assert done.code == 2
    assert "--token-file token: no such file" in done.err and "> token" in done.err


def test_no_passages_wanted_is_no_small_budget(folder: Path) -> None:
    assert command("index", "notes", cwd=folder).code == 0
    for argv in (("retrieve", "Fram", "--top", "0"), ("ask", "Fram?", "-o", "top=0")):
        done = command(*argv, cwd=folder)
        assert (done.code, "none were wanted (top is 0)" in done.err) == (0, True), done.err
    assert "the budget is too small" in command("retrieve", "Fram", "--budget", "0", cwd=folder).err


def test_adding_a_file_reports_what_is_skipped_of_it_alone(folder: Path) -> None:
    assert command("index", "notes", cwd=folder).code == 0
    (folder / "notes" / "c.md").write_text("The Maud was built by Christian Jensen.")
    done = command("add", "notes/c.md", cwd=folder)
    assert (done.code, done.err) == (0, "")
    assert "2 documents (1 added" in done.out
    assert "skipped 1 file of an unknown format: .odd (1)" in command("add", "notes", cwd=folder).err
    assert "skipped 1 file of an unknown format: .odd (1)" in command("add", "notes/b.odd", cwd=folder).err


def test_a_folder_without_documents_is_noticed_by_an_estimate(folder: Path) -> None:
    (folder / "empty").mkdir()
    done = command("estimate", "empty", cwd=folder)
    assert (done.code, "no document found in empty: check the path" in done.err) == (0, True)
    assert "no document found" not in command("estimate", "notes", cwd=folder).err


@pytest.mark.parametrize("argv", [("eval",), ("bench", "systems"), ("bench", "train", "cg-rag")])
def test_a_folder_without_questions_is_no_data_set(folder: Path, argv: tuple[str, ...]) -> None:
    done = command(*argv, "notes", cwd=folder)
    assert done.code == 1
    assert "notes/queries.jsonl: No such file" in done.err
    assert "hint: a data set is a folder with queries.jsonl" in done.err
