"""Which of the two is used, and for how many vectors."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Literal

Choice = Literal["auto", "exact", "hnsw"]


def choose(count: int, choice: Choice, least: int, installed: bool) -> Literal["exact", "hnsw"]:
    """`auto` prefers the exact scan below `least` vectors, and where hnswlib is missing."""
    if choice != "auto":
        return choice
    return "hnsw" if installed and count >= least else "exact"


def is_hnswlib_installed() -> bool:
    """Whether hnswlib is here; it is not loaded."""
    return importlib.util.find_spec("hnswlib") is not None


def advice(counts: Mapping[str, int], choice: Choice, least: int) -> str | None:
    """A word where `auto` did without hnswlib because it is not here."""
    many = [f"{count:,} {name}" for name, count in counts.items() if count >= least]
    if choice != "auto" or not many or is_hnswlib_installed():
        return None
    return (
        f"hnswlib is not installed, so {' and '.join(many)} are searched by an exact scan "
        "(pip install 'ketrag-fast[ann]', then ketrag index --rebuild; or -o ann=exact)"
    )
