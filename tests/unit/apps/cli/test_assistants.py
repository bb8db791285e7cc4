"""Settings of assistants: what is there stays, and only the entry of the server is added or changed."""

from __future__ import annotations

import errno
import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast.apps.cli import settings_writing
from ketrag_fast.apps.cli.assistants import ASSISTANTS, SKILL, read_json, set_member
from ketrag_fast.apps.cli.main import main
from ketrag_fast.apps.cli.settings_writing import read_below, replace_below
from ketrag_fast.errors import ConfigError

COMMENTED = """\
// my settings
{
    "theme": "dark", /* not {"light"} */
    "mcpServers": {
        "other": {"command": "x", "args": ["a//b", "\\"}"]}, // keep, this
    },
    // the end
}
"""


@pytest.mark.parametrize(
    ("text", "keys", "expected"),
    [
        ("", ["a", "b"], '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{}", ["a"], '{\n  "a": 1\n}'),
        ('{"a": 0}', ["a"], '{"a": 1}'),
        ('{\n\t"b": [] // why\n}\n', ["a"], '{\n\t"b": [], // why\n\t"a": 1\n}\n'),
        ('{\r\n  "b": {}\r\n}\r\n', ["b", "a"], '{\r\n  "b": {\r\n    "a": 1\r\n  }\r\n}\r\n'),
        ("\ufeff{ }", ["a"], '\ufeff{\n  "a": 1\n}'),
    ],
)
def test_one_member_is_set(text: str, keys: list[str], expected: str) -> None:
    assert set_member(text, keys, 1) == expected


def test_comments_and_other_members_stay() -> None:
    changed = set_member(COMMENTED, ["mcpServers", "ketrag", "args"], ["é"])
    data = read_json(COMMENTED)
    data["mcpServers"]["ketrag"] = {"args": ["é"]}
    assert read_json(changed) == data
    rest = iter(changed.splitlines())
    assert all(line in rest for line in COMMENTED.splitlines())  # in order, and as they were
    again = set_member(changed, ["mcpServers", "ketrag", "args"], ["é"])
    assert again == changed


@pytest.mark.parametrize("text", ["{", "[1]", '{"a" 1}', "{'a': 1}", '{"a": 1} x', '{"a": {"b": 1}} }', "{]"])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        set_member(text, ["a", "b", "c"], 1)


@pytest.mark.parametrize("name", sorted(ASSISTANTS))
@pytest.mark.parametrize("scope", ["project", "user"])
def test_installed_for_every_assistant(
    name: str, scope: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    (project / ".ketrag").mkdir(parents=True)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.delenv("KETRAG_INDEX", raising=False)
    monkeypatch.chdir(project)
    more = ["--user"] if scope == "user" else []
    assert main(["mcp", "--install", name, "--print", *more]) == 0
    printed = capfd.readouterr().out
    assert not [path for path in (*home.rglob("*"), *project.rglob("*")) if path.is_file()]
    assert main(["mcp", "--install", name, *more]) == 2  # nobody can be asked
    assert "--yes" in capfd.readouterr().err
    assert main(["mcp", "--install", name, "--yes", *more]) == 0
    shown = capfd.readouterr()
    written = {
        path.relative_to(home if scope == "user" else project): path.read_text("utf-8")
        for path in (home if scope == "user" else project).rglob("*")
        if path.is_file()
    }
    assert len(written) == 2 and SKILL in written.values()
    settings = next(text for text in written.values() if text != SKILL)
    assert settings in printed and SKILL in printed
    assert str(project / ".ketrag") in settings and "+name: ketrag" in shown.out
    path = next(path for path, text in written.items() if text != SKILL)
    data = tomllib.loads(settings) if path.suffix == ".toml" else json.loads(settings)
    entry = data[ASSISTANTS[name].keys[0]]["ketrag"]
    words = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
    assert words[-3:] == ["mcp", "-i", str(project / ".ketrag")]
    assert Path(words[0]).is_absolute()
    assert main(["mcp", "--install", name, *more]) == 0
    assert "already" in capfd.readouterr().err


def test_what_an_entry_has_besides_the_command_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    real = tmp_path / ".cursor" / "mcp.json"
    real.parent.mkdir()
    real.write_text('{"mcpServers": {"ketrag": {"command": "old", "env": {"A": "1"}}}} // mine\n')
    (tmp_path / ".codex").mkdir()
    codex = tmp_path / ".codex" / "config.toml"
    codex.write_text(
        'model = "x" # mine\n\n[mcp_servers.ketrag]\ncommand = "old"\nargs = [\n  "a",\n]\n'
        'startup_timeout_sec = 9\n\n[mcp_servers.ketrag.env]\nA = "1"\n'
    )
    for name in ("cursor", "codex"):
        assert main(["mcp", "--install", name, "--yes", "-i", "notes=n", "--allow", "year<1900"]) == 0
    words = ["mcp", "-i", f"notes={tmp_path / 'n'}", "-o", "allow=year<1900"]
    entry = read_json(real.read_text())["mcpServers"]["ketrag"]
    assert real.read_text().endswith("}} // mine\n")
    assert (entry["args"][-5:], entry["env"]) == (words, {"A": "1"})
    data = tomllib.loads(codex.read_text())
    own = data["mcp_servers"]["ketrag"]
    assert (own["args"][-5:], own["env"], own["startup_timeout_sec"]) == (words, {"A": "1"}, 9)
    assert codex.read_text().startswith('model = "x" # mine\n\n[mcp_servers.ketrag]\n')
    capfd.readouterr()
    for name, path, text in (
        ("cursor", real, '{"mcpServers": 1}'),
        ("cursor", real, "{broken"),
        ("codex", codex, "mcp_servers.ketrag = {command = 'x'}\n"),
        ("codex", codex, "= 1"),
    ):
        path.write_text(text)
        assert main(["mcp", "--install", name, "--yes"]) == 2
        assert "--print" in capfd.readouterr().err and path.read_text() == text


def test_wrong_options(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["mcp", "--install", "emacs"])
    for words in (["--print"], ["--install", "zed", "--http"], ["--user"], ["--yes"]):
        assert main(["mcp", *words]) == 2, words
    assert capfd.readouterr().out == ""


def test_a_link_in_the_home_of_the_user_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """People keep their settings in a repository and link to them."""
    monkeypatch.setenv("HOME", str(tmp_path))
    real = tmp_path / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_text("{}")
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").symlink_to(real)
    assert main(["mcp", "--install", "cursor", "--user", "--yes"]) == 0
    assert (tmp_path / ".cursor" / "mcp.json").is_symlink()
    assert "ketrag" in read_json(real.read_text())["mcpServers"]


@pytest.mark.parametrize("name", ["cursor", "claude-code", "codex"])
@pytest.mark.parametrize("link", ["file", "folder", "skill file", "skill folder", "dangling"])
def test_links_of_a_project_are_not_followed(
    name: str, link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither is anything outside of the project read, nor written."""
    outside, project = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    project.mkdir()
    monkeypatch.chdir(project)
    assistant = ASSISTANTS[name]
    path = assistant.skill(for_user=False) if "skill" in link else assistant.settings(for_user=False)
    if "folder" in link:
        if len(path.parts) == 1:
            return  # .mcp.json is in the project itself
        (outside / path.name).write_text("{}")
        Path(path.parts[0]).symlink_to(outside)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        target = outside / "victim"
        if link != "dangling":
            target.write_text('{"secret": "of the user"}')
        path.symlink_to(target)
    before = {file: file.read_bytes() for file in outside.iterdir()}
    assert main(["mcp", "--install", name, "--yes"]) == 2
    out, err = capfd.readouterr()
    assert "symbolic link" in err and "of the user" not in out + err
    assert {file: file.read_bytes() for file in outside.iterdir()} == before


def test_a_planted_temporary_file_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of temporary files cannot be guessed, and existing files are never opened for writing."""
    monkeypatch.chdir(tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / ".mcp.json.ketrag-new").symlink_to(victim)
    assert main(["mcp", "--install", "cursor", "--yes"]) == 0
    assert victim.read_text() == "mine"
    monkeypatch.setattr("ketrag_fast.apps.cli.settings_writing.secrets.token_hex", lambda _: "0")
    (tmp_path / ".mcp.json.0.ketrag-new").symlink_to(victim)
    (tmp_path / "..mcp.json.0.ketrag-new").symlink_to(victim)
    assert main(["mcp", "--install", "claude-code", "--yes"]) == 2
    assert victim.read_text() == "mine"


def test_a_folder_that_becomes_a_link_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is swapped after the file was read and before it is written."""
    from ketrag_fast.apps.cli import assistants

    outside = tmp_path / "outside"
    outside.mkdir()
    project = tmp_path / "project"
    (project / ".cursor").mkdir(parents=True)
    monkeypatch.chdir(project)
    edit = assistants.edits("cursor", ["ketrag", "mcp"], for_user=False)[0]
    (project / ".cursor").rename(project / "old")
    (project / ".cursor").symlink_to(outside)
    with pytest.raises(ConfigError, match="symbolic link"):
        assistants.write(edit)
    assert not list(outside.iterdir())


def test_the_settings_of_the_user_are_private_from_the_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / ".claude.json"
    settings.write_text('{"oauth": "secret"}')
    settings.chmod(0o600)
    modes, synced = [], []
    real_open, real_sync = os.open, os.fsync

    def opened(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        handle = real_open(path, flags, mode, **more)
        if flags & os.O_CREAT:
            modes.append((os.fstat(handle).st_mode & 0o777, bool(flags & os.O_EXCL)))
        return handle

    def sync(handle: int) -> None:
        synced.append(stat.S_ISREG(os.fstat(handle).st_mode))
        real_sync(handle)

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "fsync", sync)
    assert main(["mcp", "--install", "claude-code", "--user", "--yes"]) == 0
    assert modes and set(modes) == {(0o600, True)} and synced.count(True) >= len(modes)
    assert settings.stat().st_mode & 0o777 == 0o600
    assert read_json(settings.read_text())["oauth"] == "secret"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("codex", "mcp_servers = 1"),
        ("codex", "mcp_servers = [1]"),
        ("codex", "[mcp_servers]\nketrag = 1"),
        ("codex", "a = " + "[" * 5000),
        ("claude-code", '{"mcpServers": 1}'),
        ("claude-code", '{"mcpServers": []}'),
        ("claude-code", '{"mcpServers": {"ketrag": [1]}}'),
        ("claude-code", '{"a": ' + "[" * 3000 + "]" * 3000 + "}"),
        ("claude-code", "[" * 200_000),
        ("claude-code", '"text"'),
        ("claude-code", "null"),
        ("opencode", '{"mcp": "x"}'),
    ],
)
def test_odd_settings_get_a_message(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = ASSISTANTS[name].settings(for_user=False)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert main(["mcp", "--install", name, "--yes"]) == 2
    assert "cannot be changed" in capfd.readouterr().err
    assert path.read_text() == text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_in_the_place_of_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / ".mcp.json")
    assert main(["mcp", "--install", "claude-code", "--yes"]) == 2


def test_a_settings_file_that_changed_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = Path("settings.json")
    (tmp_path / path).write_text("of another program")
    with pytest.raises(OSError, match="changed meanwhile"):
        replace_below(tmp_path, path, b"read before", b"new", 0o600)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert (tmp_path / path).read_text() == "of another program"


def test_a_huge_settings_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "settings.json").open("wb") as file:
        file.truncate((1 << 26) + 1)
    with pytest.raises(OSError, match="larger than"):
        read_below(tmp_path, Path("settings.json"))


@pytest.mark.parametrize("path", ["../outside.json", "a/../../outside.json", ""])
def test_paths_do_not_leave_the_project(path: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "a").mkdir(parents=True)
    (tmp_path / "outside.json").write_text("{}")
    for one in (Path(path), tmp_path / "outside.json"):
        with pytest.raises(OSError, match="outside of"):
            read_below(project, one)
        with pytest.raises(OSError, match="outside of"):
            replace_below(project, one, b"{}", b"new", 0o600)
    assert (tmp_path / "outside.json").read_text() == "{}"


def test_links_are_not_followed_without_relative_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows."""
    monkeypatch.setattr(settings_writing, "_HAS_OPENAT", False)
    outside, project = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    project.mkdir()
    (outside / "mcp.json").write_text("{}")
    (project / ".cursor").symlink_to(outside)
    with pytest.raises(OSError, match="symbolic link"):
        read_below(project, Path(".cursor/mcp.json"))
    with pytest.raises(OSError, match="symbolic link"):
        replace_below(project, Path(".cursor/mcp.json"), b"{}", b"new", 0o600)
    replace_below(project, Path(".vscode/mcp.json"), None, b"new", 0o600)
    assert (project / ".vscode" / "mcp.json").read_bytes() == b"new"
    assert (outside / "mcp.json").read_text() == "{}"


def test_a_failure_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="full"):
        replace_below(tmp_path, Path(path.name), b"{}", b"new", 0o600)
    assert [one.name for one in tmp_path.iterdir()] == [path.name] and path.read_text() == "{}"


@pytest.mark.skipif(os.name == "nt", reason="files have no modes here")
@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_replaced_file_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    path.chmod(mode)
    replace_below(tmp_path, Path(path.name), b"{}", b"new", 0o644)
    assert path.read_text() == "new" and path.stat().st_mode & 0o777 == mode
