"""Read the pages of one large PDF in several processes. The result is that of one process.

PDFium must not be used by two threads, so each process opens the file and reads ranges of its pages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ketrag_fast._core import PdfPages
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.pdf.pages import empty_pages, read_pages

LEAST_PAGES: Final = 200
"""Starting a process takes as long as reading about 60 pages."""
_RANGE: Final = 32
_Part = tuple[bytes, list[int]]
"""Packed pages, and the numbers of damaged ones."""


class _Helper:
    """A process that reads ranges of pages."""

    def __init__(self, path: Path) -> None:
        self._child = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "ketrag_fast.readers.pdf.page_worker", os.fsencode(path).hex()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def close(self) -> None:
        """End the process."""
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def read(self, own: range, ocr: str | None) -> _Part | None:
        """Return a range of pages, or None if the process has ended. Raises DocumentError."""
        stdin, stdout = self._child.stdin, self._child.stdout
        if stdin is None or stdout is None:
            return None
        try:
            stdin.write(json.dumps({"range": [own.start, own.stop], "ocr": ocr}).encode() + b"\n")
            stdin.flush()
            line = stdout.readline()
            if not line.endswith(b"\n"):
                return None
            reply = json.loads(line)
            packed = stdout.read(reply["size"])
        except (OSError, ValueError):
            return None
        if "error" in reply:
            raise DocumentError(reply["error"])
        return (packed, reply["broken"]) if len(packed) == reply["size"] else None


class _Reading:
    """The ranges of a document that are still to be read, and those that were."""

    def __init__(self, count: int, ocr: str | None) -> None:
        self._ranges = iter([range(at, min(at + _RANGE, count)) for at in range(0, count, _RANGE)])
        self._lock = threading.Lock()
        self._ocr = ocr
        self.parts: dict[int, _Part] = {}
        self.again: list[range] = []
        self.error: DocumentError | None = None

    def ranges(self) -> Iterator[range]:
        """Yield ranges from a queue that threads share; end when a range has failed."""
        while self.error is None:
            with self._lock:
                own = next(self._ranges, None)
            if own is None:
                return
            yield own

    def ask(self, helper: _Helper) -> None:
        """Have a process read ranges (in a thread). The range at which it ends is read again by this one."""
        for own in self.ranges():
            try:
                part = helper.read(own, self._ocr)
            except DocumentError as error:
                self.error = error
                return
            if part is None:
                self.again.append(own)
                return
            self.parts[own.start] = part


def read_in_processes(
    path: Path, document: Any, processes: int, raw: Any, pdfium: Any, ocr: str | None
) -> tuple[PdfPages, list[int]]:
    """Return the pages of an open document, and the numbers of damaged ones, as `read_pages` does."""
    reading = _Reading(len(document), ocr)
    helpers: list[_Helper] = []
    with suppress(OSError):  # no further process can be started; the existing ones do the work
        helpers += (_Helper(path) for _ in range(processes - 1))
    threads = [threading.Thread(target=reading.ask, args=(helper,), daemon=True) for helper in helpers]
    try:
        for thread in threads:
            thread.start()
        for own in reading.ranges():
            reading.parts[own.start] = _read_range(document, own, raw, pdfium, ocr)
        for thread in threads:
            thread.join()
    finally:
        for helper in helpers:
            helper.close()
    if reading.error is not None:
        raise reading.error
    for own in reading.again:
        reading.parts[own.start] = _read_range(document, own, raw, pdfium, ocr)
    pages, broken = empty_pages(raw), []
    for _, (packed, damaged) in sorted(reading.parts.items()):
        pages.unpack(packed)
        broken += damaged
    return pages, broken


def _read_range(document: Any, own: range, raw: Any, pdfium: Any, ocr: str | None) -> _Part:
    pages, broken = read_pages(document, own, raw, pdfium, ocr)
    return pages.pack(), broken
