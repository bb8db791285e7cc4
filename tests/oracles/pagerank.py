"""PageRank on a dense matrix: the oracle of `rust/core/src/rank/pagerank.rs`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


def pagerank(
    edges: F64,
    restart: F64 | None = None,
    *,
    teleport: float = 0.15,
    steps: int | None = None,
    lazy: bool = False,
) -> F64:
    """PageRank of the weighted graph `edges[source, target]` (shape [n, n]), summing to 1.

    Without `steps`: as many as bring the L1 error below 1e-9. `lazy` stays in place where the true walk
    returns to `restart`. Nodes without out-edges give their mass to `restart` (uniform by default).
    """
    n = len(edges)
    r = np.full(n, 1 / n) if restart is None else restart / restart.sum()
    out = edges.sum(axis=1)
    matrix = np.where(out[:, None] > 0, edges / np.where(out > 0, out, 1)[:, None], r)
    if steps is None:
        steps = 1 if teleport == 1 else max(1, math.ceil(math.log(1e-9 / 2) / math.log(1 - teleport)))
    x = r
    for _ in range(steps):
        x = teleport * (x if lazy else r) + (1 - teleport) * (x @ matrix)
    return x
