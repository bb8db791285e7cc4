"""Verify the systemd unit of examples/service with `systemd-analyze verify`; fail on any message.

    python .ci/check_unit.py

The program that the unit starts is not installed where this runs, so /bin/true takes its place.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

UNIT: Final = Path(__file__).resolve().parents[1] / "examples" / "service" / "ketrag.service"


def messages(unit: str) -> str:
    """Return what systemd reports about a unit; empty if it is correct."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / UNIT.name
        path.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit, flags=re.MULTILINE), "utf-8")
        command = ["systemd-analyze", "verify", "--man=no", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    text = (done.stdout + done.stderr).strip()
    return text or ("" if done.returncode == 0 else f"systemd-analyze ended with {done.returncode}")


def main() -> int:
    """Print the messages; return 1 if there are any."""
    text = messages(UNIT.read_text("utf-8"))
    if text:
        sys.stderr.write(f"{text}\n")
    return 1 if text else 0


if __name__ == "__main__":
    sys.exit(main())
