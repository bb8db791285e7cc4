"""Run the tests that are marked `soak`, file by file, and record them in docs/internals/durability.md.

    python tools/make_soak_table.py            # all files
    python tools/make_soak_table.py FILE...    # these; the rows of the others stay as they are
    python tools/make_soak_table.py --list     # none; adds rows of new files

A file without a run has the row "never". The exit code is 1 if any file failed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "internals" / "durability.md"
_TABLE: Final = re.compile(r"(?<=<!-- soak -->\n).*?(?=<!-- end -->)", re.DOTALL)
_ROW: Final = re.compile(r"^\| (tests/\S+) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
NEVER: Final = ("never", "-", "-")
Row = tuple[str, str, str]


def files() -> list[str]:
    """The test files that have tests marked soak."""
    marked = [p for p in sorted((ROOT / "tests").rglob("test_*.py")) if "mark.soak" in p.read_text("utf-8")]
    return [path.relative_to(ROOT).as_posix() for path in marked]


def recorded(page: str) -> dict[str, Row]:
    """The rows of the table: when, at which commit, and how."""
    return {name: (when, commit, how) for name, when, commit, how in _ROW.findall(page)}


def table(rows: Mapping[str, Row]) -> str:
    """The table as it stands on the page."""
    head = ["| tests | last run | commit | result |", "| --- | --- | --- | --- |"]
    return (
        "\n" + "\n".join([*head, *(f"| {name} | {' | '.join(row)} |" for name, row in rows.items())]) + "\n\n"
    )


def with_rows(page: str, rows: Mapping[str, Row]) -> str:
    """The page with these rows in its table."""
    return _TABLE.sub(lambda _: table(rows), page)


def head_commit(root: Path = ROOT) -> str:
    """Return the short hash of the checkout's commit. Ends the program if git cannot report one."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    hint = "a row names the commit that was tested: run this with git in a checkout that has a commit"
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as error:
        raise SystemExit(f"git cannot be run: {error}; {hint}") from None
    if done.returncode != 0:
        raise SystemExit(f"git reports no commit of {root}: {done.stderr.strip()}; {hint}")
    return done.stdout.strip()


def run(name: str, commit: str) -> tuple[Row, bool]:
    """Run the soak tests of one file; return its row and whether they passed."""
    command = [sys.executable, "-m", "pytest", "-m", "soak", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    sys.stdout.write(done.stdout)
    counted = [
        line for line in done.stdout.splitlines() if re.search(r"\d+ (passed|failed|error|skipped)", line)
    ]
    how = counted[-1].strip("= ") if counted else f"exit code {done.returncode}"
    return (f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", commit, how), done.returncode == 0


def main() -> int:
    """Runs the files and rewrites the table after each, so that an interrupted run keeps its rows."""
    known, good = recorded(PAGE.read_text("utf-8")), True
    rows = {name: known.get(name, NEVER) for name in files()}
    PAGE.write_text(with_rows(PAGE.read_text("utf-8"), rows), "utf-8")
    chosen = [] if sys.argv[1:] == ["--list"] else sys.argv[1:] or list(rows)
    commit = head_commit() if chosen else ""  # before the tests, which take hours
    for name in chosen:
        rows[name], passed = run(name, commit)
        good = good and passed
        PAGE.write_text(with_rows(PAGE.read_text("utf-8"), rows), "utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
