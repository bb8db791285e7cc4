"""docs/how-to/page.md: the tour of the page can be done, and what it does is what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.make_tour import PAGE, PICTURES, take

from tests.support.browser import browser

pytestmark = pytest.mark.usefixtures("loopback")
SAID = "    * The page "


def test_the_tour_can_be_done_and_its_transcript_is_current(tmp_path: Path) -> None:
    with browser(tmp_path / "profile") as page:
        text = take(page, None)
        errors = [line for line in page.problems if "status of 401" not in line and "WebGL" not in line]
    written = PAGE.read_text("utf-8")
    # What the page quotes and counts changes with the ranking; what is done, and in which order, does not.
    steps = [[line for line in own.splitlines() if not line.startswith(SAID)] for own in (text, written)]
    links = [[re.sub(r"`/#[^`]*`", "LINK", line) for line in own] for own in steps]
    assert links[0] == links[1], "run tools/make_tour.py"
    said = "\n".join(line for line in text.splitlines() if line.startswith(SAID))
    for part in ("20 files: 20 read", "56 files: 56 read", "4711", "Colin Archer was born in 1832 at Larvik"):
        assert part in said
    assert errors == []


def test_every_picture_of_the_tour_is_shown() -> None:
    shown = set(re.findall(r"pictures/(tour-[\w-]+\.png)", PAGE.read_text("utf-8")))
    assert shown == {path.name for path in PICTURES.glob("tour-*.png")}
