"""Recall in one pool of all passages at hand, without a model, and what `max_df` and the pools change there.

    python benches/pool_quality.py [--sets musique-dev,2wiki-dev,hotpotqa-dev] [--vary]

The pool of a question set is its own passages and those of the other sets, without duplicates and without
near-duplicates of its gold passages, which would count as misses: passages that share half of their runs of
five words, or half of the gold passage's.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from common import arguments, publish, require_data
from common import result_table as table
from ketrag_fast import Document
from ketrag_fast.kernels import links as kernel
from ketrag_fast.lab.eval import load_dataset
from ketrag_fast.lab.eval.metrics import bootstrap_interval
from walk_quality import DEPTH, SETS, Corpus, passages

OTHERS = ("2wiki-101", "musique-train100", "hotpotqa-train100", "cacm", "xquad-en")
_RUN = 5
_SHARED = 0.5
VARIANTS: dict[str, dict[str, float]] = {
    "max_df 50": {"max_df": 50},
    "max_df 100": {"max_df": 100},
    "max_df 400": {"max_df": 400},
    "max_df 1,600": {"max_df": 1_600},
    "pool 60": {"pool": 60, "rest_pool": 25, "step_pool": 15},
    "pool 240": {"pool": 240, "rest_pool": 100, "step_pool": 60},
    "pool 480": {"pool": 480, "rest_pool": 200, "step_pool": 120},
    "keep 100, nodes 200": {"keep": 100, "nodes": 200},
    "keep 25, nodes 50": {"keep": 25, "nodes": 50},
}


def runs(document: Document) -> set[int]:
    """Return hashes of the runs of words of a passage."""
    words = "".join(c if c.isalnum() else " " for c in document.text.lower()).split()
    ends = range(min(_RUN, len(words)), len(words) + 1)
    return {hash(" ".join(words[max(end - _RUN, 0) : end])) for end in ends}


def pool_of(
    own: Sequence[Document], others: Iterable[Document], gold: set[str]
) -> tuple[list[Document], int]:
    """Return the passages of a set and the others that are new, and how many near-duplicates of gold are not."""
    known = {_content(document) for document in own}
    of_gold = {document.id: runs(document) for document in own if document.id in gold}
    holders = defaultdict(list)
    for name, found in of_gold.items():
        for run in found:
            holders[run].append(name)
    pool, near = list(own), 0
    for document in others:
        content = _content(document)
        if content in known:
            continue
        known.add(content)
        mine = runs(document)
        shared = Counter(name for run in mine for name in holders.get(run, ()))
        if any(count >= _SHARED * min(len(mine), len(of_gold[name])) for name, count in shared.items()):
            near += 1
            continue
        pool.append(Document(f"other {len(pool)}", document.text, document.title))
    return pool, near


def _content(document: Document) -> bytes:
    return hashlib.blake2b(f"{document.title}\0{document.text}".encode(), digest_size=16).digest()


def scores(
    corpus: Corpus, ids: Sequence[str], golds: Sequence[frozenset[str]], found: Sequence[kernel.Hits]
) -> list[list[float]]:
    """Return recall of the first two, five and ten of each question, and whether all gold is among ten."""
    rows = []
    for gold, (units, _) in zip(golds, found, strict=True):
        ranked = list(dict.fromkeys(ids[at] for at in corpus.document[units].tolist()))
        shares = [len(gold & set(ranked[:k])) / len(gold) for k in (2, 5, 10)]
        rows.append([*shares, float(gold <= set(ranked[:10]))])
    return rows


def percent(rows: list[list[float]], column: int) -> tuple[float, float, float]:
    """Return a mean in percent and the ends of its 95 % interval."""
    values = [row[column] for row in rows]
    low, high = bootstrap_interval(values) or (0.0, 0.0)
    return round(100 * sum(values) / len(values), 1), round(100 * low, 1), round(100 * high, 1)


def measure(
    name: str, others: Sequence[Document], *, vary: bool
) -> tuple[list[list[object]], list[list[object]]]:
    """Return the rows of a set: its own passages against the pool, and the variants in the pool."""
    dataset = load_dataset(require_data(name))
    questions = [question for question in dataset.questions if question.gold]
    asked, golds = [one.text for one in questions], [frozenset(one.gold) for one in questions]
    own = passages(name)
    pool, near = pool_of(own, others, set().union(*golds))
    rows: list[list[object]] = []
    varied: list[list[object]] = []
    for label, documents in (("own passages", own), ("pool", pool)):
        corpus = Corpus.of([one.title for one in documents], [one.text for one in documents])
        ids = [one.id for one in documents]
        walked = kernel.walk(corpus.links, asked, DEPTH, lengths=corpus.lengths)
        for mode, found in (("bm25", kernel.bm25(corpus.links, asked, DEPTH)), ("walk", walked)):
            values = scores(corpus, ids, golds, found)
            cells = [percent(values, column) for column in range(4)]
            gone = near if label == "pool" else 0
            rows.append([name, label, f"{len(corpus.document):,}", gone, mode, *cells])
        if label == "pool" and vary:
            base = np.array(scores(corpus, ids, golds, walked))
            for variant, numbers in VARIANTS.items():
                found = kernel.walk(corpus.links, asked, DEPTH, lengths=corpus.lengths, numbers=numbers)
                apart = 100 * (np.array(scores(corpus, ids, golds, found)) - base)
                error = 196 * (apart / 100).std(axis=0) / len(apart) ** 0.5
                cells = [
                    f"{x:+.1f} ± {e:.1f}" for x, e in zip(apart.mean(axis=0)[1:], error[1:], strict=True)
                ]
                varied.append([name, variant, *cells])
    return rows, varied


def main() -> None:
    """Measure each set."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--vary", action="store_true", help="other values of max_df and of the pools, too")
    args = parser.parse_args()
    names = ["musique-dev"] if args.smoke else args.sets.split(",")
    every = {name: passages(name) for name in dict.fromkeys([*SETS, *(() if args.smoke else OTHERS)])}
    rows, varied = [], []
    for name in names:
        others = [document for other, own in every.items() if other != name for document in own]
        new = measure(name, others, vary=args.vary)
        rows += new[0]
        varied += new[1]
    measures = ["recall@2", "recall@5", "recall@10", "all gold in 10"]
    columns = ["set", "passages", "units", "near-duplicates removed", "mode", *measures]
    tables = [table("Recall in a pool", columns, rows)]
    if varied:
        tables.append(
            table("The walk in the pool, differences in points", ["set", "variant", *measures[1:]], varied)
        )
    publish(tables, f"The passages of {', '.join(every)} in one pool; no model.")


if __name__ == "__main__":
    main()
