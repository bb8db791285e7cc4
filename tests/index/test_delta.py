"""A change of a large index is published as a delta; every answer is that of a build from scratch."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from ketrag_fast import Index
from ketrag_fast.build import delta
from tests.support.histories import SETTINGS, History


@pytest.mark.parametrize("seed", range(4))
def test_every_step_of_a_history_is_a_build(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "LEAST", 0)
    monkeypatch.setattr(delta, "RECENT", (1, 4, 9, delta.RECENT)[seed])  # one or two levels of changes
    history = History(random.Random(seed), tmp_path / "index", dated=seed % 2 == 1)
    with history.start() as index:
        for step in history.changes(index, 8):
            history.check(index, tmp_path / f"fresh{step}")
            shutil.rmtree(tmp_path / f"fresh{step}")
        assert history.deltas >= 6
        index.update(fold=True)
        with Index.build(history.documents, tmp_path / "whole", settings=SETTINGS) as whole:
            assert index.digest == whole.digest
