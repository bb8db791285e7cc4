"""Vector spaces fitted on the corpus, compared on the development sets: `python benches/builtin_spaces.py`.

Which space serves `text` and `fused` best without a model? Each is a vector for every word; a text is the sum of
its words' vectors. In addition to the product's space (latent semantic analysis, benches/builtin_embedder.py):

* `lsa`: the same by scipy, with another power of the idf and other dimensions;
* `ppmi`: words that occur in the same sentences (positive pointwise mutual information, singular vectors times the root of
  the singular values; Levy, Goldberg, Dagan 2015), summed with the weights of Arora et al. 2017 (SIF), with and
  without taking out the first component;
* `hashed`: random directions, so that a cosine estimates that of the words themselves (Johnson, Lindenstrauss);
* `lsa + hashed`: both, concatenated, so that equal words count by themselves too.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

from common import header, require_data, table
from ketrag_fast import Index, Settings, _core
from ketrag_fast.kernels import links as kernel
from ketrag_fast.kernels.text import unpack
from ketrag_fast.lab.eval import load_dataset
from ketrag_fast.lab.eval.metrics import is_yes_no, normalise
from ketrag_fast.lab.eval.question import DataSet

SETS = ("musique-dev", "2wiki-dev", "hotpotqa-dev")
BUDGETS = (12_000, 6_000, 3_000, 1_500)
ROW = 4  # tokens of a row's mark and line ends
DEPTH = 200
RRF = 60
SEED = 42
K1 = 1.2
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Words:
    """Units and questions as counts of words, and what scores a ranking."""

    units: sp.csr_matrix
    questions: sp.csr_matrix
    sentences: sp.csr_matrix
    idf: NDArray[np.float64]
    documents: list[str]
    tokens: NDArray[np.int64]
    normal: list[str]
    bm25: list[NDArray[np.uint32]]
    bm25_scores: list[NDArray[np.float64]]
    dataset: DataSet

    @classmethod
    def of(cls, index: Index, dataset: DataSet) -> Words:
        """From an index with the modes bm25 and text."""
        arrays = index.inspect.arrays()
        words, units, links = arrays["words"], arrays["units"], arrays["links"]
        vocabulary = {
            w: i for i, w in enumerate(unpack(words["vocabulary_blob"], words["vocabulary_offsets"]))
        }
        n = len(units["unit_document"])
        counts = sp.csr_matrix(
            (words["unit_counts"].astype(float), words["unit_words_indices"], words["unit_words_indptr"]),
            shape=(n, len(vocabulary)),
        )
        found = words["sent_words_indices"], words["sent_words_indptr"]
        shape = (len(found[1]) - 1, len(vocabulary))
        sentences = sp.csr_matrix((np.ones(len(found[0])), *found), shape=shape)
        questions = sp.lil_matrix((len(dataset.questions), len(vocabulary)))
        for row, question in enumerate(dataset.questions):
            for word in _core.lexical_keywords(question.text):
                if word in vocabulary:
                    questions[row, vocabulary[word]] += 1
        ids = unpack(units["document_ids_blob"], units["document_ids_offsets"])
        titles = unpack(units["document_titles_blob"], units["document_titles_offsets"])
        texts = unpack(units["unit_texts_blob"], units["unit_texts_offsets"])
        own = units["unit_document"].tolist()
        df = np.diff(counts.tocsc().indptr)
        ranked = kernel.bm25(dict(links), [q.text for q in dataset.questions], DEPTH)
        return cls(
            counts,
            questions.tocsr(),
            sentences,
            np.log(1 + (n - df + 0.5) / (df + 0.5)),
            [ids[d] for d in own],
            units["unit_tokens"].astype(np.int64),
            [f" {normalise(f'{titles[d]} {text}')} " for d, text in zip(own, texts, strict=True)],
            [ids for ids, _ in ranked],
            [scores for _, scores in ranked],
            dataset,
        )

    def weighted(self, counts: sp.csr_matrix, power: float) -> sp.csr_matrix:
        """Saturated counts times a power of the idf."""
        out = counts.copy()
        out.data = out.data * (K1 + 1) / (out.data + K1)
        return out @ sp.diags((self.idf / self.idf.max()) ** power)

    def score(self, orders: list[NDArray[Any]]) -> list[str]:
        """Coverage at the budgets, recall@5, all gold in the first 10."""
        covered, five, ten = [], [], []
        for question, order in zip(self.dataset.questions, orders, strict=True):
            answers = [a for a in map(normalise, question.answers) if a]
            if answers and not is_yes_no(answers):
                used = np.cumsum(self.tokens[order] + ROW)
                hit = (k for k, u in enumerate(order) if any(f" {a} " in self.normal[u] for a in answers))
                at = next(hit, None)
                covered.append([at is not None and int(used[at]) <= budget for budget in BUDGETS])
            ranked = list(dict.fromkeys(self.documents[u] for u in order))
            if question.gold:
                five.append(len(question.gold & set(ranked[:5])) / len(question.gold))
                ten.append(question.gold <= set(ranked[:10]))
        cells = " / ".join(f"{100 * x:.1f}" for x in np.mean(covered, axis=0))
        return [cells, f"{100 * np.mean(five):.1f}", f"{100 * np.mean(ten):.1f}"]


def normal(rows: Any) -> Vectors:
    """Rows of length 1, or zero."""
    out = np.asarray(rows, dtype=np.float32)
    length = np.linalg.norm(out, axis=1, keepdims=True)
    return np.asarray(out / np.where(length == 0, 1, length), dtype=np.float32)


def rows(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Sparse rows of length 1."""
    length = np.sqrt(matrix.multiply(matrix).sum(axis=1)).A1
    return sp.csr_matrix(sp.diags(1 / np.where(length == 0, 1, length)) @ matrix)


Space = Callable[[Words], tuple[Vectors, Vectors]]
"""Vectors of the units and of the questions."""


def product(dims: int, power: int) -> Space:
    """Return the vectors that the package computes."""

    def made(w: Words) -> tuple[Vectors, Vectors]:
        def parts(m: sp.csr_matrix) -> tuple[Any, Any, Any]:
            m.sort_indices()
            return m.indptr.astype(np.uint64), m.indices.astype(np.uint32), m.data.astype(np.uint32)

        units, questions = parts(w.units), parts(w.questions)
        basis = _core.fit_embedder(*units, w.units.shape[1], dims=dims, idf_power=power)
        return _core.embed_rows(basis, *units), _core.embed_rows(basis, *questions)

    return made


def lsa(w: Words, dims: int, power: float) -> Vectors:
    """Word vectors: leading right singular vectors of the weighted rows, with the weights again."""
    a = rows(w.weighted(w.units, power))
    _, _, vt = randomized_svd(a, dims, n_iter=5, random_state=SEED)
    return np.asarray(vt.T, dtype=np.float32)


def by_lsa(dims: int, power: float) -> Space:
    """Latent semantic analysis."""

    def made(w: Words) -> tuple[Vectors, Vectors]:
        v = lsa(w, dims, power)
        return normal(w.weighted(w.units, power) @ v), normal(w.weighted(w.questions, power) @ v)

    return made


def hashed(w: Words, dims: int) -> Vectors:
    """A random direction for each word."""
    chance = np.random.default_rng(SEED)
    return (chance.standard_normal((w.units.shape[1], dims)) / np.sqrt(dims)).astype(np.float32)


def by_hash(dims: int, power: float) -> Space:
    """Words themselves, estimated."""

    def made(w: Words) -> tuple[Vectors, Vectors]:
        v = hashed(w, dims)
        return normal(w.weighted(w.units, power) @ v), normal(w.weighted(w.questions, power) @ v)

    return made


def by_both(dims: int, power: float, share: float, of_words: float) -> Space:
    """Latent semantic analysis in half of the dimensions, words in the other half, `share` of the length."""

    def made(w: Words) -> tuple[Vectors, Vectors]:
        a, b = by_lsa(dims // 2, power)(w), by_hash(dims // 2, of_words)(w)
        keep, give = np.sqrt(1 - share), np.sqrt(share)
        units, questions = (np.hstack([keep * x, give * y]) for x, y in zip(a, b, strict=True))
        return normal(units), normal(questions)

    return made


def by_ppmi(dims: int, power: float, removed: int) -> Space:
    """Words by the sentences that they share; SIF weights, or a power of the idf where `power` is not 0."""

    def made(w: Words) -> tuple[Vectors, Vectors]:
        s = (w.sentences > 0).astype(float)
        both = (s.T @ s).tocoo()
        single = np.asarray(s.sum(axis=0)).ravel() ** 0.75
        total = single.sum()
        of_word = np.asarray(s.sum(axis=0)).ravel()
        value = np.log(both.data * total / (of_word[both.row] * single[both.col]))
        keep = (value > 0) & (both.row != both.col)
        ppmi = sp.csr_matrix((value[keep], (both.row[keep], both.col[keep])), shape=both.shape)
        u, sigma, _ = randomized_svd(ppmi, dims, n_iter=3, random_state=SEED)
        v = (u * np.sqrt(sigma)).astype(np.float32)
        p = of_word / of_word.sum()
        weight = 1e-3 / (1e-3 + p) if power == 0 else (w.idf / w.idf.max()) ** power
        units, questions = (normal(w.weighted(m, 0) @ sp.diags(weight) @ v) for m in (w.units, w.questions))
        if removed:
            _, _, first = randomized_svd(units, removed, random_state=SEED)
            units, questions = (normal(x - x @ first.T @ first) for x in (units, questions))
        return units, questions

    return made


def spaces() -> Iterator[tuple[str, Space]]:
    """All that is compared."""
    yield "product, d 256, idf^2", product(256, 2)
    yield "product, d 512, idf^2", product(512, 2)
    yield "product, d 256, idf^1", product(256, 1)
    yield "hashed, d 256, idf^1", by_hash(256, 1)
    yield "hashed, d 1024, idf^1", by_hash(1024, 1)
    for share in (0.25, 0.5, 0.75):
        yield f"lsa idf^2 + hashed idf^1, d 512, {share}", by_both(512, 2, share, 1)
    yield "lsa idf^1 + hashed idf^1, d 512, 0.5", by_both(512, 1, 0.5, 1)
    yield "ppmi, d 256, SIF", by_ppmi(256, 0, 0)
    yield "ppmi, d 256, SIF less the first", by_ppmi(256, 0, 1)
    yield "ppmi, d 256, idf^2 less the first", by_ppmi(256, 2, 1)


def fused(first: list[NDArray[Any]], second: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Reciprocal rank fusion."""
    return [
        _core.fuse_ranks([a.astype(np.uint32), b.astype(np.uint32)])[0]
        for a, b in zip(first, second, strict=True)
    ]


def fusions(w: Words) -> Iterator[tuple[str, list[NDArray[Any]]]]:
    """Other ways to fuse bm25 and the product's space: weighted ranks, and scores divided by the best."""
    units, questions = product(256, 2)(w)
    ids, scores = _core.vector_top_k(units, questions, DEPTH)
    for constant, weight in ((60, 1), (60, 2), (60, 4), (10, 1), (10, 2), (10, 4)):
        orders = []
        for a, b in zip(w.bm25, ids, strict=True):
            total = np.zeros(units.shape[0])
            total[a] += weight / (constant + 1 + np.arange(len(a)))
            total[b] += 1 / (constant + 1 + np.arange(len(b)))
            orders.append(np.argsort(-total, kind="stable")[:DEPTH])
        yield f"ranks + {constant}, bm25 x {weight}", orders
    for share in (0.5, 0.65, 0.8):
        orders = []
        for a, x, b, y in zip(w.bm25, w.bm25_scores, ids, scores, strict=True):
            total = np.zeros(units.shape[0])
            total[a] += share * x / max(float(x.max(initial=0)), 1e-9)
            total[b] += (1 - share) * y / max(float(y.max(initial=0)), 1e-9)
            orders.append(np.argsort(-total, kind="stable")[:DEPTH])
        yield f"scores, {share} of bm25", orders


def main() -> None:
    """Print a table for each set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--only", default="", help="spaces by the beginning of their names, by semicolon")
    parser.add_argument("--keep", type=Path, help="a folder for the indexes")
    parser.add_argument("--fusions", action="store_true", help="ways to fuse the product's space with bm25")
    args = parser.parse_args()
    header(
        "Vector spaces fitted on the corpus",
        [
            f"Coverage: % of questions with an answer in the units that fit {BUDGETS} tokens; without yes/no questions.",
            f"Fused: with bm25, by reciprocal rank of the first {DEPTH} of both.",
        ],
    )
    for name in args.sets.split(","):
        dataset = load_dataset(require_data(name))
        with tempfile.TemporaryDirectory() as temporary:
            folder = (args.keep or Path(temporary)) / name
            with Index.build(require_data(name), folder, settings=Settings(modes=("bm25", "text"))) as index:
                words = Words.of(index, dataset)
        cells = [["bm25", *words.score(list(words.bm25)), "", "", "", ""]]
        for space, made in spaces() if not args.fusions else ():
            if not space.startswith(tuple(args.only.split(";"))):
                continue
            begun = time.perf_counter()
            units, questions = made(words)
            spent = time.perf_counter() - begun
            ids = _core.vector_top_k(units.astype(np.float32), questions.astype(np.float32), DEPTH)[0]
            alone = list(ids)
            cells.append([space, *words.score(alone), *words.score(fused(words.bm25, alone)), f"{spent:.1f}"])
        if args.fusions:
            cells = [[way, *words.score(orders)] for way, orders in fusions(words)]
            print(f"## {name}, ways to fuse\n")
            table(["fused by", "coverage", "recall@5", "all gold"], cells)
            continue
        print(f"## {name}\n")
        columns = [
            "space",
            "coverage",
            "recall@5",
            "all gold",
            "fused: coverage",
            "recall@5",
            "all gold",
            "s",
        ]
        table(columns, cells)


if __name__ == "__main__":
    main()
