"""The picture at the top of the README shows what the commands print today."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.process import ROOT

pytest.importorskip("pty", reason="the picture needs a pseudo-terminal")
pytest.importorskip("termios")


def test_the_picture_is_what_the_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import make_terminal

    kept = ROOT / "docs" / "pictures" / "terminal.svg"
    monkeypatch.setattr(make_terminal, "OUT", tmp_path / "terminal.svg")
    assert make_terminal.main() == 0
    text = (tmp_path / "terminal.svg").read_text("utf-8")
    assert text == kept.read_text("utf-8"), "draw it again: python tools/make_terminal.py"
    hits = [one.text for one in ElementTree.fromstring(text).iter() if one.get("class") == "hit"]
    assert hits[:2] == ["Fram", "built"]
