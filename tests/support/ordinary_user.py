"""Permissions of files that hold in a test also if root runs it."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_VERSION = 0x20080522
_PASS_OVER = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Take from this thread, and what it starts, the right to pass over the permissions of files."""
    if not hasattr(os, "geteuid"):
        pytest.skip("this system has no permissions of files")
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("the administrator of this system may do everything")
    libc = ctypes.CDLL(None, use_errno=True)
    header, before = struct.pack("Ii", _VERSION, 0), ctypes.create_string_buffer(24)
    assert libc.capget(header, before) == 0, os.strerror(ctypes.get_errno())
    numbers = list(struct.unpack("6I", before.raw))
    numbers[0] &= ~_PASS_OVER
    assert libc.capset(header, struct.pack("6I", *numbers)) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        assert libc.capset(header, before.raw) == 0, os.strerror(ctypes.get_errno())
