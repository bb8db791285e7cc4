"""The default on many kinds of collections, whole, cut into short passages and joined into long documents.

    python benches/kinds.py sets [--model] [--sets a,b] [--shapes whole,cut60]   # every mode, and auto's lead over the best other
    python benches/kinds.py walk [--model] --number distinct=0.8                  # the walk's kernel with other weights

Each set is a sample (`DOCUMENTS`, `QUESTIONS`), so that all of them fit into minutes on two cores. Its index is built once, in the
folder of the benchmarks' indexes. What counts as found is always a passage of the set as it was published: in a joined document,
the passages that a ranked unit overlaps.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import DATA, MODEL, WORK, arguments, publish, require_model
from common import result_table as table
from ketrag_fast import Document, Index, Settings
from ketrag_fast.eval import load_dataset
from ketrag_fast.eval.metrics import ndcg_at, recall
from ketrag_fast.kernels import links as kernel
from ketrag_fast.kernels.vectors import fuse_ranks
from ketrag_fast.query.plan import plan_query
from ketrag_fast.query.query import Query
from ketrag_fast.query.ranking import prepare
from ketrag_fast.storage.vector_codes import StoredVectors, unpack_signs

Vectors = NDArray[np.float32]
KINDS = {
    "musique-dev": "wiki",
    "2wiki-dev": "wiki",
    "hotpotqa-dev": "wiki",
    "ottqa-dev": "tables",
    "xquad-en": "paragraphs",
    "locomo-dev": "chat",
    "lihua-world": "chat",
    "beam-dev": "chat",
    "beam-dev-exchanges": "chat",
    "cosqa-dev": "code",
    "cacm": "abstracts",
    "legal-contractnli": "contracts",
    "wildgraph": "web",
}
"""The sets and the kind of each. A set that does not exist is left out."""
SHAPES = ("whole", "cut30", "cut60", "cut100", "joined", "untitled", "untitled-cut30", "untitled-cut60")
MODES = ("bm25", "text", "fused")
DOCUMENTS, QUESTIONS = (
    {"wildgraph": 150, "cacm": 3204, "cosqa-dev": 2000},
    {"xquad-en": 300, "wildgraph": 100},
)
MOST_DOCUMENTS, MOST_QUESTIONS = {False: 2000, True: 1000}, 200
"""Passages of a sample without and with a model, which takes most of the time; questions."""
TOGETHER = 10
"""Passages that are joined into one document."""
DEPTH = 200
SEED = 66


@dataclass(frozen=True)
class Set:
    """Documents of one collection, and its questions with the ids of their gold passages."""

    name: str
    documents: list[Document]
    questions: list[str]
    gold: list[dict[str, float]]
    joined: Mapping[str, list[tuple[int, str]]]
    """For a joined document: the byte offset at which each passage begins, and its id."""


def _records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def _sampled(name: str, folder: Path, most_documents: int) -> Set:
    """Return a sample of a set: some questions, their gold, and other passages at random."""
    chance = np.random.default_rng(SEED)
    if (folder / "tests.json").exists():
        return _spans(name, folder)
    asked = [question for question in load_dataset(folder).questions if question.gold]
    most = QUESTIONS.get(name, MOST_QUESTIONS)
    asked = [asked[at] for at in sorted(chance.permutation(len(asked))[:most].tolist())]
    records = _records(folder / "corpus.jsonl")
    needed = {gold for question in asked for gold in question.gold}
    others = [at for at, record in enumerate(records) if str(record["_id"]) not in needed]
    free = max(DOCUMENTS.get(name, most_documents) - len(needed), 0)
    chosen = {others[at] for at in chance.permutation(len(others))[:free].tolist()}
    documents = [
        Document(str(record["_id"]), record["text"], record.get("title", ""))
        for at, record in enumerate(records)
        if at in chosen or str(record["_id"]) in needed
    ]
    return Set(name, documents, [q.text for q in asked], [dict(q.graded) for q in asked], {})


def _spans(name: str, folder: Path) -> Set:
    """Return a set whose gold are stretches of contracts: the gold is the contract, and below it its units."""
    documents = [Document(str(r["_id"]), r["text"], "") for r in _records(folder / "corpus.jsonl")]
    tests = json.loads((folder / "tests.json").read_text("utf-8"))
    known = {document.id for document in documents}
    tests = [test for test in tests if all(span[0] in known for span in test[1])]
    tests = tests[:: max(len(tests) // MOST_QUESTIONS, 1)]
    texts = {document.id: document.text for document in documents}

    def span(file: str, ends: Sequence[int]) -> str:
        start, end = (len(texts[file][:at].encode()) for at in ends)
        return f"{file}\0{start}\0{end}"

    gold = [{span(file, ends): 1.0 for file, ends, *_ in test[1]} for test in tests]
    return Set(name, documents, [test[0] for test in tests], gold, {})


def _joined(given: Set) -> Set:
    """Return the set with ten consecutive passages in each document, which has the title of the first."""
    documents, parts = [], {}
    for start in range(0, len(given.documents), TOGETHER):
        some = given.documents[start : start + TOGETHER]
        at, begins = 0, []
        for one in some:
            begins.append((at, one.id))
            at += len(one.text.encode()) + 2
        parts[some[0].id] = begins
        documents.append(Document(some[0].id, "\n\n".join(one.text for one in some), some[0].title))
    return Set(given.name, documents, given.questions, given.gold, parts)


def _exchanges(given: Set) -> Set:
    """Return a chat with each message of the person and the replies to it as one document."""
    groups: list[list[Document]] = []
    for message in given.documents:
        if not groups or message.text.startswith("user:"):
            groups.append([])
        groups[-1].append(message)
    documents = [Document(group[0].id, "\n\n".join(one.text for one in group), "") for group in groups]
    exchange = {one.id: group[0].id for group in groups for one in group}
    gold = [{exchange[name]: 1.0 for name in names} for names in given.gold]
    return Set(given.name, documents, given.questions, gold, {})


def sets_of(name: str, shape: str, *, model: bool) -> list[Set]:
    """Return the collections of a set; a chat of `beam-dev` is one of its own."""
    most = MOST_DOCUMENTS[model]
    if name in ("beam-dev", "beam-dev-exchanges"):
        chats = [one for one in sorted((DATA / "beam-dev").iterdir()) if one.is_dir()]
        sampled = [_sampled(f"{name}-{one.name}", one, most) for one in chats]
        return sampled if name == "beam-dev" else [_exchanges(one) for one in sampled]
    found = _sampled(name, DATA / name, most)
    if shape.startswith("untitled"):
        bare = [replace(document, title="") for document in found.documents]
        return [replace(found, documents=bare)]
    return [_joined(found) if shape == "joined" else found]


class Collection:
    """One index with its questions, and the arrays that the kernels rank."""

    def __init__(self, own: Set, shape: str, *, model: bool) -> None:
        """Open the index, built if it does not exist."""
        self.set, self.model = own, model
        settings = Settings(modes="bm25,text,fused,walk")
        if "cut" in shape:
            settings = settings.having(chunk_tokens=int(shape.partition("cut")[2]))
        if model:
            settings = settings.having(embedder=f"native:{require_model()}")
        place = WORK / "kinds" / f"{own.name}-{shape}-{'minilm' if model else 'none'}"
        index = Index.build(own.documents, place, settings=settings)
        state = index._opened
        stages = state.generation.stages
        self.index = index
        self.links = {name: np.asarray(array) for name, array in stages["links"].items()}
        units = stages["units"]
        self.document = np.asarray(units["unit_document"])
        self.bytes = np.asarray(units["unit_bytes"])
        span = np.asarray(units["unit_span"]).astype(np.int64)
        self.lengths = np.log1p((span[:, 1] - span[:, 0]).astype(float))
        ids, texts = (
            (np.asarray(units[f"{name}_blob"]), np.asarray(units[f"{name}_offsets"]))
            for name in ("document_ids", "unit_texts")
        )
        self.files = (ids, texts)
        names, ends = ids[0].tobytes(), ids[1].tolist()
        self.ids = [names[a:b].decode() for a, b in pairwise(ends)]
        self.vectors = StoredVectors.of(stages["vectors"]).decode()
        self.near: kernel.Vectors | None = None
        if model:
            asked = prepare(plan_query(state, index.path, Query("x", mode="walk")), own.questions).vectors
            signs = unpack_signs(np.asarray(stages["sentence_vectors"]["signs"]), self.vectors.shape[1])
            self.near = kernel.Vectors(self.vectors, signs, np.asarray(asked, np.float32))

    @cached_property
    def passages(self) -> list[list[str]]:
        """The passages of the published set that each unit overlaps, those of its middle first."""
        return [self._passages(unit) for unit in range(len(self.document))]

    def _passages(self, unit: int) -> list[str]:
        name = self.ids[self.document[unit]]
        start, end = self.bytes[unit].tolist()
        if "\0" in next(iter(self.set.gold[0])):
            return [f"{name}\0{start}\0{end}"]
        if name not in self.set.joined:
            return [name]
        begins = self.set.joined[name]
        ends = [*(at for at, _ in begins[1:]), 1 << 60]
        shared = [
            (min(end, last) - max(start, at), one) for (at, one), last in zip(begins, ends, strict=True)
        ]
        shares = sorted(((bytes_, one) for bytes_, one in shared if bytes_ > 40), reverse=True)
        return [one for _, one in shares] or [max(shared)[1]]

    def ranked(self, mode: str, numbers: Mapping[str, float] | None = None) -> list[NDArray[np.uint32]]:
        """Return for each question the units that a kernel ranks first."""
        asked = self.set.questions
        if mode == "walk":
            hits = kernel.walk(
                self.links,
                asked,
                DEPTH,
                vectors=self.near,
                lengths=self.lengths,
                documents=self.document,
                files=self.files,
                numbers=numbers,
            )
            return [units for units, _ in hits]
        words = [units for units, _ in kernel.bm25(self.links, asked, DEPTH)]
        if mode == "bm25":
            return words
        if self.near is None:
            near = [
                [p.unit for p in c.passages]
                for [c] in self.index.retrieve_many(asked, mode="text", budgets=[24_000])
            ]
            vectors = [np.array(units, np.uint32) for units in near]
        else:
            scores = self.near.questions @ self.vectors.T
            vectors = [np.argsort(-row, kind="stable")[:DEPTH].astype(np.uint32) for row in scores]
        if mode == "text":
            return vectors
        return [fuse_ranks([a, b])[0] for a, b in zip(words, vectors, strict=True)]

    def found(self, mode: str) -> list[list[int]]:
        """Return for each question the units of the product's context, in order."""
        contexts = self.index.retrieve_many(self.set.questions, mode=mode, budgets=[12_000])
        return [[p.unit for p in context.passages] for [context] in contexts]

    def scores(self, ranked: Sequence[Any]) -> NDArray[np.float64]:
        """Return recall@5 and nDCG@10 of each question."""
        rows = []
        for units, gold in zip(ranked, self.set.gold, strict=True):
            found = list(dict.fromkeys(name for unit in units for name in self._named(int(unit), gold)))
            rows.append((recall(found[:5], frozenset(gold)) or 0.0, ndcg_at(found, gold, 10) or 0.0))
        return np.array(rows)

    def _named(self, unit: int, gold: Mapping[str, float]) -> list[str]:
        """Return the passages of a unit; a unit that overlaps a gold span is that span."""
        names = self.passages[unit]
        if "\0" not in names[0]:
            return names
        file, start, end = names[0].split("\0")
        hits = []
        for one in gold:
            other, first, last = one.split("\0")
            if other == file and int(first) < int(end) and int(start) < int(last):
                hits.append(one)
        return hits or names


def present(names: str) -> list[str]:
    """Return the sets that exist; the others are named on stderr."""
    wanted = names.split(",")
    lost = [name for name in wanted if not (DATA / name.removesuffix("-exchanges")).is_dir()]
    if lost:
        print(f"left out: {', '.join(lost)}", file=sys.stderr)
    return [name for name in wanted if name not in lost]


def cases(args: argparse.Namespace) -> Iterator[tuple[str, str, list[Collection]]]:
    """Yield each set in each shape with its collections."""
    for name in present(args.sets):
        for shape in args.shapes.split(","):
            if shape == "joined" and KINDS.get(name) in ("chat", "web", "contracts"):
                continue  # their documents are long already
            if shape.startswith("untitled") and KINDS.get(name) != "wiki":
                continue
            yield (
                name,
                shape,
                [Collection(own, shape, model=args.model) for own in sets_of(name, shape, model=args.model)],
            )


def print_sets(args: argparse.Namespace) -> None:
    """Print every mode on every set, with auto's lead over the best other one."""
    rows = []
    for name, shape, collections in cases(args):
        values = {
            mode: 100 * np.concatenate([one.scores(one.found(mode)) for one in collections]).mean(axis=0)
            for mode in (*MODES, "auto")
        }
        best = np.max([values[mode] for mode in MODES], axis=0)
        lead = values["auto"] - best
        units = sum(len(one.document) for one in collections)
        documents = sum(len(one.set.documents) for one in collections)
        cells = [f"{values[mode][at]:.1f}" for at in (0, 1) for mode in (*MODES, "auto")]
        rows.append([name, shape, f"{units / documents:.1f}", *cells, *(f"{x:+.1f}" for x in lead)])
        print(rows[-1], file=sys.stderr, flush=True)
    heads = [f"{mode} {measure}" for measure in ("recall@5", "nDCG@10") for mode in (*MODES, "auto")]
    heads = ["set", "shape", "passages for each document", *heads, "lead in recall@5", "lead in nDCG@10"]
    publish(
        [table("Kinds of collections", heads, rows)],
        f"Vectors: {MODEL if args.model else 'fitted on the corpus'}.",
    )


def print_walk(args: argparse.Namespace) -> None:
    """Print the walk as it is and with other numbers, next to BM25."""
    numbers = {name: float(value) for name, _, value in (one.partition("=") for one in args.number)}
    rows = []
    for name, shape, collections in cases(args):
        ways = (("bm25", None), ("walk", None), ("walk", numbers))
        values = [
            100 * np.concatenate([one.scores(one.ranked(mode, own)) for one in collections]).mean(axis=0)
            for mode, own in ways
        ]
        rows.append([name, shape, *(f"{value[at]:.1f}" for at in (0, 1) for value in values)])
        print(rows[-1], file=sys.stderr, flush=True)
    heads = [
        f"{how} {measure}"
        for measure in ("recall@5", "nDCG@10")
        for how in ("bm25", "walk", "walk with the numbers")
    ]
    publish([table("The walk with other numbers", ["set", "shape", *heads], rows)], f"{numbers}")


def main() -> None:
    """Measure one subject."""
    subjects = {"sets": print_sets, "walk": print_walk}
    parser = arguments(__doc__)
    parser.add_argument("subject", choices=subjects)
    parser.add_argument("--sets", default=",".join(KINDS))
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--model", action="store_true", help=f"embed with {MODEL}")
    parser.add_argument(
        "--number", action="append", default=[], metavar="NAME=VALUE", help="a weight of the walk"
    )
    args = parser.parse_args()
    if args.smoke:
        args.sets, args.shapes = "xquad-en", "whole"
    subjects[args.subject](args)


if __name__ == "__main__":
    main()
