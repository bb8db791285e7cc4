"""A process that reads ranges of the pages of one PDF for the process that reads the file.

It inherits the memory limit, and ends when the other process does, also in the middle of a page.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from queue import SimpleQueue
from typing import IO, Any

from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.pdf.pages import read_pages
from ketrag_fast.readers.protocol import import_optional


def _watch(requests: IO[bytes], jobs: SimpleQueue[bytes]) -> None:
    """Pass requests on; the end of the input ends this process (in a thread)."""
    for line in requests:
        jobs.put(line)
    os._exit(1)


def main() -> None:
    """Answer requests: a line of JSON with the length of the packed pages, and these."""
    replies = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    jobs: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_watch, args=(sys.stdin.buffer, jobs), daemon=True).start()
    pdfium = import_optional("pypdfium2", "a PDF")
    raw = import_optional("pypdfium2.raw", "a PDF")
    document = pdfium.PdfDocument(os.fsdecode(bytes.fromhex(sys.argv[1])))
    while True:
        job = json.loads(jobs.get())
        packed = b""
        reply: dict[str, Any]
        try:
            pages, broken = read_pages(document, range(*job["range"]), raw, pdfium, job["ocr"])
            packed = pages.pack()
            reply = {"broken": broken}
        except DocumentError as error:
            reply = {"error": str(error)}
        replies.write(json.dumps(reply | {"size": len(packed)}).encode() + b"\n" + packed)
        replies.flush()


if __name__ == "__main__":
    main()
