"""The files that ARCHITECTURE.md names for common changes exist."""

from __future__ import annotations

import re

from tests.process import ROOT

PACKAGE = ROOT / "python" / "ketrag_fast"


def test_the_places_to_change_exist() -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("## Where to change what")[2]
    rows = re.findall(r"^\| [^|]+ \| (.+) \|$", section.partition("\n## ")[0], re.MULTILINE)
    assert len(rows) > 20
    for row in rows:
        folder = ""  # `query/`: `grep.py` is query/grep.py
        for name in re.findall(r"`([\w/]+(?:/|\.py|\.rs))`", row):
            paths = [base / inside / name for base in (ROOT, PACKAGE) for inside in ("", folder)]
            assert "NAME" in name or any(path.exists() for path in paths), f"{row}: {name}"
            folder = name if name.endswith("/") else folder
