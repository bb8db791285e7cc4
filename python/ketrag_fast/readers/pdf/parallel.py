"""Read the pages of one large PDF in several processes. The result is that of one process.

PDFium must not be used by two threads, so each process opens the file and reads ranges of its pages.
"""

from __future__ import annotations

import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from ketrag_fast._core import PdfPages
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.pdf.inside import Remark
from ketrag_fast.readers.pdf.pages import Part, empty_pages, read_range
from ketrag_fast.readers.protocol import SourceFile
from ketrag_fast.readers.sandbox import Worker, packed_path

LEAST_PAGES: Final = 200
"""Starting a process takes as long as reading about 60 pages."""
_RANGE: Final = 32


def _ask(worker: Worker, file: SourceFile, own: range) -> Part | None:
    """Return a range of pages, or None if the process has ended. Raises DocumentError."""
    request = {**packed_path(file), "pages": [own.start, own.stop], "ocr": file.ocr}
    try:
        reply = worker.receive() if worker.send(request) else None
    except (OSError, ValueError):
        reply = None
    if reply is None:
        return None
    if "error" in reply:
        raise DocumentError(reply["error"])
    return b64decode(reply["packed"]), reply["broken"], [Remark(*one) for one in reply["remarks"]]


class _Reading:
    """The ranges of a document that are still to be read, and those that were."""

    def __init__(self, file: SourceFile, count: int) -> None:
        self._file = file
        self._ranges = iter([range(at, min(at + _RANGE, count)) for at in range(0, count, _RANGE)])
        self._lock = threading.Lock()
        self.parts: dict[int, Part] = {}
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

    def ask(self, worker: Worker) -> None:
        """Have a process read ranges (in a thread). The range at which it ends is read again by this one."""
        for own in self.ranges():
            try:
                part = _ask(worker, self._file, own)
            except DocumentError as error:
                self.error = error
                return
            if part is None:
                self.again.append(own)
                return
            self.parts[own.start] = part


def read_in_processes(
    file: SourceFile, document: Any, raw: Any, pdfium: Any
) -> tuple[PdfPages, list[int], list[Remark]]:
    """Return the pages of an open document, the numbers of damaged ones, and comments: see `read_pages`."""
    reading, ocr = _Reading(file, len(document)), file.ocr
    helpers: list[Worker] = []
    with suppress(OSError):  # no further process can be started; the existing ones do the work
        helpers += (Worker() for _ in range(file.processes - 1))
    threads = [threading.Thread(target=reading.ask, args=(helper,), daemon=True) for helper in helpers]
    try:
        for thread in threads:
            thread.start()
        for own in reading.ranges():
            reading.parts[own.start] = read_range(document, raw, pdfium, own, ocr)
        for thread in threads:
            thread.join()
    finally:
        for helper in helpers:
            helper.kill()
    if reading.error is not None:
        raise reading.error
    for own in reading.again:
        reading.parts[own.start] = read_range(document, raw, pdfium, own, ocr)
    pages, broken, remarks = empty_pages(raw), [], []
    for _, (packed, damaged, noted) in sorted(reading.parts.items()):
        pages.unpack(packed)
        broken += damaged
        remarks += noted
    return pages, broken, remarks
