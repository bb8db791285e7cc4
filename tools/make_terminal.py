"""Draw docs/pictures/terminal.svg, the picture at the top of the README: `python tools/make_terminal.py`.

The commands run in a pseudo-terminal, and what they print is drawn with its colours. The size of the index
and the seconds of the build are left out, because they differ from run to run.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
OUT: Final = ROOT / "docs" / "pictures" / "terminal.svg"
COMMANDS: Final = (
    ("ketrag index ~/notes", ("index", "{home}/notes")),
    ('ketrag search "Who built the Fram?" -n 3', ("search", "Who built the Fram?", "-n", "3")),
)
COLUMNS: Final = 96
WIDE, HIGH, EDGE = 8.4, 20, 16
"""Size of a character and width of the border, in pixels."""
STYLES: Final = {"1;31": "hit", "35": "path", "32": "line", "2": "dim", "36": "prompt"}
CSS: Final = (
    "rect{fill:#1b1f24}text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d7dade;"
    "white-space:pre}.hit{fill:#ff9a92;font-weight:700}.path{fill:#d9a5ff}.line{fill:#8fd694}.dim{fill:#9aa4af}"
    ".prompt{fill:#7cc4ee}"
)


def printed_by(arguments: list[str], home: Path) -> str:
    """Return what a command prints on a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    process = subprocess.Popen(  # noqa: S603 - this package, with constant arguments
        [sys.executable, "-m", "ketrag_fast", *arguments],
        cwd=home,
        env={**kept, "TERM": "xterm-256color", "HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:
        pass  # the terminal is closed: the command has ended
    finally:
        os.close(ours)
    if process.wait():
        raise SystemExit(f"ketrag {' '.join(arguments)} failed")
    return b"".join(parts).decode().replace("\r\n", "\n")


def spans_of(line: str) -> Iterator[tuple[int, str, str]]:
    """Yield column, style and text of the parts of a line."""
    line = re.sub(r"\x1b\]8;;.*?\x1b\\", "", line)
    column, style = 0, ""
    for place, part in enumerate(re.split(r"\x1b\[([\d;]*)m", line)):
        if place % 2:
            style = STYLES.get(part, "")
        elif part:
            yield column, style, part
            column += len(part)


def draw(lines: list[str]) -> str:
    """Return the picture of lines with the escape sequences of a terminal."""
    width, height = round(COLUMNS * WIDE + 2 * EDGE), len(lines) * HIGH + 2 * EDGE
    rows = []
    for number, line in enumerate(lines):
        y = EDGE + number * HIGH + 15
        for column, style, text in spans_of(line):
            blank = len(text) - len(text.lstrip())
            text, x = text.strip(), EDGE + (column + blank) * WIDE
            if text:
                kind = f' class="{style}"' if style else ""
                size = (
                    f'x="{x:.1f}" y="{y}" textLength="{len(text) * WIDE:.1f}" lengthAdjust="spacingAndGlyphs"'
                )
                rows.append(f"<text{kind} {size}>{escape(text)}</text>")
    said = "A terminal in which ketrag indexes a folder and finds passages by a question"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{said}">\n<style>{CSS}</style>\n'
        f'<rect width="{width}" height="{height}" rx="8"/>\n' + "\n".join(rows) + "\n</svg>\n"
    )


def main() -> int:
    """Run the commands over the example articles and write the picture."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        home = Path(name).resolve()
        shutil.copytree(ROOT / "examples" / "polar" / "articles", home / "notes")
        for shown, arguments in COMMANDS:
            said = printed_by([part.format(home=home) for part in arguments], home)
            said = re.sub(r", [\d.]+ [kM]?B, [\d.]+ s \(.*\)", "", said)
            lines += [f"\x1b[36m$\x1b[0m {shown}", *said.rstrip("\n").split("\n"), ""]
    OUT.write_text(draw(lines[:-1]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
