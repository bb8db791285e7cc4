"""The command as a real process, with none of this machine's settings."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
POLAR = ROOT / "examples" / "polar"


class Done(NamedTuple):
    """How a process ended."""

    code: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    """The environment without settings (`KETRAG_*`: they would change results), and the package on the path.

    The encoder's kernel and the hidden instructions stay: a suite that runs on one kernel, or without some
    instructions, runs its commands that way too.
    """
    instructions = ("KETRAG_ENCODER_KERNEL", "KETRAG_CPU_WITHOUT")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("KETRAG_") or name in instructions
    }
    path = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return {**kept, "PYTHONPATH": path, **more}


MODULE = "ketrag_fast.apps.cli.main"


def start(
    *argv: str, cwd: Path, variables: Mapping[str, str] | None = None, module: str = MODULE, **pipes: Any
) -> subprocess.Popen[str]:
    """`ketrag ARGV...`, running."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *argv],
        cwd=cwd,
        env=environment(**(variables or {})),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        **pipes,
    )


def ketrag(
    *argv: str,
    cwd: Path,
    text: str | None = None,
    timeout: float = 600,
    module: str = MODULE,
    **variables: str,
) -> Done:
    """`ketrag ARGV...`, ended."""
    child = start(*argv, cwd=cwd, variables=variables, module=module, stdin=subprocess.PIPE)
    out, err = child.communicate(text, timeout=timeout)
    return Done(child.returncode, out, err)


def python(code: str, *argv: str, cwd: Path, timeout: float = 600) -> Done:
    """A little program in a process of its own."""
    child = subprocess.run(
        [sys.executable, "-c", code, *argv],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )
    return Done(child.returncode, child.stdout, child.stderr)


def command(*argv: str, cwd: Path, **more: str) -> Done:
    """The command's own entry in this process: as `ketrag`, without the time to start one."""
    from ketrag_fast.apps.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    before, own = dict(os.environ), environment(**more)
    os.environ.clear()
    os.environ.update(own)
    try:
        with chdir(cwd), redirect_stdout(out), redirect_stderr(err):
            try:
                code = main(argv)
            except SystemExit as error:
                code = int(error.code or 0)
    finally:
        os.environ.clear()
        os.environ.update(before)
    return Done(code, out.getvalue(), err.getvalue())
