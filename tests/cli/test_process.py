"""The command as a real process: start-up, streams, exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests import small_model
from tests.process import MODULE, environment, ketrag, python, start
from tests.support.parts import part


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["--help"], 0),
        (["no-such-command"], 2),
        (["retrieve", "-i", "missing", "a"], 4),
    ],
)
def test_the_package_runs_as_the_command(tmp_path: Path, argv: list[str], code: int) -> None:
    """`python -m ketrag_fast` prints what `ketrag` prints, and ends with the same code."""
    run, same = (ketrag(*argv, cwd=tmp_path, module=name) for name in ("ketrag_fast", MODULE))
    assert run == same
    assert run.code == code


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom ketrag_fast.apps.cli.main import parser\nparser([]).format_help()\n"
        "heavy = {'numpy', 'sqlite3', 'filelock', 'ketrag_fast._core'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "own = {name.split('.')[1] for name in sys.modules if name.startswith('ketrag_fast.')}\n"
        "parts = own & {'backends', 'index', 'kernels', 'pipeline', 'querying', 'server', 'storage'}\n"
        "assert not parts, parts\n"
    )
    assert python(code, cwd=tmp_path).err == ""


def test_a_question_without_an_endpoint_loads_no_client(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom ketrag_fast import Document, Index\n"
        "with Index.build([Document('d', 'The Fram sailed.')], 'index') as index:\n"
        "    assert index.retrieve('Fram').passages\n"
        "http = 'ketrag_fast.models.http'\n"
        "client = {'httpcore', 'http.client', f'{http}.connections', f'{http}.client'}\n"
        "assert not client & set(sys.modules), client & set(sys.modules)\n"
    )
    assert python(code, cwd=tmp_path).err == ""


@pytest.mark.parametrize(
    "argv",
    [["index", "--n\x1b[2Jothing\r\nforged"], ["b\x1b[2J"], ["stats", "--progress", "\x9b2J\u202e\nx"]],
)
def test_wrong_usage_cannot_move_the_cursor(tmp_path: Path, argv: list[str]) -> None:
    done = ketrag(*argv, cwd=tmp_path)
    assert done.code == 2
    assert not {"\x1b", "\r", "\x9b", "\u202e"} & set(done.err)
    assert "forged" not in done.err.splitlines() and "x" not in done.err.splitlines()


def test_environment_with_a_wrong_name(tmp_path: Path) -> None:
    done = ketrag("config", "show", cwd=tmp_path, KETRAG_SEEDS="1")
    assert (done.code, done.out) == (2, "")
    assert "KETRAG_SEEDS" in done.err
    assert "hint: did you mean seed?" in done.err


def test_environment_may_choose_the_instructions_of_the_encoder(tmp_path: Path) -> None:
    folder = small_model.save(tmp_path / "model", small_model.config(max_position_embeddings=66))
    for kernel, code in (("portable", 0), ("mmx", 1)):
        env = {"KETRAG_ENCODER_KERNEL": kernel, "HOME": str(tmp_path)}
        done = ketrag("models", "check", f"native:{folder}", cwd=tmp_path, **env)
        assert done.code == code, done.err
        assert kernel in done.out + done.err


def test_reader_of_our_output_that_goes_away(tmp_path: Path) -> None:
    command = f"'{sys.executable}' -m {MODULE} config show | head -c 1 >/dev/null"
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, check=False
    )
    assert done.stderr == b""


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe without a reader is another error there")
def test_a_build_whose_reader_goes_away_keeps_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("The Fram sailed.\n", "utf-8")
    (tmp_path / "docs" / "bad.txt").write_bytes(b"\0\0")
    for argv, code in ((("index", "docs"), 3), (("stats",), 0)):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer) as pipe:
            done = subprocess.run(
                [sys.executable, "-m", MODULE, *argv],
                cwd=tmp_path,
                env=environment(),
                stdout=pipe,
                stderr=subprocess.PIPE,
                check=False,
                timeout=600,
            )
        assert (done.returncode, b"Broken" in done.stderr) == (code, False), done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(("columns", "term"), [(30, "xterm"), (100, "xterm"), (100, "dumb")])
def test_progress_fits_the_terminal(tmp_path: Path, columns: int, term: str) -> None:
    import fcntl
    import pty
    import struct
    import termios

    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a_file_with_a_long_name.md").write_text("The Fram sailed.\n", "utf-8")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-m", MODULE, "index", "docs"],
        cwd=tmp_path,
        env=environment(TERM=term),
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    ):
        os.close(theirs)
        shown = _all_of(ours).decode()
    if term == "dumb":
        assert shown == ""
        return
    lines = [line for line in shown.replace("\n", "\r").split("\r") if line]
    assert any(line.startswith("read ") for line in lines)
    assert all(len(line) < columns for line in lines), lines
    assert any("a_file_with_a_long_name.md" in line for line in lines) == (columns == 100)


def _all_of(terminal: int) -> bytes:
    """Return what is written to a terminal until its writers have gone."""
    shown = b""
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:  # how Linux reports the end
        pass
    finally:
        os.close(terminal)
    return shown


@pytest.mark.skipif(sys.platform == "win32", reason="no process can be sent SIGINT alone")
@pytest.mark.parametrize("http", [False, True])
def test_interrupt_ends_a_server_of_tools(tmp_path: Path, http: bool) -> None:
    part("mcp", "server")
    (tmp_path / "a.md").write_text("The Fram sailed.\n", "utf-8")
    assert ketrag("index", "a.md", cwd=tmp_path).code == 0
    argv = ("mcp", *(("--http", "--port", "0") if http else ()))
    child = start(*argv, cwd=tmp_path, stdin=subprocess.PIPE)
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None
    if http:
        assert "serving" in child.stderr.readline()
    else:  # it is up once it has replied
        child.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        child.stdin.flush()
        assert '"id":1' in child.stdout.readline().replace(" ", "")
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == 0
    assert "again" not in child.stderr.read()
    child.communicate()
