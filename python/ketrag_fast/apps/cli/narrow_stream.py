"""A terminal on which no line of progress is wider than the window."""

from __future__ import annotations

import os
import shutil
from typing import TextIO


class NarrowStream:
    """A stream to a terminal that cuts what is written to the present width.

    A line that wraps cannot be redrawn: each refresh would leave a line behind.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write `\\rLINE`, with or without an end of line; the last column stays empty."""
        line = text.strip("\r\n")
        return self._stream.write(text.replace(line, line[: self._columns() - 1]) if line else text)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()

    def _columns(self) -> int:
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):  # a stream without a file
            columns = 0
        return columns or shutil.get_terminal_size().columns
