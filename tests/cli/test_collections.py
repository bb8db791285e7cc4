"""Collections and descriptions, as a user meets them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.process import command

from ketrag_fast import Index
from ketrag_fast.errors import ConfigError, InputError, UnknownName
from ketrag_fast.index.collections import age_text, check_name, collection_names, collections_folder

DATA = "LOCALAPPDATA" if os.name == "nt" else "XDG_DATA_HOME"


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(DATA, str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for folder, word in (("notes", "zeppelin"), ("work", "walrus")):
        (tmp_path / folder / "inner").mkdir(parents=True)
        (tmp_path / folder / "a.md").write_text(f"# {folder}\n\nThe {word} of {folder} and the ship.\n")
        (tmp_path / folder / "inner" / "b.md").write_text(f"# inner\n\nA second {word}, with a whale.\n")
    (tmp_path / "empty").mkdir()
    return tmp_path


def run(cwd: Path, *argv: str, code: int = 0, **more: str) -> str:
    done = command(*argv, cwd=cwd, **{DATA: os.environ[DATA], **more})
    assert done.code == code, done.err
    return done.out if code == 0 else done.err


def test_a_collection_is_used_from_anywhere(sources: Path, data: Path) -> None:
    run(sources, "index", "notes", "--name", "Notes")
    assert collection_names() == ["notes"] and collections_folder().is_relative_to(data)
    elsewhere = sources / "empty"
    assert "zeppelin" in run(elsewhere, "search", "zeppelin", "-c", "notes")
    assert "zeppelin" in run(elsewhere, "retrieve", "zeppelin"), "it is the only one"
    assert "zeppelin" in run(elsewhere, "grep", "zeppelin", "--collection", "notes")
    assert "collections" in run(elsewhere, "stats", "-c", "notes")
    assert "inner/b.md" in run(elsewhere, "documents"), "it is the only one"
    assert "documents and caches: ok" in run(elsewhere, "doctor")
    (sources / "notes" / "c.md").write_text("# c\n\nA new one.\n")
    argv = ("index", "notes", "--name", "notes")
    assert "3 documents (1 added" in run(sources, *argv, "--dry-run")
    assert "1 added" in run(sources, *argv)
    listed = run(elsewhere, "collections")
    assert "notes" in listed and "3 documents" in listed and "just now" in listed
    row = json.loads(run(elsewhere, "collections", "--json"))["collections"][0]
    assert (row["name"], row["documents"], row["sources"]) == ("notes", 3, [str(sources / "notes")])


def test_without_a_name_a_search_uses_all(sources: Path) -> None:
    for name in ("notes", "work"):
        run(sources, "index", name, "--name", name)
    elsewhere = sources / "empty"
    out = run(elsewhere, "search", "whale ship")
    assert "[notes] " in out and "[work] " in out
    hits = json.loads(run(elsewhere, "search", "whale ship", "--json", "-n", "3"))["hits"]
    assert [hit["rank"] for hit in hits] == [1, 2, 3] and {hit["index"] for hit in hits} == {"notes", "work"}
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    assert "[work]" not in run(elsewhere, "search", "whale", "-c", "notes")
    assert len(run(elsewhere, "grep", "whale").splitlines()) == 2
    assert "walrus" in run(elsewhere, "get", str(sources / "work" / "a.md"))
    assert "[work] " in run(elsewhere, "retrieve", "whale ship")
    assert "2 collections" in run(elsewhere, "stats", code=4)
    assert "one collection" in run(elsewhere, "annotate", "x", "-c", "notes,work", code=2)
    run(sources / "notes", "index", "a.md")
    assert "[" not in run(sources / "notes", "search", "zeppelin"), "./.ketrag comes first"


def test_what_is_wrong_is_said(sources: Path, data: Path) -> None:
    run(sources, "index", "notes", "--name", "notes")
    assert "already, of" in run(sources, "index", "work", "--name", "notes", code=2)
    run(sources, "index", "work", "-c", "notes")
    assert "did you mean notes?" in run(sources, "search", "x", "-c", "note", code=4)
    assert "two indexes" in run(sources, "search", "x", "-c", "notes", "-i", "x", code=2)
    assert "leave out" in run(sources, "index", "work", "--name", "x", "-i", "x", code=2)
    for name in ("a/b", "..", "", "con", "a b", "x" * 64):
        with pytest.raises(ConfigError):
            check_name(name)
    (data / "file").write_text("")
    variables = {DATA: str(data / "file")}
    assert "cannot be created" in run(sources, "index", "work", "--name", "other", code=1, **variables)
    assert "no collections" in command("collections", cwd=sources, **variables).err
    for manifest in (collections_folder() / "notes").glob("gen-*/manifest.json"):
        manifest.write_text("damaged")
    assert "unreadable" in run(sources, "collections")


def test_ages() -> None:
    import time

    now = time.time()
    texts = [age_text(None), age_text(now), age_text(now - 61), age_text(now - 3 * 86_400)]
    assert texts == ["never finished", "just now", "1 minute ago", "3 days ago"]


def test_descriptions_come_with_hits_and_survive(sources: Path) -> None:
    run(sources, "index", "notes")
    assert run(sources, "annotate", "notes/inner", "second thoughts").split("  ")[1] == "second thoughts\n"
    run(sources, "annotate", "all that I know")
    assert "second thoughts" in run(sources, "search", "zeppelin whale")
    hits = json.loads(run(sources, "search", "zeppelin", "--json"))["hits"]
    assert {hit["document"]: hit.get("description") for hit in hits} == {
        "a.md": None,
        "inner/b.md": "second thoughts",
    }
    run(sources, "index", "--rebuild")
    run(sources, "bundle", "file", "-i", ".ketrag")
    run(sources, "import", "bundle", "file", "-i", "copy")
    for index in (".ketrag", "copy"):
        with Index.open(sources / index) as opened:
            assert opened.descriptions() == {
                "": "all that I know",
                str(sources / "notes" / "inner"): "second thoughts",
            }
            assert opened.search("second whale")[0].description == "second thoughts"
    run(sources, "annotate", "notes/inner", "--remove")
    assert run(sources, "annotate") == "(all)  all that I know\n"
    assert "is not in the index" in run(sources, "annotate", "work", "x", code=1)
    assert "quotes" in run(sources, "annotate", "notes", "two", "words", code=2)
    with Index.open(sources / ".ketrag") as opened:
        with pytest.raises(InputError):
            opened.annotate("x" * 501)
        with pytest.raises(UnknownName):
            opened.annotate("x", sources / "work")
