"""The command as a real process: start-up, streams, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import small_model

ROOT = Path(__file__).parents[2]


MODULE = "ketrag_fast.apps.cli.main"


def ketrag(*argv: str, cwd: Path, module: str = MODULE, **env: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", module, *argv],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, **env},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=600,
    )


def test_help_names_the_commands(tmp_path: Path) -> None:
    done = ketrag("--help", cwd=tmp_path)
    assert done.returncode == 0
    for command in ("index", "retrieve", "eval", "graph", "stats", "config"):
        assert command in done.stdout


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["--version"], 0),
        (["--help"], 0),
        (["retrieve", "--budget", "many", "a"], 2),
        (["no-such-command"], 2),
        (["retrieve", "-i", "missing", "a"], 4),
    ],
)
def test_the_package_runs_as_the_command(tmp_path: Path, argv: list[str], code: int) -> None:
    """`python -m ketrag_fast` prints what `ketrag` prints, and ends with the same code."""
    run, same = (ketrag(*argv, cwd=tmp_path, module=name) for name in ("ketrag_fast", MODULE))
    assert (run.returncode, run.stdout, run.stderr) == (same.returncode, same.stdout, same.stderr)
    assert run.returncode == code


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom ketrag_fast.apps.cli.main import parser\nparser().format_help()\n"
        "heavy = {'numpy', 'sqlite3', 'filelock', 'ketrag_fast._core'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "own = {name.split('.')[1] for name in sys.modules if name.startswith('ketrag_fast.')}\n"
        "parts = own & {'backends', 'index', 'kernels', 'pipeline', 'querying', 'server', 'storage'}\n"
        "assert not parts, parts\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)


def test_a_question_without_an_endpoint_loads_no_client(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom ketrag_fast import Document, Index\n"
        "with Index.build([Document('d', 'The Fram sailed.')], 'index') as index:\n"
        "    assert index.retrieve('Fram').passages\n"
        "http = 'ketrag_fast.models.http'\n"
        "client = {'h11', 'http.client', f'{http}.connection', f'{http}.client'}\n"
        "assert not client & set(sys.modules), client & set(sys.modules)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, cwd=tmp_path)


@pytest.mark.parametrize("command", ["index", "reembed", "retrieve", "eval", "stats", "config show"])
def test_each_command_has_help(tmp_path: Path, command: str) -> None:
    done = ketrag(*command.split(), "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--index" in done.stdout


def test_wrong_usage(tmp_path: Path) -> None:
    for argv in (["bogus"], ["index", "--nothing"], ["stats", "--progress", "loud"]):
        done = ketrag(*argv, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "usage: ketrag" in done.stderr


@pytest.mark.parametrize(
    "argv",
    [["index", "--n\x1b[2Jothing\r\nforged"], ["b\x1b[2J"], ["stats", "--progress", "\x9b2J\u202e\nx"]],
)
def test_wrong_usage_cannot_move_the_cursor(tmp_path: Path, argv: list[str]) -> None:
    done = ketrag(*argv, cwd=tmp_path)
    assert done.returncode == 2
    assert not {"\x1b", "\r", "\x9b", "\u202e"} & set(done.stderr)
    assert "forged" not in done.stderr.splitlines() and "x" not in done.stderr.splitlines()


def test_config_show_names_each_origin(tmp_path: Path) -> None:
    (tmp_path / "ketrag.toml").write_text("seed = 7\n")
    done = ketrag("config", "show", "-o", "knn_k=0", "--json", cwd=tmp_path, KETRAG_CORE_RATIO="0.0")
    assert done.returncode == 0, done.stderr
    settings = json.loads(done.stdout)["settings"]
    assert settings["knn_k"] == {"value": 0, "origin": "flag"}
    assert settings["core_ratio"] == {"value": 0.0, "origin": "environment"}
    assert settings["seed"] == {"value": 7, "origin": "file"}
    assert settings["budget"] == {"value": 4000, "origin": "default"}


def test_environment_with_a_wrong_name(tmp_path: Path) -> None:
    done = ketrag("config", "show", cwd=tmp_path, KETRAG_SEEDS="1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "KETRAG_SEEDS" in done.stderr
    assert "hint: did you mean seed?" in done.stderr


def test_environment_may_choose_the_instructions_of_the_encoder(tmp_path: Path) -> None:
    folder = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    for kernel, code in (("portable", 0), ("mmx", 1)):
        done = ketrag(
            "models",
            "check",
            f"native:{folder}",
            cwd=tmp_path,
            KETRAG_ENCODER_KERNEL=kernel,
            HOME=str(tmp_path),
        )
        assert done.returncode == code, done.stderr
        assert kernel in done.stdout + done.stderr


def test_reader_of_our_output_that_goes_away(tmp_path: Path) -> None:
    command = f"'{sys.executable}' -m ketrag_fast.apps.cli.main config show | head -c 1 >/dev/null"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
