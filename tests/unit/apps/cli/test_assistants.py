"""Settings of assistants: what is there stays, and only the entry of the server is added or changed."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from ketrag_fast.apps.cli.assistants import ASSISTANTS, SKILL, read_json, set_member
from ketrag_fast.apps.cli.main import main

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
    cursor, real = tmp_path / ".cursor" / "mcp.json", tmp_path / "dotfiles.json"
    cursor.parent.mkdir()
    real.write_text('{"mcpServers": {"ketrag": {"command": "old", "env": {"A": "1"}}}} // mine\n')
    cursor.symlink_to(real)
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
    assert cursor.is_symlink() and real.read_text().endswith("}} // mine\n")
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
