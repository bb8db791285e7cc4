"""Texts and questions of two sets, cut into sentences (tests/data/README.md)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

SETS = ("musique-train100", "hotpotqa-train100")
TESTS = Path(__file__).parents[1]


def read_texts(name: str) -> dict[str, Any]:
    """Return the texts of a set from tests/data/walk."""
    found: dict[str, Any] = json.loads(
        gzip.decompress((TESTS / "data/walk" / f"{name}.json.gz").read_bytes())
    )
    return found
