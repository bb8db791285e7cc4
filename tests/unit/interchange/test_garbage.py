"""The collector is paused inside the block, and as before after it."""

from __future__ import annotations

import gc

import pytest

from ketrag_fast.interchange.importing import collection_paused


def test_the_collector_is_paused_and_restored() -> None:
    assert gc.isenabled()
    with collection_paused():
        assert not gc.isenabled()
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="x"), collection_paused():
        raise ValueError("x")
    assert gc.isenabled()
