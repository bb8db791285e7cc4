from __future__ import annotations

import pytest

from ketrag_fast.building import delta


@pytest.fixture
def deltas_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let indexes of any size be changed by deltas."""
    monkeypatch.setattr(delta, "LEAST", 0)
