"""Every `ketrag` command in the documentation has options that exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast.apps.cli.main import parse
from tests.process import ROOT

PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "examples").rglob("README.md")),
]
_BLOCK = re.compile(
    r"^(?:```|~~~)[a-z]*\n(.*?)^(?:```|~~~)$|^((?: {4,}.*\n|\n(?= {4}))+)", re.MULTILINE | re.DOTALL
)
_INLINE = re.compile(r"`(ketrag [a-z][^`\n]*)`")


def commands(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the commands in the code of a page (continued lines as one) and whether they are whole."""
    for fenced, indented in _BLOCK.findall(text):
        for line in (fenced or indented).replace("\\\n", " ").splitlines():
            found = re.match(r"\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(ketrag [a-z-].*)", line)
            if found:
                yield found[1], True
    for command in _INLINE.findall(text):
        yield command, False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_parses(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command, whole in commands(page.read_text("utf-8")):
        if re.search(r"\.\.\.|NAME=VALUE|^ketrag SYSTEM", command):
            continue  # a pattern rather than a command
        argv = shlex.split(re.sub(r" [<>|] .*", "", command), comments=True)[1:]  # the shell's part
        try:
            parse(argv)
        except SystemExit as stop:
            message = capsys.readouterr().err
            # In a sentence a command may lack its arguments: "run `ketrag merge` again".
            mentioned = not whole and re.search(r"arguments? .*(?:required|expected)", message)
            assert not stop.code or mentioned, f"{command}: {message}"
