"""Rules that keep the package usable on Windows. Linux does not notice when they are broken."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from ketrag_fast import Settings, _core
from ketrag_fast.models.llms.llama import gguf_file
from ketrag_fast.readers import parser_memory
from ketrag_fast.systems.shared import memory_bound

PACKAGE: Final = Path(__file__).parents[2] / "python" / "ketrag_fast"
UNIX_ONLY: Final = {"crypt", "fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}


def nodes() -> Iterator[tuple[str, ast.AST]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            yield str(path.relative_to(PACKAGE)), node


def mode_of(call: ast.Call) -> str:
    """The mode of a call of `open`, `Path.open` or `os.fdopen`: its only argument that looks like one."""
    constants = [
        one.value
        for one in [*call.args, *(word.value for word in call.keywords)]
        if isinstance(one, ast.Constant)
    ]
    return next(
        (value for value in constants if isinstance(value, str) and set(value) <= set("rwaxbt+")), "r"
    )


def test_text_is_written_with_an_encoding_and_the_same_line_ends_everywhere() -> None:
    """Windows would write other bytes: its default encoding is not UTF-8, and `\\n` becomes two bytes."""
    seen, faults = 0, []
    for name, node in nodes():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
            continue
        function = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        words = {word.arg for word in node.keywords}
        if function == "write_text":
            # A writer of records has a method of this name, which takes a record.
            writes = len(node.args) < 2 or isinstance(node.args[1], ast.Constant)
        else:
            mode = mode_of(node)
            writes = function in ("open", "fdopen") and "b" not in mode and bool(set("wax") & set(mode))
        if writes:
            seen += 1
            if not {"encoding", "newline"} <= words:
                faults.append(f"{name}:{node.lineno}")
    assert faults == []
    assert seen >= 6


def test_modules_of_unix_are_imported_when_they_are_used() -> None:
    """Otherwise the import of the package fails. `mypy --platform win32` finds calls of what they contain."""
    found = []
    for name, node in nodes():
        if isinstance(node, ast.Import) and {one.name for one in node.names} & UNIX_ONLY:
            found.append((name, node.col_offset))
        if isinstance(node, ast.ImportFrom) and node.module in UNIX_ONLY:
            found.append((name, node.col_offset))
    assert {name for name, _ in found} == {
        "systems/shared/memory_bound.py",
        "readers/jsonl.py",
        "readers/parser_memory.py",
    }
    assert all(column > 0 for _, column in found)


def test_windows_reports_and_limits_memory_through_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions of Windows themselves are tested in Rust (rust/base/src/windows.rs)."""
    limits: list[int] = []
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(_core, "windows_memory", lambda: (64_000_000_000, 3_000_000_000))
    monkeypatch.setattr(_core, "windows_peak_memory", lambda: 123)
    monkeypatch.setattr(_core, "windows_limit_memory", limits.append)
    monkeypatch.setattr(gguf_file, "Path", lambda _: PACKAGE / "missing")  # no /proc, no cgroup
    monkeypatch.setattr(gguf_file, "_GROUP", PACKAGE / "missing")
    assert memory_bound.memory_of(Settings()) == 16_000
    assert memory_bound.peak_memory() == 123
    assert gguf_file.free_memory() == 3_000_000_000
    parser_memory.limit_memory(200)
    assert limits == [200_000_000]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has these functions")
def test_other_systems_do_not_have_the_functions_of_windows() -> None:
    assert _core.windows_memory() is None
    assert _core.windows_peak_memory() is None
    assert _core.windows_limit_memory(200_000_000) is False
