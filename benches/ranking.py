"""The default mode on every kind of collection, the rule by which the walk gives way, and the fit of the relevance.

    python benches/ranking.py sets [--model] [--sets a,b]     # auto next to bm25, text and fused on every set, with intervals
    python benches/ranking.py rule                            # the rule's constants, each set left out in turn
    python benches/ranking.py relevance [--model] [--per 200] # fit of rust/core/src/rank/relevance.rs, and how well it holds

`KETRAG_DATA` is the folder of the question sets; a set that is not there is left out.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import DATA, MODEL, WORK, arguments, publish, require_model
from common import result_table as table
from ketrag_fast import Index, Settings
from ketrag_fast.eval import DataSet, collect, load_dataset
from ketrag_fast.eval.datasets import Question
from ketrag_fast.eval.metrics import bootstrap_interval, ndcg_at, recall
from ketrag_fast.kernels import links as kernel
from ketrag_fast.query.plan import plan_query
from ketrag_fast.query.query import Query
from ketrag_fast.query.ranking import prepare
from walk import Corpus, passages

F64 = NDArray[np.float64]
FAMILIES = {
    "wiki": (
        "musique-dev",
        "2wiki-dev",
        "hotpotqa-dev",
        "musique-train100",
        "hotpotqa-train100",
        "2wiki-101",
    ),
    "paragraphs": ("xquad-en", "xquad-de", "xquad-ru", "xquad-ar", "xquad-hi", "xquad-zh"),
    "web": ("wildgraph",),
    "chat": ("locomo-dev", "lihua-world"),
    "code": ("cosqa-dev",),
    "abstracts": ("cacm",),
}
"""The question sets by kind of collection."""
SETS = tuple(itertools.chain.from_iterable(FAMILIES.values()))
MODES = ("bm25", "text", "fused")
MEASURES = ("recall@5", "nDCG@10")
BUDGET = 12_000
DEPTH = 10
SEED = 55


def opened(name: str, *, model: bool) -> Index:
    """Return the index of a set, built if it does not exist."""
    settings = Settings(modes="bm25,text,fused,walk")
    if model:
        settings = settings.having(embedder=f"native:{require_model()}")
    return Index.build(DATA / name, WORK / f"{name}-{'minilm' if model else 'none'}", settings=settings)


def present(names: Sequence[str]) -> list[str]:
    """Return the sets that exist; the others are named on stderr."""
    lost = [name for name in names if not (DATA / name).is_dir()]
    if lost:
        print(f"left out: {', '.join(lost)}", file=sys.stderr)
    return [name for name in names if name not in lost]


def scores_of(found: Sequence[str], question: Question) -> tuple[float, float]:
    """Return recall@5 and nDCG@10."""
    return float(recall(found[:5], question.gold) or 0), float(ndcg_at(found, question.graded, 10) or 0)


def measured(index: Index, dataset: DataSet) -> dict[str, F64]:
    """Return by mode the measures of each question with gold."""
    questions = {q.id: q for q in dataset.questions if q.gold}
    results = collect(index, dataset, ["auto", *MODES], [BUDGET])
    return {
        mode: np.array(
            [
                scores_of(r.found, questions[r.question])
                for r in results.of(mode, BUDGET)
                if r.question in questions
            ]
        )
        for mode in ("auto", *MODES)
    }


def with_interval(values: F64) -> tuple[float, float, float]:
    """Return the mean in percent and its 95 % interval, a bootstrap over the questions."""
    low, high = bootstrap_interval(values.tolist()) or (0.0, 0.0)
    mean, low, high = (round(100 * float(x), 1) for x in (values.mean(), low, high))
    return mean, low, high


def print_sets(args: argparse.Namespace) -> None:
    """Print `auto` next to the other modes on every set, with intervals."""
    rows: tuple[list[list[Any]], ...] = tuple([] for _ in MEASURES)
    ahead: list[F64] = []
    for name in present(args.sets.split(",")):
        dataset = load_dataset(DATA / name)
        if args.smoke:
            dataset = replace(dataset, questions=dataset.questions[:20])
        with opened(name, model=args.model) as index:
            found = measured(index, dataset)
        apart = []
        for at, own in enumerate(rows):
            best = max(MODES, key=lambda mode, at=at: float(found[mode][:, at].mean()))
            apart.append((found["auto"] - found[best])[:, at])
            values = [with_interval(found[mode][:, at]) for mode in (*MODES, "auto")]
            own.append(
                [name, "MiniLM" if args.model else "none", len(apart[at]), *values, with_interval(apart[at])]
            )
            print(own[-1], file=sys.stderr, flush=True)
        ahead.append(np.array([values.mean() for values in apart]))
    mean = 100 * np.mean(ahead, axis=0)
    notes = [
        f"Mean lead over the best other mode, {'MiniLM' if args.model else 'no model'}: {mean[0]:.1f} points of {MEASURES[0]},"
        f" {mean[1]:.1f} of {MEASURES[1]}, each set counting once."
    ]
    heads = ["set", "vectors", "questions", *MODES, "auto", "ahead of the best other"]
    tables = [table(measure, heads, own) for measure, own in zip(MEASURES, rows, strict=True)]
    publish(tables, f"Vectors: {MODEL if args.model else 'fitted on the corpus; `walk` uses none'}.", notes)


GRID: tuple[dict[str, float], ...] = (
    {"direct": 0.0, "unlinked": 0.0},
    *(
        {"direct_stage1": weight, "distinct": distinct, "company": company}
        for weight, distinct in ((2.0, 0.7), (3.0, 0.6), (3.0, 0.7), (3.0, 0.8), (5.0, 0.7))
        for company in (0.0, 0.75, 1.5, 2.25)
    ),
)
"""Choices of the constants; the first is the walk without the rule."""


def rule_gains(name: str, per: int) -> F64:
    """Return by choice of the constants how far the walk is ahead of BM25 on a set, in points: recall@5, nDCG@10."""
    questions = [q for q in load_dataset(DATA / name).questions if q.gold]
    questions = questions[:: max(1, len(questions) // per)]
    documents = passages(name)
    corpus = Corpus.of([d.title or "" for d in documents], [d.text for d in documents])
    owner, texts = corpus.document.tolist(), [q.text for q in questions]

    def measure(hits: Sequence[kernel.Hits]) -> F64:
        found = [list(dict.fromkeys(documents[owner[unit]].id for unit in ids.tolist())) for ids, _ in hits]
        return 100 * np.mean([scores_of(*pair) for pair in zip(found, questions, strict=True)], axis=0)

    base = measure(kernel.bm25(corpus.links, texts, 100))

    def walk(numbers: dict[str, float]) -> Sequence[kernel.Hits]:
        return kernel.walk(
            corpus.links, texts, 100, lengths=corpus.lengths, documents=corpus.document, numbers=numbers
        )

    return np.array([measure(walk(numbers)) - base for numbers in GRID])


def print_rule(args: argparse.Namespace) -> None:
    """Choose the constants on all sets but one, and print what they give on that one."""
    names = present(args.sets.split(","))
    gains = {}
    for name in names:
        gains[name] = rule_gains(name, args.per)
        print(name, gains[name].round(1).tolist(), file=sys.stderr, flush=True)
    own = {"direct_stage1": 3.0, "distinct": 0.7, "company": 1.5}
    at = GRID.index(own)
    rows = []
    for name in names:
        mean = np.mean([gains[other].mean(axis=1) for other in names if other != name], axis=0)
        best = int(mean.argmax())
        words = ", ".join(f"{key} {value:g}" for key, value in GRID[best].items())
        cells = [gains[name][choice] for choice in (0, best, at)]
        rows.append([name, words, *(f"{value:+.1f}" for pair in cells for value in pair)])
    heads = ["set left out", "chosen on the others"]
    heads += [
        f"{what}, {how}" for how in ("no rule", "chosen", "the product's") for what in ("recall@5", "nDCG@10")
    ]
    publish(
        [table("Ahead of BM25, in points", heads, rows)],
        f"Up to {args.per} questions of each set, no model. The product's: {own}.",
    )


Rows = list[tuple[str, str, bool, F64, NDArray[np.bool_]]]
"""(set, mode, answerable, terms of the passages by rank, whether each is gold)"""


def evidence_of(
    index: Index, name: str, questions: Sequence[Question], modes: Sequence[str], kind: str
) -> Rows:
    """Return the evidence of the first passages of questions; `kind` says whether they have an answer in the index."""
    state = index._opened
    texts = [q.text for q in questions]
    vectors = prepare(plan_query(state, index.path, Query("x", mode="walk")), texts).vectors
    rows: Rows = []
    for mode in modes:
        for at, (question, [context]) in enumerate(
            zip(questions, index.retrieve_many(texts, mode=mode, budgets=[BUDGET]), strict=True)
        ):
            passages = context.passages[:DEPTH]
            vector = None if vectors is None else vectors[at]
            found = state.searcher.evidence(question.text, [p.unit for p in passages], vector=vector)
            gold = np.array([p.document in question.gold for p in passages], bool)
            answerable = kind == "own"
            evidence = np.array(found, float).reshape(len(passages), 8)
            rows.append((name, mode, answerable, evidence, gold & answerable))
    return rows


def collected(args: argparse.Namespace) -> Rows:
    """Return the evidence of questions of each set, of questions of other kinds of collections, and of "Null"."""
    chance = np.random.default_rng(SEED)
    names = present(args.sets.split(","))
    datasets = {name: load_dataset(DATA / name) for name in names}
    families = {name: family for family, own in FAMILIES.items() for name in own}
    rows: Rows = []
    for name in names:
        own = [q for q in datasets[name].questions if q.gold]
        null = [q for q in datasets[name].questions if q.metadata.get("type") == "Null"]
        others = [
            q
            for other in names
            if families[other] != families[name] and not other.startswith("xquad-")
            for q in datasets[other].questions[:200]
        ]

        def pick(some: Sequence[Any], most: int, chance: np.random.Generator = chance) -> list[Any]:
            return [some[i] for i in chance.permutation(len(some))[:most]]

        modes = ("text", "fused", "walk", "bm25")
        with opened(name, model=args.model) as index:
            rows += evidence_of(index, name, pick(own, args.per), modes, "own")
            rows += evidence_of(index, name, pick(others, args.per // 2), modes, "other")
            rows += evidence_of(index, name, pick(null, args.per), modes, "other")
        print(name, len(rows), file=sys.stderr, flush=True)
    return rows


def fit(x: F64, y: F64, weight: F64) -> F64:
    """Return the weights of a logistic function, by Newton's method with a small ridge."""
    w = np.zeros(x.shape[1])
    ridge = 1e-3 * weight.sum() * np.diag([0.0, *np.ones(x.shape[1] - 1)])
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ w))
        hessian = (x * (weight * p * (1 - p))[:, None]).T @ x + ridge + 1e-9 * np.eye(len(w))
        step = np.linalg.solve(hessian, x.T @ (weight * (y - p)) - ridge @ w)
        w += step
        if np.abs(step).max() < 1e-9:
            break
    return w


def falling(values: F64) -> F64:
    """Return the running minimum, as `relevance::falling`."""
    return np.minimum.accumulate(values) if len(values) else values


def calibration_error(p: F64, y: F64, bins: int = 10) -> float:
    """Return the expected calibration error."""
    at = np.minimum((p * bins).astype(int), bins - 1)
    return float(
        sum(
            abs(p[at == b].mean() - y[at == b].mean()) * (at == b).mean()
            for b in range(bins)
            if (at == b).any()
        )
    )


def judged(rows: Rows, w: F64) -> tuple[float, float, float, float]:
    """Return the calibration error, the threshold at 5 % lost, the share lost and the share refused."""
    ranked = [falling(1 / (1 + np.exp(-e @ w))) for _, _, _, e, _ in rows]
    p, y = np.concatenate(ranked), np.concatenate([gold for *_, gold in rows]).astype(float)
    best = np.array([r[0] if len(r) else 0.0 for r in ranked])
    own = np.array([row[2] for row in rows])
    threshold = float(np.quantile(best[own], 0.05)) if own.any() else 0.0
    return (
        calibration_error(p, y),
        threshold,
        float((best[own] < threshold).mean()),
        float((best[~own] < threshold).mean()),
    )


def print_relevance(args: argparse.Namespace) -> None:
    """Fit the constants, and print how they hold on each set that was left out of the fit."""
    rows = collected(args)
    if args.save:
        np.save(args.save, np.array(rows, dtype=object), allow_pickle=True)

    def weights_of(some: Rows) -> F64:
        x = np.concatenate([e for *_, e, _ in some])
        y = np.concatenate([gold for *_, gold in some]).astype(float)
        return fit(x, y, np.ones(len(y)))

    w = weights_of(rows)
    out = []
    for name in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == name]
        left = weights_of([row for row in rows if row[0] != name])
        error, _, _, _ = judged(own, left)
        threshold = judged(rows, w)[1]
        best = [float(falling(1 / (1 + np.exp(-e @ left)))[0]) if len(e) else 0.0 for *_, e, _ in own]
        has = np.array([row[2] for row in own])
        lost, refused = (
            np.mean(np.array(best)[part] < threshold) if part.any() else np.nan for part in (has, ~has)
        )
        out.append([name, f"{error:.3f}", f"{100 * lost:.1f}", f"{100 * refused:.1f}"])
    error, threshold, lost, refused = judged(rows, w)
    out.append(["all", f"{error:.3f}", f"{100 * lost:.1f}", f"{100 * refused:.1f}"])
    publish(
        [
            table(
                "Relevance",
                ["set", "calibration error", "answerable lost, %", "unanswerable refused, %"],
                out,
            )
        ],
        f"Constants: {w.round(2).tolist()}; threshold {threshold:.3f}. Each set by constants of the others.",
    )


def main() -> None:
    """Measure one subject."""
    subjects = {"sets": print_sets, "rule": print_rule, "relevance": print_relevance}
    parser = arguments(__doc__)
    parser.add_argument("subject", choices=subjects)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--model", action="store_true", help=f"embed with {MODEL}")
    parser.add_argument(
        "--per", type=int, default=200, help="questions of each set for `rule` and `relevance`"
    )
    parser.add_argument("--save", type=Path, help="write the evidence to this .npy file")
    args = parser.parse_args()
    subjects[args.subject](args)


if __name__ == "__main__":
    main()
