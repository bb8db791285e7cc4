"""Codes of what readers report besides failures: what was left out, and guessed encodings."""

from __future__ import annotations

from typing import Final

ENCODING: Final = "encoding"
"""The encoding of a file was guessed and may be another one; also a metadata field and a kind of locator."""
GENERATED: Final = "generated"
"""A file was left out because a program wrote it."""
HIDDEN: Final = "hidden"
"""Hidden sheets, rows, columns or slides of a file were left out."""
FORMAT: Final = "format"
"""A file was left out because there is no reader for it."""
NOTES: Final = frozenset((ENCODING, GENERATED, HIDDEN))
"""Codes with which readers yield a `Failure` that is none."""
