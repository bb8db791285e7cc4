"""Other rules for queries than those of the variants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ketrag_fast import Settings


@contextmanager
def rules(**changes: Any) -> Iterator[None]:
    """Queries get these rules in place of those of their index's variant."""
    every = Settings.rules.fget
    assert every is not None
    assert changes.keys() <= Settings().rules.keys()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "rules", property(lambda settings: {**every(settings), **changes}))
        yield
