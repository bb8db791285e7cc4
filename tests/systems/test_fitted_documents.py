"""The built-in vectors of a large corpus are fitted on some of its documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Index, Settings, _core
from ketrag_fast.kernels.arrays import pack_texts
from ketrag_fast.systems.shared import vectors
from ketrag_fast.types import Document


def test_the_fitted_space_of_many_documents_depends_on_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Camp {0} is {1} miles from camp {2}; bears and seals were seen there by the crew."
    documents = [Document(f"d{n}", text.format(n % 23, n % 31, n % 17), f"Day {n}") for n in range(120)]
    ids = pack_texts([one.id for one in documents], "ids")
    chosen = _core.smallest_hashes(ids, 50).tolist()
    assert chosen == sorted(set(chosen)) and len(chosen) == 50
    assert set(_core.smallest_hashes(ids, 49).tolist()) < set(chosen)
    assert _core.smallest_hashes(ids, 500).tolist() == list(range(120))
    real, fitted = _core.fit_embedder, []

    def fit(indptr: Any, indices: Any, counts: Any, *args: Any, **named: Any) -> Any:
        fitted.append((np.diff(indptr).tolist(), indices.tolist(), counts.tolist()))
        return real(indptr, indices, counts, *args, **named)

    monkeypatch.setattr(_core, "fit_embedder", fit)
    Index.build(documents, tmp_path / "all", settings=Settings(modes="text")).close()
    monkeypatch.setattr(vectors, "_FITTED", 50)
    with Index.build(documents, tmp_path / "few", settings=Settings(modes="text")) as index:
        found = index.retrieve("bears at camp 3", mode="text", budget=400)
        assert found.passages
    (lengths, words, counts), few = fitted
    ends = np.cumsum([0, *lengths])
    rows = [range(ends[at], ends[at + 1]) for at in chosen]
    assert few == (
        [lengths[at] for at in chosen],
        [words[k] for row in rows for k in row],
        [counts[k] for row in rows for k in row],
    )
