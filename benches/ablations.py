"""Ablation of the walk, one part at a time, without a model, on the development sets.

    python benches/ablations.py [--sets musique-dev,2wiki-dev,hotpotqa-dev] [--only chains,length] [--single 300]
    python benches/ablations.py --try "shorter=length=-0.7" --try "more chains=chains=20,chain=1"   # other numbers

Differences are paired: each question with and without the part. Some 5 s for a part and a set.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from common import header, require_data, table
from ketrag_fast.kernels import links as kernel
from ketrag_fast.lab.eval import load_dataset
from ketrag_fast.lab.eval.metrics import is_yes_no, normalise
from ketrag_fast.lab.eval.question import DataSet
from walk_quality import BUDGETS, DEPTH, SETS, Corpus, coverage, cut_sentences, passages

Numbers = dict[str, float]

PARTS: dict[str, Numbers] = {
    "mentions": {"mentioned": 0, "mentions": 0},
    "who mentions whom": {"mentioned": 1.25, "mentions": 1.25},
    "shared keywords": {"shared_keyword": 0},
    "shared names": {"shared_name": 0},
    "partners that the question names": {"named_partner": 0},
    "candidates that the question names": {"named": 0, "subject": 0},
    "length": {"length": 0, "length_early": 0},
    "chains": {"chain": 0},
    "direct match in the sum": {"stage1": 0},
    "direct match in the first two places": {"first": 0},
    "rest of the question": {"rest": 0, "rest_pool": 0, "rest_partners": 0},
    "step from the best": {"step": 0, "step_pool": 0},
    "second round": {
        "rest": 0,
        "rest_pool": 0,
        "rest_partners": 0,
        "best_partners": 0,
        "step": 0,
        "step_pool": 0,
        "chain": 0,
    },
}
SIZES: dict[str, Numbers] = {
    "the sketch's sizes": {
        "pool": 150,
        "partners": 30,
        "best_partners": 10,
        "rest_partners": 10,
        "rest_steps": 2,
        "keep": 100,
        "least_rarity": 0,
    },
    "keywords of any rarity join": {"least_rarity": 0},
    "half of the candidates": {"pool": 60, "rest_pool": 25, "step_pool": 15},
}
"""Numbers that replace the product's."""

METRICS = (*(f"coverage at {budget:,}" for budget in BUDGETS), "recall@5", "all gold in 10")
Values = NDArray[np.float64]
"""Questions by METRICS, NaN where a question has none."""


class Asked:
    """A set of questions, and sentences cut out of its passages."""

    def __init__(self, name: str, single: int) -> None:
        documents = passages(name)
        self.dataset: DataSet = load_dataset(require_data(name))
        self.ids = np.array([d.id for d in documents])
        self.corpus = Corpus.of([d.title for d in documents], [d.text for d in documents])
        self.normal = [f" {normalise(text)} " for text in self.corpus.texts]
        self.cut, self.places, self.sentences = cut_sentences(documents, single)

    def measure(self, numbers: Numbers) -> tuple[Values, Values]:
        """Each question's values, and whether each cut sentence's passage is first."""
        questions = self.dataset.questions
        found = self._walk(self.corpus, [q.text for q in questions], numbers)
        rows = []
        for question, (units, _) in zip(questions, found, strict=True):
            answers = [a for a in map(normalise, question.answers) if a]
            counts = bool(answers) and not is_yes_no(answers)
            row = coverage(self.corpus, self.normal, units, answers) if counts else [np.nan] * len(BUDGETS)
            ranked = list(dict.fromkeys(self.ids[self.corpus.document[units]].tolist()))
            gold = question.gold
            recall = len(gold & set(ranked[:5])) / len(gold) if gold else np.nan
            rows.append([*row, recall, float(gold <= set(ranked[:10])) if gold else np.nan])
        single = self._walk(self.cut, self.sentences, numbers)
        first = [
            self.cut.document[units[:1]].tolist() == [at]
            for (units, _), at in zip(single, self.places, strict=True)
        ]
        return np.array(rows, float), np.array(first, float)

    @staticmethod
    def _walk(corpus: Corpus, questions: list[str], numbers: Numbers) -> list[kernel.Hits]:
        return kernel.walk(corpus.links, questions, DEPTH, lengths=corpus.lengths, numbers=numbers)


def paired(values: Values, base: Values) -> str:
    """Return the mean difference in points, with its 95 % interval."""
    apart = 100 * (values - base)
    apart = apart[~np.isnan(apart)]
    return f"{apart.mean():+.1f} ± {1.96 * apart.std() / len(apart) ** 0.5:.1f}"


def rows_of(name: str, tried: dict[str, Numbers], single: int) -> list[list[str]]:
    """The whole, then each variant."""
    asked = Asked(name, single)
    whole, whole_first = asked.measure({})
    rows = []
    for label, numbers in {"the whole": {}, **tried}.items():
        values, first = (whole, whole_first) if label == "the whole" else asked.measure(numbers)
        mean = np.nanmean(values, axis=0)
        cells = [" / ".join(f"{100 * x:.1f}" for x in mean[:4]), *(f"{100 * x:.1f}" for x in mean[4:])]
        cells.append(f"{100 * first.mean():.1f}")
        against = ["", "", ""]
        if label != "the whole":
            means = np.nanmean(values, axis=1), np.nanmean(whole, axis=1)
            small = paired(values[:, len(BUDGETS) - 1], whole[:, len(BUDGETS) - 1])
            against = [paired(*means), small, paired(first, whole_first)]
        rows.append([label, *cells, *against])
    return rows


def own(texts: list[str]) -> dict[str, Numbers]:
    """`name=number=value,number=value` as variants."""
    out = {}
    for text in texts:
        label, _, pairs = text.partition("=")
        out[label] = {name: float(value) for name, _, value in (p.partition("=") for p in pairs.split(","))}
    return out


def main() -> None:
    """Print a table for each set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--only", help="parts by the beginning of their names, by comma")
    parser.add_argument("--try", dest="tried", action="append", default=[], metavar="NAME=NUMBER=VALUE,...")
    parser.add_argument("--single", type=int, default=300, help="sentences cut out of each set")
    args = parser.parse_args()
    variants = own(args.tried) or {
        **{f"without {name}": numbers for name, numbers in PARTS.items()},
        **SIZES,
    }
    if args.only:
        wanted = tuple(args.only.split(","))
        variants = {k: v for k, v in variants.items() if k.removeprefix("without ").startswith(wanted)}
    header(
        "The parts of the walk",
        [
            f"Coverage at {BUDGETS} tokens; recall@5; all gold in 10; and of {args.single} sentences cut out of their "
            "passages, asked as questions, how often their passage is first.",
            "Mean: of the six before it, with the paired 95 % interval, in points; 1.5k: of the coverage there.",
            "Nothing is fitted anew: parts overlap, so that what one brings alone is less than what it brings fitted.",
            "The weights were chosen on these sets, each tried on the others.",
        ],
    )
    columns = [
        "variant",
        "coverage",
        "recall@5",
        "all gold",
        "cut first",
        "mean",
        "1.5k",
        "cut first, change",
    ]
    for name in args.sets.split(","):
        print(f"## {name}\n")
        table(columns, rows_of(name, variants, args.single))


if __name__ == "__main__":
    main()
