"""The walk, without a model, on the development sets; and on questions that one passage answers.

python benches/walk_quality.py [--sets musique-dev,2wiki-dev,hotpotqa-dev] [--single 300] [--untitled]

With `--untitled` passages have no titles, and the walk is compared with one that does not look at how much the candidates
have in common.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import header, require_data, table
from ketrag_fast import Document, Settings, _core
from ketrag_fast.kernels import links as kernel
from ketrag_fast.kernels.text import pack, unpack
from ketrag_fast.lab.eval import load_dataset
from ketrag_fast.lab.eval.metrics import is_yes_no, normalise
from ketrag_fast.systems.shared.rows import offsets_of

SETS = ("musique-dev", "2wiki-dev", "hotpotqa-dev")
BUDGETS = (12_000, 6_000, 3_000, 1_500)
ROW = 4  # tokens of a row's mark and line ends
DEPTH = 200


@dataclass(frozen=True)
class Corpus:
    """Units as the product cuts them, and the arrays of the walk."""

    links: kernel.Links
    document: NDArray[np.uint32]
    tokens: NDArray[np.uint32]
    texts: list[str]
    lengths: NDArray[np.float64]

    @classmethod
    def of(cls, titles: list[str], texts: list[str], *, every: bool = True) -> Corpus:
        """Runs the stages units and links alone; without `every`, only a document's first unit has its title."""
        s, packed, named = Settings(), pack(texts), pack(titles)
        cut = _core.corpus(named, packed, s.cut, s.chunk_tokens, s.overlap, s.split_level, s.encoding)
        document = cut["chunk_doc"][cut["unit_chunk"]]
        units = _core.slice_strings(packed, document, cut["unit_span"])
        own = np.flatnonzero(cut["sent_title"] == 0)
        owner = cut["sent_unit"][own]
        sentences = _core.slice_strings(packed, document[owner], cut["sent_span"][own])
        first = offsets_of(owner, len(document))
        own_titles = _core.take_strings(named, document)
        if not every:
            again = np.flatnonzero(document[1:] == document[:-1]) + 1
            held = dict.fromkeys(again.tolist(), "")
            own_titles = pack([held.get(at, title) for at, title in enumerate(unpack(*own_titles))])
        links = _core.links_build(*own_titles, *units, *sentences, first)
        strings = [
            f"{title}\n{text}" if title else text
            for title, text in zip(unpack(*own_titles), unpack(*units), strict=True)
        ]
        lengths = np.log([len(text) + 1.0 for text in strings])
        return cls(links, document, cut["unit_tokens"], strings, lengths)


def passages(name: str) -> list[Document]:
    """The corpus of a set."""
    with (require_data(name) / "corpus.jsonl").open(encoding="utf-8") as lines:
        records = map(json.loads, lines)
        return [Document(str(r["_id"]), r["text"], r.get("title", "")) for r in records]


def coverage(corpus: Corpus, normal: list[str], ids: NDArray[np.uint32], answers: list[str]) -> list[bool]:
    """For each budget whether one of the units that fit holds an answer; the first that does not fit ends it."""
    used = np.cumsum(corpus.tokens[ids] + ROW)
    at = next((k for k, unit in enumerate(ids) if any(f" {a} " in normal[unit] for a in answers)), None)
    return [at is not None and int(used[at]) <= budget for budget in BUDGETS]


def variants(corpus: Corpus) -> dict[str, dict[str, Any]]:
    """Return the variants to compare: lengths in characters, as in the product, and in keywords."""
    return {"walk": {"lengths": corpus.lengths}, "walk, length in keywords": {}}


def untitled(name: str) -> list[list[str]]:
    """Return a row for each ranking of passages without titles: recall@5 and recall@10."""
    questions, documents = load_dataset(require_data(name)).questions, passages(name)
    corpus = Corpus.of([""] * len(documents), [d.text for d in documents])
    asked = [q.text for q in questions]
    rankings = {"bm25": kernel.bm25(corpus.links, asked, DEPTH)}
    for variant, numbers in (("walk", {}), ("walk, dissimilar_weight=0", {"dissimilar_weight": 0.0})):
        rankings[variant] = kernel.walk(corpus.links, asked, DEPTH, lengths=corpus.lengths, numbers=numbers)
    rows = []
    for variant, found in rankings.items():
        recalls = []
        for question, (units, _) in zip(questions, found, strict=True):
            ranked = list(dict.fromkeys(documents[at].id for at in corpus.document[units].tolist()))
            recalls.append([len(question.gold & set(ranked[:most])) / len(question.gold) for most in (5, 10)])
        rows.append([name, variant, *(f"{100 * mean:.1f}" for mean in np.mean(recalls, axis=0))])
    return rows


def evaluate(name: str) -> list[list[str]]:
    """Return a row of the table for each variant."""
    dataset = load_dataset(require_data(name))
    documents = passages(name)
    corpus = Corpus.of([d.title for d in documents], [d.text for d in documents])
    ids = np.array([d.id for d in documents])
    normal = [f" {normalise(text)} " for text in corpus.texts]
    rows = []
    for variant, options in variants(corpus).items():
        started = time.process_time()
        found = kernel.walk(corpus.links, [q.text for q in dataset.questions], DEPTH, threads=1, **options)
        took = 1000 * (time.process_time() - started) / len(found)
        covered, five, ten = [], [], []
        for question, (units, _) in zip(dataset.questions, found, strict=True):
            answers = [a for a in map(normalise, question.answers) if a]
            if answers and not is_yes_no(answers):
                covered.append(coverage(corpus, normal, units, answers))
            ranked = list(dict.fromkeys(ids[corpus.document[units]].tolist()))
            if question.gold:
                five.append(len(question.gold & set(ranked[:5])) / len(question.gold))
                ten.append(question.gold <= set(ranked[:10]))
        cells = " / ".join(f"{100 * x:.1f}" for x in np.mean(covered, axis=0))
        all_gold, recall = f"{100 * float(np.mean(ten)):.1f}", f"{100 * float(np.mean(five)):.1f}"
        rows.append([name, variant, cells, all_gold, recall, f"{took:.2f}"])
    return rows


def cut_sentences(documents: list[Document], count: int) -> tuple[Corpus, list[int], list[str]]:
    """The passages without a sentence of `count` of them; these passages, and the sentences."""
    chance = random.Random(42)
    titles, texts = [d.title for d in documents], [d.text for d in documents]
    places: list[int] = []
    cut: list[str] = []
    order = list(range(len(texts)))
    chance.shuffle(order)
    for at in order:
        sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z])", texts[at])
        long = [k for k, s in enumerate(sentences) if k > 0 and len(s.split()) >= 8]
        if len(sentences) < 3 or not long or len(cut) == count:
            continue
        chosen = chance.choice(long)
        places.append(at)
        cut.append(sentences[chosen])
        texts[at] = " ".join(sentences[:chosen] + sentences[chosen + 1 :])
    return Corpus.of(titles, texts), places, cut


def single_hop(name: str, count: int) -> list[list[str]]:
    """Sentences cut out of their passages, asked as questions: how often their passage is first, among five."""
    corpus, wanted, questions = cut_sentences(passages(name), count)
    ranked = {"bm25": kernel.bm25(corpus.links, questions, DEPTH)}
    for variant, options in variants(corpus).items():
        ranked[variant] = kernel.walk(corpus.links, questions, DEPTH, **options)
    rows = []
    for variant, found in ranked.items():
        places = [corpus.document[units].tolist() for units, _ in found]
        hits = [
            100 * float(np.mean([at in own[:k] for at, own in zip(wanted, places, strict=True)]))
            for k in (1, 5)
        ]
        rows.append([name, variant, f"{hits[0]:.1f}", f"{hits[1]:.1f}"])
    return rows


def main() -> None:
    """Print the two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--single", type=int, default=300, help="sentences cut out of each set")
    parser.add_argument("--untitled", action="store_true", help="only passages without titles")
    args = parser.parse_args()
    if args.untitled:
        header(
            "The walk on passages without titles", ["The rule was chosen with these sets and XQuAD in sight."]
        )
        rows = [row for name in args.sets.split(",") for row in untitled(name)]
        table(["set", "ranking", "recall@5", "recall@10"], rows)
        return
    header(
        "The walk, without a model",
        [
            f"Coverage: % of questions with an answer in the units that fit {BUDGETS} tokens; without yes/no questions.",
            "All gold: % of questions whose supporting passages are all among the first ten.",
            "Targets are the sketch's, whose tokens are characters / 4 and whose word rules differ a little.",
            "The constants of the walk were chosen on these sets. ms: processor time of one thread.",
        ],
    )
    names = args.sets.split(",")
    columns = ["set", "ranking", "coverage", "all gold", "recall@5", "ms a question"]
    table(columns, [row for name in names for row in evaluate(name)])
    print(
        "Sentences cut out of their passages, asked as questions: % with their passage first, among five.\n"
        "The walk is to be first at least as often as BM25.\n"
    )
    columns = ["set", "ranking", "first", "first five"]
    table(columns, [row for name in names for row in single_hop(name, args.single)])


if __name__ == "__main__":
    main()
