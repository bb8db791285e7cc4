"""One large PDF in several processes: the same text, order and failures as in one."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ketrag_fast.readers import Item, SourceFile, items_of, sandbox
from ketrag_fast.readers.pdf import parallel
from ketrag_fast.readers.sandbox import Apart
from ketrag_fast.types import Document
from ketrag_fast.types.locations import to_text
from tests.support.parts import part
from tests.support.pdf_files import Page, pdf

part("pypdfium2", "documents")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A PDF with running heads, words cut by pages, tables and a picture."""
    pages = []
    for number in range(230):
        page = Page(image=number == 77)
        if number != 77:
            page.text(60, 40, f"On the Voyage | {number + 1}", 9)
            for line in range(8):
                page.text(60, 100 + 14 * line, f"ice and snow of {number} in row {line} of a well-known", 10)
            for row in range(3):
                page.text(60, 300 + 16 * row, f"Sledge {row}", 10).text(
                    300, 300 + 16 * row, f"{number}{row}", 10
                )
            page.text(60, 420, "the end of a sent-" if number % 3 else "the end of a sent,", 10)
        pages.append(page)
    found = tmp_path_factory.mktemp("large") / "a.pdf"
    found.write_bytes(pdf(pages))
    yield found


def _read(path: Path, processes: int) -> list[Item]:
    return list(items_of(replace(SourceFile(path, "a.pdf"), processes=processes), "pdf"))


def test_several_processes_give_what_one_gives(path: Path) -> None:
    alone = _read(path, 1)
    assert len(alone) == 2  # the document, and the page without text
    assert _read(path, 2) == alone
    assert _read(path, 4) == alone


def test_a_reader_uses_processes_that_no_file_needs(path: Path) -> None:
    with Apart(3, 60, 1500, 1 << 30) as apart:
        [found] = [list(items) for _, items in apart.read([(SourceFile(path, "a.pdf"), "pdf")])]
    assert [_fields(item) for item in found] == [_fields(item) for item in _read(path, 1)]


def _fields(item: Item) -> tuple[str, ...]:
    if isinstance(item, Document):
        return item.id, item.text, item.title, to_text(item.locators)
    return item.document, item.code, item.message


def test_pages_of_a_process_that_ends_are_read_by_the_others(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def start(*args: object, **kwargs: object) -> subprocess.Popen[bytes]:
        child = popen(*args, **kwargs)  # type: ignore[call-overload]
        child.send_signal(signal.SIGKILL)
        started.append(child)
        return child  # type: ignore[no-any-return]

    monkeypatch.setattr(subprocess, "Popen", start)
    assert _read(path, 3) == _read(path, 1)
    assert len(started) == 2


def test_no_process_can_be_started(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError("no processes left")

    alone = _read(path, 1)
    monkeypatch.setattr(subprocess, "Popen", fail)
    assert _read(path, 3) == alone


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_helpers_end_with_the_process_that_started_them(path: Path) -> None:
    helper = sandbox.Worker()
    child = helper._child
    assert parallel._ask(helper, SourceFile(path, path.name), range(2)) is not None
    assert child.stdin is not None
    child.stdin.close()
    end = time.monotonic() + 20
    while child.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    assert child.poll() is not None
    helper.kill()
