"""Limits of the memory of a process that reads files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final

from ketrag_fast.readers.protocol import SourceFile

_STATM: Final = Path("/proc/self/statm")
_FREE: Final = 250_000_000
_TIMES: Final = 80
"""Bytes that a parser of code, web pages or PDFs may add, and more for each byte of its file.

The bodies of ordinary code and pages need 10 to 40 bytes for each byte. 2 MB of hostile text are read in less
than 500 MB with these numbers.
"""
_USUAL: Final = 1_500
"""The default of `read_memory`. A larger setting raises the limits above in proportion."""


def limit_memory(megabytes: int) -> None:
    """Limit the memory of this process, if the system accepts that."""
    wanted = megabytes * 1_000_000
    if sys.platform == "win32":
        from ketrag_fast import _core

        _core.windows_limit_memory(wanted)
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    # macOS refuses a limit below the address space in use, which there is far more than the memory.
    with suppress(ValueError, OSError) if sys.platform == "darwin" else nullcontext():
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@contextmanager
def memory_in_proportion(file: SourceFile, megabytes: int) -> Iterator[None]:
    """Limit the memory that a parser adds in proportion to its file; `megabytes` is the limit of the process.

    Parsers of source code and web pages need up to 700 bytes for each byte of a hostile file, and that of
    PDFs unpacks streams to 1,000 times their size. If the size of the process cannot be read, only the limit
    of the process applies.
    """
    if sys.platform == "win32":
        yield
        return
    if not _STATM.exists():
        yield
        return
    import resource

    try:
        before = resource.getrlimit(resource.RLIMIT_AS)
        used = int(_STATM.read_text().split()[0]) * resource.getpagesize()
        wanted = used + (_FREE + _TIMES * file.size()) * max(megabytes, _USUAL) // _USUAL
        if before[0] != resource.RLIM_INFINITY:
            wanted = min(wanted, before[0])
        resource.setrlimit(resource.RLIMIT_AS, (wanted, before[1]))
    except (OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
