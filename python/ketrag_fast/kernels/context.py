"""Contexts within a token budget."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ketrag_fast import _core
from ketrag_fast.kernels.arrays import U64, count, text, whole


def fill(costs: ArrayLike, token_budget: int, *, fill_policy: str = "first_overflow_stops") -> U64:
    """Return the positions of the rows, best first, whose `costs` sum to at most `token_budget`.

    `first_overflow_stops` ends at the first row that does not fit; `skip_and_continue` skips it. Raises
    `InputError` for negative numbers.

    Examples:
        >>> fill([40, 70, 30], 100).tolist()
        [0]
        >>> fill([40, 70, 30], 100, fill_policy="skip_and_continue").tolist()
        [0, 2]
    """
    return _core.fill(
        whole(costs, np.uint64, "costs"),
        count(token_budget, "token_budget"),
        fill_policy=text(fill_policy, "fill_policy"),
    )
