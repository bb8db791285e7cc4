"""Quality of the walk in a large pool: the passages of all question sets together, without a model.

python benches/walk.py [--sets musique-dev,2wiki-dev,hotpotqa-dev]
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common import arguments, publish, require_data, result_table
from ketrag_fast import Document, Settings, _core
from ketrag_fast.eval import load_dataset
from ketrag_fast.eval.metrics import bootstrap_interval
from ketrag_fast.kernels import links as kernel
from ketrag_fast.kernels.text import pack, unpack
from ketrag_fast.systems.shared.rows import offsets_of

SETS = ("musique-dev", "2wiki-dev", "hotpotqa-dev")
DEPTH = 200


OTHERS = ("2wiki-101", "musique-train100", "hotpotqa-train100", "cacm", "xquad-en")
_RUN = 5
_SHARED = 0.5


@dataclass(frozen=True)
class Corpus:
    """Units as the product cuts them, and the arrays of the walk."""

    links: kernel.Links
    document: NDArray[np.uint32]
    tokens: NDArray[np.uint32]
    texts: list[str]
    lengths: NDArray[np.float64]

    @classmethod
    def of(cls, titles: list[str], texts: list[str]) -> Corpus:
        """Run the stages units and links alone."""
        s, packed, named = Settings(), pack(texts), pack(titles)
        cut = _core.corpus(named, packed, s.cut, s.chunk_tokens, s.overlap, s.split_level, s.encoding)
        document = cut["chunk_doc"][cut["unit_chunk"]]
        units = _core.slice_strings(packed, document, cut["unit_span"])
        own = np.flatnonzero(cut["sent_title"] == 0)
        owner = cut["sent_unit"][own]
        sentences = _core.slice_strings(packed, document[owner], cut["sent_span"][own])
        first = offsets_of(owner, len(document))
        own_titles = _core.take_strings(named, document)
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


def measure_pool(name: str, others: Sequence[Document]) -> list[list[object]]:
    """Return the rows of a set: its own passages, then the pool."""
    dataset = load_dataset(require_data(name))
    questions = [question for question in dataset.questions if question.gold]
    asked, golds = [one.text for one in questions], [frozenset(one.gold) for one in questions]
    own = passages(name)
    pool, near = pool_of(own, others, set().union(*golds))
    rows: list[list[object]] = []
    for label, documents, gone in (("own passages", own, 0), ("pool", pool, near)):
        corpus = Corpus.of([one.title for one in documents], [one.text for one in documents])
        ids = [one.id for one in documents]
        walked = kernel.walk(corpus.links, asked, DEPTH, lengths=corpus.lengths)
        for mode, found in (("bm25", kernel.bm25(corpus.links, asked, DEPTH)), ("walk", walked)):
            values = scores(corpus, ids, golds, found)
            cells = [percent(values, column) for column in range(4)]
            rows.append([name, label, f"{len(corpus.document):,}", gone, mode, *cells])
    return rows


def main() -> None:
    """Measure each set in the pool."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    args = parser.parse_args()
    names = ["musique-dev"] if args.smoke else args.sets.split(",")
    every = {name: passages(name) for name in dict.fromkeys([*SETS, *(() if args.smoke else OTHERS)])}
    rows = []
    for name in names:
        rows += measure_pool(name, [one for other, own in every.items() if other != name for one in own])
    measures = ["recall@2", "recall@5", "recall@10", "all gold in 10"]
    columns = ["set", "passages", "units", "near-duplicates removed", "mode", *measures]
    about = f"The passages of {', '.join(every)} in one pool; no model."
    publish([result_table("Recall in a pool", columns, rows)], about)


if __name__ == "__main__":
    main()
