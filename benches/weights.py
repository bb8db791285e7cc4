"""The walk's weights fitted across data sets: chosen on two development sets, judged on the third.

    python benches/weights.py [--sets musique-dev,2wiki-dev,hotpotqa-dev] [--single 300] [--rounds 2]

From the product's weights on: each round tries every weight times .7 and times 1.4 alone, takes of those that gain on
the two sets together the best first, each only if it still gains in addition to those already taken. What is
maximised: the mean of coverage at four budgets, recall@5, all gold in 10, and the first place of cut sentences.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from ablations import Asked, Numbers, paired
from common import header, table
from walk_quality import SETS

PRODUCT: Numbers = {
    "cover": 9.0,
    "shared_keyword": 2.45,
    "shared_name": 1.05,
    "mentioned": 1.5,
    "mentions": 1.0,
    "named_partner": 2.5,
    "saturated": 1.5,
    "chain_cover": 5.0,
    "chain_gap": 0.5,
    "stage1": 0.1,
    "rest": 0.03,
    "step": 0.16,
    "named": 2.5,
    "subject": 1.5,
    "length_early": -0.4,
    "length": -0.5,
    "chain": 0.8,
    "first_stage1": 1.0,
}
"""The weights of the walk (rust/core/src/rank/walk/plan.rs); that they are is checked."""
FACTORS = (0.7, 1.4)
LEAST = 0.02
"""Points of the mean by which a change has to gain."""


class Judge:
    """What weights give on each set, each measured once."""

    def __init__(self, names: list[str], single: int) -> None:
        self.sets = {name: Asked(name, single) for name in names}
        self.known: dict[tuple[str, str], NDArray[np.float64]] = {}

    def columns(self, name: str, numbers: Numbers) -> NDArray[np.float64]:
        """Points of the seven measures."""
        key = (name, repr(sorted(numbers.items())))
        if key not in self.known:
            values, first = self.sets[name].measure(numbers)
            self.known[key] = 100 * np.append(np.nanmean(values, axis=0), first.mean())
        return self.known[key]

    def gain(self, names: list[str], numbers: Numbers) -> float:
        """Points of the mean over the product's weights."""
        apart = [self.columns(n, numbers).mean() - self.columns(n, {}).mean() for n in names]
        return float(np.mean(apart))


def fitted(judge: Judge, names: list[str], rounds: int) -> Numbers:
    """The weights that differ from the product's, chosen on these sets."""
    taken: Numbers = {}
    best = 0.0
    for _ in range(rounds):
        tried = []
        for name, own in PRODUCT.items():
            for factor in FACTORS:
                numbers = {**taken, name: round(taken.get(name, own) * factor, 6)}
                tried.append((judge.gain(names, numbers), name, numbers[name]))
        changed = False
        for alone, name, value in sorted(tried, reverse=True):
            if alone < best + LEAST:
                break
            together = judge.gain(names, {**taken, name: value})
            if together >= best + LEAST:
                taken, best, changed = {**taken, name: value}, together, True
        if not changed:
            break
    return taken


def main() -> None:
    """Print a row for each set that was held out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--single", type=int, default=300, help="sentences cut out of each set")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    names = args.sets.split(",")
    judge = Judge(names, args.single)
    for name in names:
        if not np.allclose(judge.columns(name, dict(PRODUCT)), judge.columns(name, {})):
            raise SystemExit("the weights of this page are not those of the product")
    header(
        "Weights fitted across data sets",
        [
            "Chosen on the other two sets, from the product's on; judged on the set in the row.",
            "Change: against the product's weights, whose own choice has seen all three sets; paired, 95 % interval.",
            "Mean: of coverage at four budgets, recall@5 and all gold in 10.",
        ],
    )
    rows = []
    for name in names:
        numbers = fitted(judge, [n for n in names if n != name], args.rounds)
        before, first_before = judge.sets[name].measure({})
        after, first_after = judge.sets[name].measure(numbers)
        rows.append(
            [
                name,
                ", ".join(f"{k} {v:g}" for k, v in sorted(numbers.items())) or "none",
                f"{judge.gain([n for n in names if n != name], numbers):+.2f}",
                paired(np.nanmean(after, axis=1), np.nanmean(before, axis=1)),
                paired(after[:, 3], before[:, 3]),
                paired(first_after, first_before),
            ]
        )
    table(["held out", "weights chosen", "gain on the others", "mean", "1.5k", "cut first"], rows)


if __name__ == "__main__":
    main()
