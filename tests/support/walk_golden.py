"""The texts, questions and rankings that the sketch of the walk left (tests/golden/README.md)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

SETS = ("musique-train100", "hotpotqa-train100")
TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "golden" / "walk.json"
WITHOUT, WITH, DIMENSION, SEED = 20, 4, 32, 11


def unit_rows(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Random vectors of length 1."""
    x = rng.normal(size=(rows, DIMENSION))
    unit: np.ndarray = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
    return unit


def chosen(queries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Questions from all over a set."""
    return queries[:: len(queries) // WITHOUT][:WITHOUT]


def read_texts(name: str) -> dict[str, Any]:
    """Return the texts of a set from tests/data/walk."""
    found: dict[str, Any] = json.loads(
        gzip.decompress((TESTS / "data/walk" / f"{name}.json.gz").read_bytes())
    )
    return found
