"""The settings file of a folder is not the user's word: what it names outside needs a confirmation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.chat import Chat
from tests.support.endpoint import Endpoint, words_encoder

from ketrag_fast import Document, Index
from ketrag_fast.apps.cli.main import main
from ketrag_fast.base.config import catalogue, from_file
from ketrag_fast.base.config.settings_file import line_of, named_outside, read_settings_file
from ketrag_fast.errors import SettingsNotConfirmed

pytestmark = pytest.mark.usefixtures("loopback")

QUESTION = "Where did the Fram sail?"


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with Endpoint(words_encoder()) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An unpacked archive, in which a user with a key and a collection works."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("KETRAG_OPENAI_API_KEY", "sk-of-the-user-0123456789")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "ship.md").write_text("# Ship\n\nThe Fram sailed into the ice.\n")
    assert main(["index", str(tmp_path / "notes"), "--name", "notes"]) == 0
    place = tmp_path / "unpacked"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


COMMANDS = (
    ["ask", QUESTION, "-c", "notes"],
    ["search", QUESTION, "-c", "notes"],
    ["retrieve", QUESTION, "-c", "notes", "--mode", "bm25"],
    ["index", "doc.md", "-i", "new"],
    ["mcp", "-c", "notes"],
    ["serve", "-c", "notes", "--port", "0"],
    ["watch", ".", "-i", "new"],
)


@pytest.mark.parametrize("setting", ["answer_llm", "llm", "embedder"])
def test_nothing_is_sent_to_an_endpoint_that_the_file_of_a_folder_names(
    setting: str, folder: Path, server: Endpoint, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "doc.md").write_text("# Doc\n\nwords of the user\n")
    (folder / "ketrag.toml").write_text(f'# settings\nbudget = 500\n{setting} = "openai:x@{server.url}"\n')
    for words in COMMANDS:
        assert main(words) == 5, words
        err = capfd.readouterr().err
        assert f"ketrag.toml:3: {setting} names the endpoint {server.url}" in err, words
        assert "ketrag trust --settings" in err
    assert main(["ask", QUESTION, "-c", "notes", "--json"]) == 5
    assert json.loads(capfd.readouterr().err)["code"] == "settings_not_confirmed"
    assert not server.texts and not server.keys


def test_a_confirmation_holds_for_one_content(
    folder: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with Chat(lambda _: "The Fram sailed into the ice [1].") as chat:
        text = f'answer_llm = "openai:mini@{chat.url}"\n'
        (folder / "ketrag.toml").write_text(text)
        words = ["ask", QUESTION, "-c", "notes"]
        assert main(["trust", "--settings"]) == 0
        assert (
            f"ketrag.toml:1: answer_llm names the endpoint {chat.url} (confirmed)" in capfd.readouterr().out
        )
        assert main(words) == 0 and chat.requests
        chat.requests.clear()
        (folder / "ketrag.toml").write_text(text + "budget = 300\n")
        assert main(words) == 5, "another content"
        (folder / "ketrag.toml").write_text(text)
        assert main(words) == 0, "the confirmed content again"
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "ketrag.toml").write_text(text)
        os.chdir(elsewhere)
        assert main(words) == 5, "the same content in another folder"
        os.chdir(folder)
        assert main(["trust", "--settings", "--forget"]) == 0
        chat.requests.clear()
        assert main(words) == 5 and not chat.requests


def test_what_the_user_names_needs_no_confirmation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Chat(lambda _: "The Fram sailed into the ice [1].") as chat:
        spec = f"openai:mini@{chat.url}"
        (folder / "ketrag.toml").write_text(f'answer_llm = "{spec}"\n')
        words = ["ask", QUESTION, "-c", "notes"]
        assert main([*words, "--config", "ketrag.toml"]) == 0 and len(chat.requests) == 1
        assert main([*words, "--answer-llm", "none"]) == 0 and len(chat.requests) == 1, "a flag has priority"
        monkeypatch.setenv("KETRAG_ANSWER_LLM", spec)
        assert main(words) == 0 and len(chat.requests) == 2
        monkeypatch.delenv("KETRAG_ANSWER_LLM")
        monkeypatch.setenv("KETRAG_CONFIG", "ketrag.toml")
        assert main(words) == 0 and len(chat.requests) == 3


@pytest.mark.parametrize(
    "line",
    [
        'record = "../replies.jsonl"',
        'record = "~/replies.jsonl"',
        'record = "link.jsonl"',
        'llm = "replay:/etc/hostname"',
        'llm = "llama-cpp:../model.gguf"',
        'embedder = "vectors:/srv/vectors"',
        'embedder = "local:link/model"',
        'rerank = "native:/srv/model"',
        'answer_llm = "native:../model"',
        'sparse_model = "../model"',
        'bibliography = "refs.bib, ../refs.bib"',
        'lesegr_weights = "/srv/weights"',
        "follow_links = true",
        "allow_download = true",
    ],
)
def test_paths_outside_the_folder_and_permissions_need_it_too(
    line: str, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "doc.md").write_text("# Doc\n\nwords of the user\n")
    (folder / "link").symlink_to(tmp_path / "notes")
    (folder / "link.jsonl").symlink_to(tmp_path / "replies.jsonl")
    (folder / "ketrag.toml").write_text(f"\n{line}\n")
    assert main(["index", "doc.md", "-i", "new"]) == 5
    name = line.partition(" =")[0]
    assert f"ketrag.toml:2: {name} " in capfd.readouterr().err
    assert not (tmp_path / "replies.jsonl").exists() and not (folder / "new").exists()
    with pytest.raises(SettingsNotConfirmed, match=name):
        from_file(None)
    assert from_file(Path("ketrag.toml")), "a path in a program is the user's word"


@pytest.mark.parametrize(
    "line",
    [
        'embedder = "builtin"',
        'embedder = "native:all-MiniLM-L6-v2"',
        'embedder = "local:sentence-transformers/all-MiniLM-L6-v2"',
        'record = "replies.jsonl"',
        'llm = "replay:data/replies.jsonl"',
        'bibliography = "refs.bib,more/refs.json"',
        'exclude = "/build,../x"',
        "filter = 'url=\"https://example.org/a\"'",
        "allow = 'path=\"/srv\"'",
        'entity_types = "person,https://schema.org/Place"',
        "follow_links = false",
        "budget = 100",
    ],
)
def test_what_stays_inside_needs_no_confirmation(line: str, folder: Path) -> None:
    (folder / "ketrag.toml").write_text(f"{line}\n")
    assert read_settings_file(None).outside == () and from_file(None)


def test_settings_of_other_packages_are_checked_by_their_text() -> None:
    spec = catalogue()["language"]
    assert named_outside(spec, "wss://example.org/x", "/work") == "names the endpoint wss://example.org/x"
    assert named_outside(spec, "plugin:model:/etc/passwd", "/work") is not None
    assert named_outside(spec, "a\0b", "/work") is not None
    assert named_outside(spec, "english", "/work") is None


def test_the_line_is_that_of_the_setting() -> None:
    text = 'filter = """\nanswer_llm = "none"\n"""\n"answer\\u005fllm" = "x"\n# answer_llm = 1\n'
    assert line_of(text, "answer_llm") == 4
    assert line_of("a = 1\n  Answer-LLM='x'\n", "Answer-LLM") == 2


def test_a_file_of_a_folder_is_no_module_of_the_readers(folder: Path) -> None:
    """Reader processes import nothing from the working folder."""
    mark = folder / "imported"
    code = f"open({str(mark)!r}, 'w').close()\n"
    (folder / "ketrag_fast").mkdir()
    (folder / "ketrag_fast" / "__init__.py").write_text(code)
    for name in ("numpy.py", "json.py", "html.py", "pypdfium2.py"):
        (folder / name).write_text(code)
    (folder / "page.html").write_text("<html><body><p>The Fram sailed into the ice.</p></body></html>")
    script = Path(sys.executable).with_name("ketrag")
    done = subprocess.run(
        [script, "index", "page.html", "-i", "new"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not mark.exists()


def test_python_reads_no_settings_file(folder: Path, server: Endpoint) -> None:
    (folder / "ketrag.toml").write_text(f'embedder = "openai:x@{server.url}"\n')
    with Index.build([Document("a", "some words", "a")], folder / "own") as index:
        assert index.retrieve("words").passages
    assert not server.texts
