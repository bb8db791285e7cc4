"""Help, suggestions, -o, `config list` and completion."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast.apps.cli.command_parser import CommandParser
from ketrag_fast.apps.cli.completion import walk_commands
from ketrag_fast.apps.cli.main import COMMANDS, parser
from ketrag_fast.base.config import catalogue
from tests.process import command


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def declared() -> Iterator[tuple[str, CommandParser]]:
    return ((path, inner) for path, inner in walk_commands(parser()) if path)


def test_short_help_shows_the_examples(tmp_path: Path) -> None:
    for path, inner in declared():
        code, out, _ = command(*path.split(), "-h", cwd=tmp_path)
        assert code == 0
        assert inner.examples and all(f"  {example}\n" in out for example in inner.examples), path


def test_help_of_the_program_lists_every_command(tmp_path: Path) -> None:
    code, out, _ = command("-h", cwd=tmp_path)
    assert code == 0
    assert all(re.search(rf"^  {name} ", out, re.MULTILINE) for name in COMMANDS)


def test_help_of_the_program_has_four_groups_and_search_comes_first(tmp_path: Path) -> None:
    _, out, _ = command("-h", cwd=tmp_path)
    assert len(re.findall(r"^[A-Z][a-z ]+:$", out, re.MULTILINE)) == 4
    assert next(iter(COMMANDS)) == "search"
    assert out.index("  search ") < out.index("  index ")


def test_few_need_the_forms_of_answers(tmp_path: Path) -> None:
    _, short, _ = command("ask", "-h", cwd=tmp_path)
    _, full, _ = command("ask", "--help", cwd=tmp_path)
    for option in ("--kind", "--option", "--answer-tokens"):
        assert option not in short and option in full


def test_examples_are_accepted() -> None:
    """Each example that calls ketrag is a command line that the parser takes."""
    import shlex

    from ketrag_fast.apps.cli.main import parse
    from ketrag_fast.apps.cli.options import flags

    for _, inner in declared():
        for example in inner.examples:
            words = shlex.split(example.partition(">")[0] if "> " in example else example, comments=True)
            words = words[next(at for at, word in enumerate(words) if word == "ketrag") + 1 :]
            flags(parse(words))


def test_a_command_line_becomes_a_typed_value() -> None:
    from ketrag_fast.apps.cli.main import parse
    from ketrag_fast.apps.cli.search import Search

    command = parse(["search", "ice", "--glob", "a*", "--glob", "b*", "-n", "3", "--mode", "walk", "-q"])
    assert isinstance(command, Search)
    assert (command.question, command.n, command.glob, command.hops) == ("ice", 3, ("a*", "b*"), ())
    assert (command.quiet, command.files, command.grep, command.settings) == (
        True,
        False,
        None,
        {"mode": "walk"},
    )


def test_full_help_adds_the_other_shared_settings(tmp_path: Path) -> None:
    _, short, _ = command("index", "-h", cwd=tmp_path)
    _, full, _ = command("index", "--help", cwd=tmp_path)
    assert "--record" not in short and "--record FILE" in full
    assert "overlap=N" in full and "knn_k" not in full.partition("examples:")[0]
    assert "systems: default, ket-rag" in full and "presets: ket-rag:reference" in full
    assert "ketrag config list {ket-rag,g2cons,cg-rag}" in full


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (("idnex",), "did you mean index?"),
        (("index", "--embeder", "x"), "did you mean --embedder?"),
        (("retrieve", "Who?", "--tp", "3"), "did you mean --top?"),
        (("index", "--knn-k", "3"), "-o knn_k=VALUE"),
        (("index", "--knnk", "3"), "did you mean -o knn_k=VALUE?"),
        (("index", ".", "-o", "knnk=3"), "did you mean knn_k?"),
        (("index", ".", "--system", "nodrag"), "did you mean noderag?"),
        (("index", ".", "--modes", "auto,wlk"), "did you mean walk?"),
        (("retrieve", "Who?", "--mode", "wlk"), "did you mean walk?"),
        (("retrieve", "Who?", "-o", "refresh=alway"), "did you mean always?"),
        (("stats", "--progress", "jsn"), "did you mean json?"),
        (("config", "lst"), "did you mean list?"),
        (("config", "list", "nodrag"), "did you mean noderag?"),
        (("completion", "bsh"), "did you mean bash?"),
        (("-i", "ix", "retrieve", "Who?"), "options follow the command"),
        (("-o", "seed=1", "index"), "options follow the command"),
    ],
)
def test_misspelt_names_get_a_suggestion_and_exit_with_2(
    argv: tuple[str, ...], hint: str, tmp_path: Path
) -> None:
    code, out, err = command(*argv, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "hint: " in err and hint in err


@pytest.mark.parametrize("option", ["--foo", "--on", "--x", "--nothing-like-it"])
def test_an_option_that_resembles_none_gets_no_suggestion(option: str, tmp_path: Path) -> None:
    code, _, err = command("index", option, cwd=tmp_path)
    assert (code, "did you mean" in err) == (2, False), err
    assert "hint: ketrag index -h" in err


def test_o_sets_any_setting(tmp_path: Path) -> None:
    options = ("-o", "knn_k=7", "-o", "subgraphs=5", "-o", "read-text=10", "-o", "knn_k=8")
    _, out, _ = command("config", "show", *options, "--json", cwd=tmp_path)
    shown = json.loads(out)["settings"]
    assert shown["knn_k"] == {"value": 8, "origin": "flag"}  # the last one counts
    assert (shown["subgraphs"]["value"], shown["read_text"]["value"]) == (5, 10)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("config", "show", "-o", "seed"), "-o 'seed' has no value"),
        (("config", "show", "-o", "seed=1", "--seed", "2"), "seed is given twice"),
        (("config", "show", "-o", "seed=x"), "seed: 'x' is not a whole number"),
        (("retrieve", "Who?", "-o", "chunk_tokens=100"), "chunk_tokens is a build setting"),
        (("stats", "-o", "allow="), "allow is empty, which restricts nothing"),
    ],
)
def test_o_reports_wrong_use(argv: tuple[str, ...], message: str, tmp_path: Path) -> None:
    code, out, err = command(*argv, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert message in err


def test_config_list_knows_presets_and_systems_without_settings(tmp_path: Path) -> None:
    _, out, _ = command("config", "list", "ket-rag:reference", cwd=tmp_path)
    assert out == command("config", "list", "ket-rag", cwd=tmp_path)[1]
    code, out, err = command("config", "list", "default", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "the system plain has no settings besides the shared ones" in err and "g2cons" in err


def test_config_list(tmp_path: Path) -> None:
    _, out, _ = command("config", "list", "--json", cwd=tmp_path)
    rows = {row["name"]: row for row in json.loads(out)["settings"]}
    assert set(rows) == set(catalogue())
    assert rows["core_ratio"] == {
        "name": "core_ratio",
        "system": "ket-rag",
        "type": "number",
        "default": 0.8,
        "optional": False,
        "choices": [],
        "min": 0.0,
        "max": 1.0,
        "concerns": "build",
        "help": catalogue()["core_ratio"].help,
    }
    _, out, _ = command("config", "list", "g2cons", cwd=tmp_path)
    lines = out.splitlines()
    assert lines[0].split() == ["name", "type", "default", "range", "help"]
    assert {line.split()[0] for line in lines[1:]} == {
        n for n, s in catalogue().items() if s.owner == "g2cons"
    }
    assert next(line for line in lines if line.startswith("theta_sem")).split()[1:4] == [
        "number",
        "0.65",
        "-1..1",
    ]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ketrag", "retr"], {"retrieve"}),
        (["ketrag", "index", "--emb"], {"--embedder"}),
        (["ketrag", "retrieve", "--mode", "cg-rag-s"], {"cg-rag-sparse"}),
        (["ketrag", "index", "-o", "knn_"], {"knn_k="}),
        (["ketrag", "config", "sh"], {"show"}),
        (["ketrag", "bench", "systems", "--systems"], {"--systems"}),
        (["ketrag", "completion", "f"], {"fish"}),
    ],
)
def test_bash_completes(words: list[str], expected: set[str], tmp_path: Path) -> None:
    _, script, _ = command("completion", "bash", cwd=tmp_path)
    listed = " ".join(f"'{word}'" for word in words)
    ask = f'COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _ketrag; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script + ask], capture_output=True, text=True, check=True)
    assert (done.stderr, set(done.stdout.split())) == ("", expected)


def shell_path(name: str) -> str:
    """Return the path of a shell. It is required in CI, and elsewhere the test is skipped without it."""
    path = shutil.which(name)
    if path is None:
        assert os.environ.get("CI") != "true", f"{name} is not installed"
        pytest.skip(f"{name} is not installed")
    return path


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("ketrag completion f", {"fish"}),
        ("ketrag con", {"config"}),
        ("ketrag config sh", {"show"}),
        ("ketrag retrieve --mod", {"--mode"}),
        ("ketrag index -o knn_", {"knn_k="}),
        ("ketrag retrieve --mode noder", {"noderag"}),
    ],
)
def test_fish_completes(typed: str, expected: set[str], tmp_path: Path) -> None:
    fish = shell_path("fish")
    _, script, _ = command("completion", "fish", cwd=tmp_path)
    file = tmp_path / "ketrag.fish"
    file.write_text(script)
    done = subprocess.run(
        [fish, "--no-config", "-c", f"source {file}; complete --do-complete '{typed}'"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    found = {line.partition("\t")[0] for line in done.stdout.splitlines()}
    assert (done.stderr, found) == ("", expected)


def keystrokes(argv: list[str], typed: list[str], wanted: str, env: dict[str, str]) -> str:
    """Type into a program on a terminal, and return what it printed until `wanted` appears."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(argv[0], argv, env)
    seen = b""
    try:
        for line in typed:
            os.write(terminal, line.encode())
        while wanted.encode() not in seen:
            ready, _, _ = select.select([terminal], [], [], 60)
            assert ready, seen.decode(errors="replace")
            seen += os.read(terminal, 65536)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    return seen.decode(errors="replace")


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("ketrag config sh", "ketrag config show"),
        ("ketrag index -o knn_", "ketrag index -o knn_k="),
    ],
)
def test_zsh_completes_on_a_terminal(typed: str, completed: str, tmp_path: Path) -> None:
    """The Tab key completes the line; Ctrl-A, `echo` and Return then print it."""
    zsh = shell_path("zsh")
    _, script, _ = command("completion", "zsh", cwd=tmp_path)
    (tmp_path / "ketrag.zsh").write_text(script)
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TERM": "dumb", "LANG": "C.UTF-8"}
    keys = [
        f"ZDOTDIR={tmp_path} ZSH_DISABLE_COMPFIX=true\n",
        f"autoload -Uz compinit && compinit -u && source {tmp_path}/ketrag.zsh\n",
        f"{typed}\t\x01echo '<'\x05'>'\n",
    ]
    seen = keystrokes([zsh, "-f", "-i"], keys, f"<{completed}>", env)
    assert f"<{completed}>" in seen
