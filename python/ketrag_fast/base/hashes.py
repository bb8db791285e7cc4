"""BLAKE2b without the import of OpenSSL, which takes a fiftieth of a search and is used by nothing in it."""

from __future__ import annotations

try:
    from _blake2 import blake2b as blake2b
except ImportError:  # a Python whose hashes are elsewhere
    from hashlib import blake2b as blake2b
