"""Effect of neighbours and titles of units on the walk on long documents, without a model.

    python benches/long_documents.py [--set musique-dev] [--single 300]

Passages of one title are joined to one document, in the order of the set, and cut as the product cuts. Only questions
count of which a supporting passage is in such a document. In addition sentences are cut out of such documents, used as
questions: how often their document is first.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ablations import paired
from common import header, require_data, table
from ketrag_fast import Document
from ketrag_fast.kernels import links as kernel
from ketrag_fast.lab.eval import load_dataset
from ketrag_fast.lab.eval.metrics import is_yes_no, normalise
from walk_quality import BUDGETS, DEPTH, Corpus, coverage, cut_sentences, passages

Ranking = Callable[[Corpus, NDArray[np.uint32], NDArray[np.float64]], NDArray[np.uint32]]
POOL = 100


def joined(documents: list[Document]) -> tuple[list[Document], dict[str, str]]:
    """One document for each title, and for each passage the id of the document that it is in."""
    groups = defaultdict(list)
    for document in documents:
        groups[document.title or document.id].append(document)
    made, home = [], {}
    for title, group in groups.items():
        made.append(Document(group[0].id, "\n\n".join(d.text for d in group), title))
        home.update({d.id: group[0].id for d in group})
    return made, home


def neighbours(corpus: Corpus, unit: int) -> Iterator[int]:
    """The units before and after it in its document."""
    for other in (unit - 1, unit + 1):
        if 0 <= other < len(corpus.document) and corpus.document[other] == corpus.document[unit]:
            yield other


def plain(corpus: Corpus, units: NDArray[np.uint32], scores: NDArray[np.float64]) -> NDArray[np.uint32]:
    """The walk's order."""
    return units


def smoothed(weight: float) -> Ranking:
    """A candidate's score plus `weight` of its better neighbour's; scores of the pool from 0 to 1."""

    def ranking(corpus: Corpus, units: NDArray[np.uint32], scores: NDArray[np.float64]) -> NDArray[np.uint32]:
        own = scores[:POOL]
        spread = float(own[0] - own[-1]) or 1.0
        value = {int(u): float(s - own[-1]) / spread for u, s in zip(units[:POOL], own, strict=True)}
        new = {
            u: s + weight * max((value.get(n, 0.0) for n in neighbours(corpus, u)), default=0.0)
            for u, s in value.items()
        }
        order = sorted(new, key=lambda u: (-new[u], u))
        return np.array([*order, *units[POOL:]], np.uint32)

    return ranking


def widened(most: int) -> Ranking:
    """After each of the first `most` units its neighbours."""

    def ranking(corpus: Corpus, units: NDArray[np.uint32], scores: NDArray[np.float64]) -> NDArray[np.uint32]:
        out: dict[int, None] = {}
        for place, unit in enumerate(map(int, units)):
            out[unit] = None
            if place < most:
                out.update(dict.fromkeys(neighbours(corpus, unit)))
        return np.array(list(out), np.uint32)

    return ranking


RANKINGS: dict[str, Ranking] = {
    "walk": plain,
    "neighbour's score x .05": smoothed(0.05),
    "neighbour's score x .1": smoothed(0.1),
    "neighbour's score x .2": smoothed(0.2),
    "neighbours of the first printed": widened(1),
    "neighbours of the first three printed": widened(3),
}


def scores_of(
    corpus: Corpus,
    questions: list[str],
    answers: list[list[str]],
    rankings: dict[str, Ranking],
) -> dict[str, NDArray[np.float64]]:
    """For each ranking, questions by budgets: whether an answer is in the units that fit."""
    normal = [f" {normalise(text)} " for text in corpus.texts]
    found = kernel.walk(corpus.links, questions, DEPTH, lengths=corpus.lengths, threads=1)
    return {
        name: np.array(
            [
                coverage(corpus, normal, ranking(corpus, units, scores), own)
                for (units, scores), own in zip(found, answers, strict=True)
            ],
            float,
        )
        for name, ranking in rankings.items()
    }


def of_set(name: str) -> list[list[str]]:
    """The rows of the first table."""
    documents, home = joined(passages(name))
    sizes = defaultdict(int)
    for passage in home.values():
        sizes[passage] += 1
    kept = [
        (q.text, [a for a in map(normalise, q.answers) if a])
        for q in load_dataset(require_data(name)).questions
        if any(sizes[home[g]] > 1 for g in q.gold)
    ]
    kept = [(text, answers) for text, answers in kept if answers and not is_yes_no(answers)]
    texts, answers = [t for t, _ in kept], [a for _, a in kept]
    corpus = Corpus.of([d.title for d in documents], [d.text for d in documents])
    units = np.bincount(corpus.document)
    print(
        f"{len(kept)} questions; {len(documents):,} documents, {int((units > 1).sum()):,} of them of more than one unit\n"
    )
    scored = scores_of(corpus, texts, answers, RANKINGS)
    scored |= {
        "title on a document's first unit alone": scores_of(
            Corpus.of([d.title for d in documents], [d.text for d in documents], every=False),
            texts,
            answers,
            {"": plain},
        )[""]
    }
    base = scored["walk"]
    return [
        [
            label,
            " / ".join(f"{100 * x:.1f}" for x in values.mean(axis=0)),
            "" if label == "walk" else paired(values.mean(axis=1), base.mean(axis=1)),
            "" if label == "walk" else paired(values[:, -1], base[:, -1]),
        ]
        for label, values in scored.items()
    ]


def cut_out(documents: list[Document], count: int) -> list[list[str]]:
    """Sentences cut out of documents of several units, asked as questions: how often their document is first."""
    corpus = Corpus.of([d.title for d in documents], [d.text for d in documents])
    long = np.bincount(corpus.document, minlength=len(documents)) > 1
    order = [d for d, is_long in zip(documents, long, strict=True) if is_long]
    rest = [d for d, is_long in zip(documents, long, strict=True) if not is_long]
    _, places, sentences = cut_sentences(order, count)
    texts = [d.text for d in order]
    for at, sentence in zip(places, sentences, strict=True):
        texts[at] = texts[at].replace(sentence, "", 1)
    titles, texts = [d.title for d in [*order, *rest]], [*texts, *(d.text for d in rest)]
    rows = []
    base = None
    for label, ranking, every in [
        *((label, ranking, True) for label, ranking in RANKINGS.items() if "printed" not in label),
        ("title on a document's first unit alone", plain, False),
    ]:
        made = Corpus.of(titles, texts, every=every)
        found = kernel.walk(made.links, sentences, DEPTH, lengths=made.lengths, threads=1)
        first = np.array(
            [
                made.document[ranking(made, units, scores)[:1]].tolist() == [at]
                for (units, scores), at in zip(found, places, strict=True)
            ],
            float,
        )
        base = first if base is None else base
        rows.append([label, f"{100 * first.mean():.1f}", "" if first is base else paired(first, base)])
    return rows


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", default="musique-dev")
    parser.add_argument("--single", type=int, default=300)
    args = parser.parse_args()
    header(
        "Long documents",
        [
            f"Coverage: % of questions with an answer in the units that fit {BUDGETS} tokens; no model.",
            "Change: mean over the budgets, and at 1,500 tokens, with the paired 95 % interval, in points.",
        ],
    )
    print(f"## {args.set}, passages of one title joined\n")
    table(["ranking", "coverage", "change", "at 1.5k"], of_set(args.set))
    print(
        "Sentences cut out of documents of several units, asked as questions: % with their document first.\n"
    )
    table(["ranking", "first", "change"], cut_out(joined(passages(args.set))[0], args.single))


if __name__ == "__main__":
    main()
