"""Quality of the built-in embedder, without any model: `python benches/builtin_embedder.py DATA`.

DATA holds folders in the data-set layout (corpus.jsonl, queries.jsonl with answers). Prints coverage
(% of questions with an answer in the context) at 12,000 / 6,000 / 3,000 tokens. Caveats: words are
runs of letters and digits, tokens are characters / 4, each passage is one unit and never cut, 100
questions a set (one question is one point), and the defaults were chosen on these very sets.
The sets are small: on 9,000 mixed passages 128 dimensions alone fall behind BM25 (64 / 57 / 50 against
74 / 66 / 54 on musique's questions), 256 equal it at 12k, and only the fusion still gains (77 / 71 / 60).
"""

from __future__ import annotations

import argparse
import json
import re
import string
import time
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.kernels import vectors as kernels

WORD = re.compile(r"[^\W_]+")
STOP = frozenset(
    """a about above after again against all am an and any are as at be because been before being below
    between both but by can did do does doing don down during each few for from further had has have
    having he her here hers herself him himself his how i if in into is it its itself just me more most
    my myself no nor not now of off on once only or other our ours ourselves out over own s same she
    should so some such t than that the their theirs them themselves then there these they this those
    through to too under until up very was we were what when where which while who whom why will with
    you your yours yourself yourselves""".split()  # noqa: SIM905
)
BUDGETS = (12_000, 6_000, 3_000)
Rows = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]]


def words(text: str) -> list[str]:
    return [word for word in WORD.findall(text.lower()) if word not in STOP]


def normal(text: str) -> str:
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def rows(texts: list[str], ids: dict[str, int]) -> Rows:
    """Compressed rows of word ids, with the counts."""
    found = [sorted(Counter(ids[w] for w in words(t) if w in ids).items()) for t in texts]
    flat = [pair for row in found for pair in row]
    indptr = np.cumsum([0, *map(len, found)]).astype(np.uint64)
    columns = np.array(flat, dtype=np.uint32).reshape(-1, 2)
    return indptr, np.ascontiguousarray(columns[:, 0]), np.ascontiguousarray(columns[:, 1])


def transposed(indptr: NDArray[np.uint64], indices: NDArray[np.uint32], columns: int) -> kernels.Csr:
    owner = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr.astype(np.int64)))
    order = np.argsort(indices, kind="stable")
    return np.cumsum([0, *np.bincount(indices, minlength=columns)]), owner[order]


def bm25_orders(units: Rows, questions: Rows, width: int) -> list[list[int]]:
    k1, b = 1.2, 0.75
    indptr, ids, counts = (a.astype(np.int64) for a in units)
    n = len(indptr) - 1
    df = np.bincount(ids, minlength=width)
    idf = np.log(1 + (n - df + 0.5) / (df + 0.5))
    owner = np.repeat(np.arange(n), np.diff(indptr))
    length = np.bincount(owner, weights=counts, minlength=n)
    weight = idf[ids] * counts * (k1 + 1) / (counts + k1 * (1 - b + b * length[owner] / length.mean()))
    orders = []
    for q in range(len(questions[0]) - 1):
        asked = np.zeros(width)
        cut = slice(int(questions[0][q]), int(questions[0][q + 1]))
        asked[questions[1][cut]] = questions[2][cut]
        scores = np.bincount(owner, weights=weight * asked[ids], minlength=n)
        orders.append(np.argsort(-scores, kind="stable").tolist())
    return orders


def coverage(orders: list[list[int]], costs: list[int], texts: list[str], answers: list[list[str]]) -> str:
    shares = []
    for budget in BUDGETS:
        hits = 0
        for order, wanted in zip(orders, answers, strict=True):
            used, kept = 0, []
            for unit in order:
                used += costs[unit]
                if used > budget:
                    break
                kept.append(texts[unit])
            context = f" {' '.join(kept)} "
            hits += any(f" {normal(answer)} " in context for answer in wanted)
        shares.append(round(100 * hits / max(len(answers), 1)))
    return " / ".join(f"{share:3d}" for share in shares)


def measure(folder: Path, settings: list[tuple[int, int]]) -> None:
    docs = [json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8")]
    asked = [json.loads(line) for line in (folder / "queries.jsonl").open(encoding="utf-8")]
    texts = [f"{doc['title']}\n{doc['text']}" for doc in docs]
    answers = [query["metadata"]["answers"] for query in asked]
    ids = {word: i for i, word in enumerate(sorted({w for t in texts for w in words(t)}))}
    units, questions = rows(texts, ids), rows([query["text"] for query in asked], ids)
    split = [[s for s in re.split(r"(?<=[.!?])\s+|\n", t) if s.strip()] for t in texts]
    sentences = rows([s for group in split for s in group], ids)
    costs, plain = [len(t) // 4 + 6 for t in texts], [normal(t) for t in texts]
    lexical = bm25_orders(units, questions, len(ids))
    print(f"\n{folder.name}: {len(texts)} passages, {len(ids)} words, {len(asked)} questions")
    print(f"| {'':22} | {' / '.join(f'{b // 1000}k' for b in BUDGETS)} |\n|---|---|")
    print(f"| {'bm25':22} | {coverage(lexical, costs, plain, answers)} |")
    for dims, power in settings:
        begun = time.perf_counter()
        basis = kernels.fit_embedder(units[:2], units[2], len(ids), dims=dims, idf_power=power)
        spent = time.perf_counter() - begun
        vectors = kernels.embed_rows(basis, units[:2], units[2])
        queries = kernels.embed_rows(basis, questions[:2], questions[2])
        means = kernels.keyword_means(
            transposed(sentences[0], sentences[1], len(ids)),
            kernels.embed_rows(basis, sentences[:2], sentences[2]),
        )
        dense = kernels.top_k(vectors, queries, len(texts))[0].tolist()
        fused = [kernels.fuse_ranks(pair)[0].tolist() for pair in zip(lexical, dense, strict=True)]
        word_units = transposed(units[0], units[1], len(ids))
        pools = {
            budget: [
                kernels.keyword_pool(means, word_units, vectors, costs, query, 2 * budget).units.tolist()
                for query in queries
            ]
            for budget in BUDGETS
        }
        keyword = [coverage(pools[b], costs, plain, answers).split(" / ")[i] for i, b in enumerate(BUDGETS)]
        name = f"text, d={dims}, idf^{power}"
        print(f"| {name:22} | {coverage(dense, costs, plain, answers)} | fit {spent:.2f} s")
        print(f"| {'fused with bm25':22} | {coverage(fused, costs, plain, answers)} |")
        print(f"| {'keyword channel':22} | {' / '.join(keyword)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="*", default=["musique-train100", "hotpotqa-train100"])
    parser.add_argument("--all", action="store_true", help="every setting, not the default alone")
    chosen = parser.parse_args()
    every = [(d, p) for p in (1, 2, 3) for d in (64, 96, 128, 192, 256)]
    for name in chosen.sets:
        measure(chosen.data / name, every if chosen.all else [(128, 2)])


if __name__ == "__main__":
    main()
