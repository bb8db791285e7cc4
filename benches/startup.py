"""How long a user waits for the command itself: process start to end."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from common import ROOT, header, median, seconds, table


def main() -> None:
    """Print the table."""
    header(
        "Start-up of the command",
        ["Whole processes, wall clock, median of 15 after 2 warm-ups; files are in the page cache."],
    )
    ketrag = str(Path(sys.executable).with_name("ketrag"))
    with tempfile.TemporaryDirectory() as folder:
        index = f"{folder}/index"
        subprocess.run(
            [ketrag, "index", str(ROOT / "examples/polar/articles"), "-i", index, "-q"],
            check=True,
            capture_output=True,
        )
        question = (ROOT / "examples/polar/question.txt").read_text()
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "python -c 'import numpy'": [sys.executable, "-c", "import numpy"],
            "ketrag --help": [ketrag, "--help"],
            "ketrag retrieve, index of the demo": [ketrag, "retrieve", "-i", index, question],
        }
        rows = []
        for name, command in commands.items():

            def run(command: list[str] = command) -> None:
                subprocess.run(command, check=True, capture_output=True)

            times = seconds(run, runs=15, warmup=2)
            rows.append([name, f"{1000 * median(times):.0f}", f"{1000 * min(times):.0f}"])
    table(["command", "median ms", "least ms"], rows)


if __name__ == "__main__":
    main()
