"""Choose between the exact scan and hnswlib."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Literal

Choice = Literal["auto", "exact", "hnsw"]


def choose(count: int, choice: Choice, least: int, installed: bool) -> Literal["exact", "hnsw"]:
    """Return the search method; `auto` is the exact scan below `least` vectors or without hnswlib."""
    if choice != "auto":
        return choice
    return "hnsw" if installed and count >= least else "exact"


def is_hnswlib_installed() -> bool:
    """Return whether hnswlib is installed, without importing it."""
    return importlib.util.find_spec("hnswlib") is not None


def advice(counts: Mapping[str, int], choice: Choice, least: int) -> str | None:
    """Return a hint if `auto` uses the exact scan only because hnswlib is not installed."""
    many = [f"{count:,} {name}" for name, count in counts.items() if count >= least]
    if choice != "auto" or not many or is_hnswlib_installed():
        return None
    return (
        f"hnswlib is not installed, so {' and '.join(many)} are searched by an exact scan "
        "(pip install 'ketrag-fast[ann]', then ketrag index --rebuild; or -o ann=exact)"
    )
