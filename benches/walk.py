"""The walk without a model, from its kernels: what each part brings, passages without titles, and larger pools.

    python benches/walk.py parts [--only chains,length]          # each part left out, paired by question
    python benches/walk.py parts --try "shorter=length=-0.7" --try "more chains=chains=20,chain=1"    # other numbers
    python benches/walk.py untitled                              # passages without titles, with and without one rule
    python benches/walk.py pool [--vary]                         # recall among the passages of all sets; other limits

All take `--sets musique-dev,2wiki-dev,hotpotqa-dev`. A part on a set takes some 5 s.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common import arguments, header, publish, require_data, result_table, table
from ketrag_fast import Document, Settings, _core
from ketrag_fast.eval import load_dataset
from ketrag_fast.eval.datasets import DataSet
from ketrag_fast.eval.metrics import bootstrap_interval, is_yes_no, normalise
from ketrag_fast.kernels import links as kernel
from ketrag_fast.kernels.text import pack, unpack
from ketrag_fast.systems.shared.rows import offsets_of

SETS = ("musique-dev", "2wiki-dev", "hotpotqa-dev")
BUDGETS = (12_000, 6_000, 3_000, 1_500)
ROW = 4  # tokens of a row's mark and line ends
DEPTH = 200


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


OTHERS = ("2wiki-101", "musique-train100", "hotpotqa-train100", "cacm", "xquad-en")
_RUN = 5
_SHARED = 0.5
LIMITS: dict[str, dict[str, float]] = {
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


def print_parts(args: argparse.Namespace) -> None:
    """Print a table for each set."""
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
            "Nothing is fitted again: parts overlap, so a part adds less alone than it would after refitting.",
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


def untitled(name: str) -> list[list[str]]:
    """Return a row for each ranking of passages without titles: recall@5 and recall@10."""
    questions, documents = load_dataset(require_data(name)).questions, passages(name)
    corpus = Corpus.of([""] * len(documents), [d.text for d in documents])
    asked = [q.text for q in questions]
    rankings = {"bm25": kernel.bm25(corpus.links, asked, DEPTH)}
    for variant, numbers in (("walk", {}), ("walk, direct=0", {"direct": 0.0})):
        rankings[variant] = kernel.walk(corpus.links, asked, DEPTH, lengths=corpus.lengths, numbers=numbers)
    rows = []
    for variant, found in rankings.items():
        recalls = []
        for question, (units, _) in zip(questions, found, strict=True):
            ranked = list(dict.fromkeys(documents[at].id for at in corpus.document[units].tolist()))
            recalls.append([len(question.gold & set(ranked[:most])) / len(question.gold) for most in (5, 10)])
        rows.append([name, variant, *(f"{100 * mean:.1f}" for mean in np.mean(recalls, axis=0))])
    return rows


def print_untitled(args: argparse.Namespace) -> None:
    """Print the rankings of passages without titles."""
    header("The walk on passages without titles", ["The rule was chosen with these sets and XQuAD in sight."])
    rows = [row for name in args.sets.split(",") for row in untitled(name)]
    table(["set", "ranking", "recall@5", "recall@10"], rows)


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


def measure_pool(
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
            for variant, numbers in LIMITS.items():
                found = kernel.walk(corpus.links, asked, DEPTH, lengths=corpus.lengths, numbers=numbers)
                apart = 100 * (np.array(scores(corpus, ids, golds, found)) - base)
                error = 196 * (apart / 100).std(axis=0) / len(apart) ** 0.5
                cells = [
                    f"{x:+.1f} ± {e:.1f}" for x, e in zip(apart.mean(axis=0)[1:], error[1:], strict=True)
                ]
                varied.append([name, variant, *cells])
    return rows, varied


def publish_pool(args: argparse.Namespace) -> None:
    """Measure each set in the pool."""
    names = ["musique-dev"] if args.smoke else args.sets.split(",")
    every = {name: passages(name) for name in dict.fromkeys([*SETS, *(() if args.smoke else OTHERS)])}
    rows, varied = [], []
    for name in names:
        others = [document for other, own in every.items() if other != name for document in own]
        new = measure_pool(name, others, vary=args.vary)
        rows += new[0]
        varied += new[1]
    measures = ["recall@2", "recall@5", "recall@10", "all gold in 10"]
    columns = ["set", "passages", "units", "near-duplicates removed", "mode", *measures]
    tables = [result_table("Recall in a pool", columns, rows)]
    if varied:
        tables.append(
            result_table(
                "The walk in the pool, differences in points", ["set", "variant", *measures[1:]], varied
            )
        )
    publish(tables, f"The passages of {', '.join(every)} in one pool; no model.")


def main() -> None:
    """Measure one subject."""
    subjects = {"parts": print_parts, "untitled": print_untitled, "pool": publish_pool}
    parser = arguments(__doc__)
    parser.add_argument("subject", choices=subjects)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--only", help="parts by the beginning of their names, by comma")
    parser.add_argument("--try", dest="tried", action="append", default=[], metavar="NAME=NUMBER=VALUE,...")
    parser.add_argument("--single", type=int, default=300, help="sentences cut out of each set")
    parser.add_argument("--vary", action="store_true", help="other limits of the walk in the pool, too")
    args = parser.parse_args()
    subjects[args.subject](args)


if __name__ == "__main__":
    main()
