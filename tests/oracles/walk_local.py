"""The local stage 1 of the walk, slow and plain: the oracle of what the walk does by default (`exact=False`).

The exact form walks over every unit and node. The local form, whose cost does not grow with the index,
differs from it in these rules and in no other:

1. A node (keyword, name or subject) of more than `max_df` units is not walked over. The mass that would
   have gone there is not given to the unit's other nodes before they are chosen.
2. Of each of the three graphs only the `nodes` nodes that got most carry mass on; their mass is rescaled
   to the share of that graph.
3. After each step but the last only the `keep` units that have most carry mass on; what the others had is
   lost.
4. The walk begins at the best 20 units that match the question, and at no unit that does not, unless
   there are vectors.
5. ln P is standardised over the units that were reached, not over all.
6. Only units that match or were reached are ranked, unless there are vectors; in the step from the best
   of round 1 only units that were reached.

Masses are rounded to 31 significant bits before the greatest are kept, so that no last bit decides. Where the
walk begins and which units carry mass on, ties are broken by the content of the units, so that the order of
documents does not matter; elsewhere by the smaller id.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tests.oracles.walk_parts import (
    Array,
    Arrays,
    WalkQuestion,
    best_first,
    round_mass,
    rows_of,
    saturation,
    to_idf,
    vocabulary,
)

Marks = NDArray[np.bool_]
TINY, NO_SPREAD = 1e-9, 1e-6


def by_content(links: Arrays) -> NDArray[np.intp]:
    """Return the place of each unit in the order of keywords, their counts, names, subject and mentions."""

    def rows(name: str, values: str = "indices") -> list[list[int]]:
        ends, all_values = links[f"{name}_indptr"].tolist(), links[f"{name}_{values}"].tolist()
        return [all_values[first:last] for first, last in pairwise(ends)]

    subjects = links["unit_subject"].tolist()
    kinds = (rows("unit_keywords"), rows("unit_keywords", "tf"), rows("unit_names"))
    contents = list(zip(*kinds, subjects, rows("unit_mentions"), strict=True))
    return np.argsort(sorted(range(len(subjects)), key=lambda unit: contents[unit]))


@dataclass(frozen=True)
class Local:
    """The numbers of the local form; these are the product's."""

    max_df: int = 200
    keep: int = 50
    nodes: int = 100
    steps: int = 2
    rest_steps: int = 1

    def spread(
        self, links: Arrays, asked: WalkQuestion, direct: Array, starts: Marks, steps: int
    ) -> tuple[Array, Marks]:
        """Return the score of every unit in stage 1, and which units are ranked.

        `direct` is the standardised direct match; `starts` are the units that the walk may begin at, which
        are ranked in any case.
        """
        contents = by_content(links)
        best = [int(u) for u in np.lexsort((contents, -direct)) if starts[u]][:20]
        if not best:
            return direct, starts
        restart = np.zeros(len(direct))
        restart[best] = np.exp(direct[best] - direct[best[0]])
        restart /= restart.sum()
        mass = restart
        for number in range(1, steps + 1):
            mass = 0.5 * restart + 0.5 * self.step(links, asked, mass)
            if number < steps:
                mass = round_mass(mass)
                kept = np.lexsort((contents, -mass))[: self.keep]
                rest = np.ones(len(mass), bool)
                rest[kept] = False
                mass[rest] = 0
        reached = mass > 0
        logs = np.log(mass + TINY)
        mean, deviation = logs[reached].mean(), logs[reached].std()
        walked = (logs - mean) / deviation if deviation > NO_SPREAD else np.zeros_like(logs)
        return direct + 1.5 * walked, starts | reached

    def step(self, links: Arrays, asked: WalkQuestion, mass: Array) -> Array:
        """Return the mass after one step over keywords, names and subjects, nothing of which goes back."""
        part = saturation(links)
        relations = [part * to_idf(part)]
        for name in ("names", "subjects"):
            has = rows_of(links, f"unit_{name}", len(vocabulary(links, name)))
            relations.append(has * to_idf(has))
        asked_of_each = (asked.keywords, asked.names, asked.subjects)
        arrived = np.zeros(len(mass))
        for share, weights, known in zip((0.34, 0.33, 0.33), relations, asked_of_each, strict=True):
            arrived += share * self._step_over(mass, weights, known)
        return arrived

    def _step_over(self, mass: Array, weights: Array, asked: list[int]) -> Array:
        """Unit to node to unit over one graph, in proportion to the weights."""
        of_unit, of_node = weights.sum(axis=1), weights.sum(axis=0)
        nodes = np.zeros(weights.shape[1])
        for unit in np.flatnonzero(mass):
            if of_unit[unit] > 0:
                nodes += mass[unit] * weights[unit] / of_unit[unit]
        nodes[(weights > 0).sum(axis=0) > self.max_df] = 0
        nodes[asked] = 0
        nodes = round_mass(nodes)
        nodes[best_first(nodes)[self.nodes :]] = 0
        arrived = np.zeros(len(mass))
        for node in np.flatnonzero(nodes):
            arrived += nodes[node] / nodes.sum() * weights[:, node] / of_node[node]
        return arrived
