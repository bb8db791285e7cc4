"""BM25F: how much the words of titles and headings should count, chosen with each set left out, without a model.

    python benches/fields.py [--sets a,b] [--per 400]

The words of titles count as often as `WEIGHTS` says in the frequencies of words and in the lengths of passages, as in BM25F
(Robertson and Zaragoza, 2009) with one saturation for all fields.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import arguments, publish
from common import result_table as table
from ketrag_fast import _core
from ketrag_fast.eval import load_dataset
from ketrag_fast.kernels import links as kernel
from ranking import DATA, present, scores_of
from walk import Corpus, passages

SETS = (
    *("musique-dev", "2wiki-dev", "hotpotqa-dev", "musique-train100", "hotpotqa-train100", "2wiki-101"),
    *("ottqa-dev", "xquad-en", "cacm"),
)
"""The sets whose passages have titles."""
WEIGHTS = (0, 1, 2, 3, 5)
PRODUCT = 3
"""The weight in the product (rust/core/src/graph/links_pass.rs)."""
MODES = ("bm25", "walk")
Links = Mapping[str, NDArray[Any]]


def strings_of(links: Links, name: str) -> list[str]:
    """Return the strings of one kind in the arrays of the walk."""
    blob = np.asarray(links[f"{name}_blob"]).tobytes()
    return [blob[a:b].decode() for a, b in pairwise(np.asarray(links[f"{name}_offsets"]).tolist())]


def weighted(links: Links, titles: list[str], weight: int) -> Links:
    """Return the arrays with the words of titles counted `weight` times."""
    numbers = {word: at for at, word in enumerate(strings_of(links, "keywords"))}
    starts = np.asarray(links["unit_keywords_indptr"]).tolist()
    rows = np.asarray(links["unit_keywords_indices"])
    tf = np.asarray(links["unit_keywords_tf"]).astype(np.int64)
    length = np.asarray(links["unit_length"]).astype(np.int64)
    for unit, title in enumerate(titles):
        words = Counter(numbers[word] for word in _core.lexical_keywords(title) if word in numbers)
        row = rows[starts[unit] : starts[unit + 1]]
        for word, count in words.items():
            at = starts[unit] + int(np.searchsorted(row, word))
            tf[at] += (weight - PRODUCT) * count
            length[unit] += (weight - PRODUCT) * count
    # The other direction has the same counts, sorted by keyword.
    order = np.lexsort((np.repeat(np.arange(len(titles)), np.diff(starts)), rows))
    changed = {
        "unit_keywords_tf": np.maximum(tf, 0).astype(np.uint32),
        "keyword_units_tf": np.maximum(tf[order], 0).astype(np.uint32),
        "unit_length": np.maximum(length, 1).astype(np.uint32),
    }
    return {**links, **changed}


def measured(name: str, per: int) -> NDArray[np.float64]:
    """Return by weight and mode recall@5 and nDCG@10 of a set, in points."""
    questions = [q for q in load_dataset(DATA / name).questions if q.gold]
    questions = questions[:: max(1, len(questions) // per)]
    documents = passages(name)
    corpus = Corpus.of([d.title or "" for d in documents], [d.text for d in documents])
    owner, texts = corpus.document.tolist(), [q.text for q in questions]
    titles = [documents[at].title or "" for at in owner]
    rows = []
    for weight in WEIGHTS:
        links = weighted(dict(corpus.links), titles, weight)
        ranked = (
            kernel.bm25(links, texts, 100),
            kernel.walk(links, texts, 100, lengths=corpus.lengths, documents=corpus.document),
        )
        for hits in ranked:
            found = [list(dict.fromkeys(documents[owner[u]].id for u in units.tolist())) for units, _ in hits]
            rows.append(
                np.mean([scores_of(*pair) for pair in zip(found, questions, strict=True)], axis=0) * 100
            )
    return np.array(rows).reshape(len(WEIGHTS), len(MODES), 2)


def print_fields(args: argparse.Namespace) -> None:
    """Print the measures of each set by weight, and the weight that the other sets choose."""
    names, found = present(args.sets.split(",")), {}
    for name in names:
        found[name] = measured(name, args.per)
        print(name, found[name].round(1).tolist(), file=sys.stderr, flush=True)
    tables = []
    for at, mode in enumerate(MODES):
        rows = []
        for name in names:
            others = [found[other][:, at].mean(axis=1) for other in names if other != name] or [
                found[name][:, at].mean(axis=1)
            ]
            chosen = WEIGHTS[int(np.mean(others, axis=0).argmax())]
            cells = [f"{x:.1f}" for measure in (0, 1) for x in found[name][:, at, measure]]
            rows.append([name, *cells, chosen])
        heads = [f"{measure}, weight {weight}" for measure in ("recall@5", "nDCG@10") for weight in WEIGHTS]
        tables.append(table(mode, ["set", *heads, "chosen on the others"], rows))
    publish(
        tables, f"Up to {args.per} questions of each set, no model. The weight in the product is {PRODUCT}."
    )


def main() -> None:
    """Measure the weight of titles."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--per", type=int, default=400, help="questions of each set")
    args = parser.parse_args()
    if args.smoke:
        args.sets, args.per = "xquad-en", 20
    print_fields(args)


if __name__ == "__main__":
    main()
