"""Themes of technical documentation: whether labels name what held-out documents are about, time and memory.

    python benches/themes.py FOLDER                    # documents of benches/technical.py --fetch
    python benches/themes.py FOLDER --every 6 --model  # one document of six, next to k-means over all-MiniLM-L6-v2

One document of five is held out. It belongs to the smallest theme that most of its nearest passages have (mode `bm25`), or
to the cluster of k-means whose centre is nearest to the mean of its vectors. Its label is right if it shares a term with
the document's section path: file name, title and headings. k-means has as many clusters as there are smallest themes, and
labels of five keywords by class-based TF-IDF, as BERTopic's.
"""

from __future__ import annotations

import argparse
import re
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ketrag_fast import Document, Index, Settings, _core
from ketrag_fast.kernels import kmeans
from ketrag_fast.query.themes.describe import ThemeFinder
from ketrag_fast.query.themes.labels import TERMS, TermCounts
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.shared.rows import read_strings

HELD_OUT, MODEL = 5, "native:all-MiniLM-L6-v2"
QUERY, NEAREST = 1_500, 10
"""Characters of a held-out document that are searched for, and passages that vote."""

Label = tuple[str, ...]


def stems(text: str) -> set[str]:
    """Return the keywords of a text that have letters."""
    return {word for word in _core.lexical_keywords(text) if any(map(str.isalpha, word))}


def path_of(document: Document) -> set[str]:
    """Return the keywords of the section path of a document."""
    names = [re.sub(r"\W|_", " ", Path(document.id).stem), document.title]
    for locator in document.locators:
        if locator.kind == "heading":
            value = locator.value
            names += map(str, value) if isinstance(value, (list, tuple)) else [str(value)]
    return stems(" ".join(names))


def share_of(labels: Sequence[Label], documents: Sequence[Document]) -> float:
    """Return the share of documents whose section path shares a term with the label."""
    return float(
        np.mean([bool(stems(" ".join(a)) & path_of(one)) for a, one in zip(labels, documents, strict=True)])
    )


def by_themes(index: Index, held: Sequence[Document]) -> tuple[list[Label], int]:
    """Return the label of the smallest theme of each held-out document, and the number of these themes."""
    finder = ThemeFinder(index._opened)
    last = max(node.level for node in finder.nodes)
    of_unit: dict[int, int] = {}
    for at, node in enumerate(finder.nodes):
        if node.level == last:
            of_unit |= dict.fromkeys(node.units.tolist(), at)
    labels = []
    for one in held:
        votes: Counter[int] = Counter()
        for passage in index.retrieve(one.text[:QUERY], mode="bm25", top=NEAREST, budget=10_000).passages:
            if passage.unit in of_unit:
                votes[of_unit[passage.unit]] += 1
        labels.append(finder.described[votes.most_common(1)[0][0]][0] if votes else ())
    return labels, len(set(of_unit.values()))


def by_kmeans(index: Index, held: Sequence[Document], clusters: int) -> list[Label]:
    """Return the label of the cluster of each held-out document."""
    arrays = index.inspect.arrays()
    links, vectors = arrays["links"], StoredVectors.of(arrays["vectors"]).decode()
    found = kmeans(vectors, clusters)
    counts, words = TermCounts(links), read_strings(links, "keywords")
    rows = np.stack([counts.of(np.flatnonzero(found.labels == at)) for at in range(clusters)]).astype(
        np.float64
    )
    # BERTopic: share of the class's terms, times log(1 + mean terms of a class / occurrences of the term).
    weights = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1)
    weights *= np.log(1 + rows.sum() / clusters / np.maximum(rows.sum(axis=0), 1))
    named = [tuple(words[at] for at in np.argsort(-row, kind="stable")[:TERMS]) for row in weights]
    labels = []
    for one in held:
        texts = [one.text[at : at + 1000] for at in range(0, min(len(one.text), 5000), 1000)]
        mean = index.inspect.vectors(texts, "document").mean(axis=0)
        labels.append(named[int(np.argmin(((found.centres - mean) ** 2).sum(axis=1)))])
    return labels


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1, help="use every Nth document")
    parser.add_argument("--model", action="store_true", help="also measure k-means over MiniLM")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        with Index.build(args.folder, Path(place) / "all") as index:
            documents = list(index.inspect.stored())[:: args.every]
        held = documents[::HELD_OUT]
        kept = [one for at, one in enumerate(documents) if at % HELD_OUT]
        settings = Settings(embedder=MODEL) if args.model else Settings()
        with Index.build(kept, Path(place) / "kept", settings=Settings(threads=1)) as index:
            before = time.process_time()
            found = index.themes()
            seconds = time.process_time() - before
            print(
                f"{found.passages:,} passages: {len(list(found.walk())):,} themes in {seconds:.1f} s of one core"
            )
            labels, clusters = by_themes(index, held)
            print(
                f"labels of {clusters} smallest themes: {share_of(labels, held):.1%} of {len(held)} documents"
            )
        print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:.0f} MB")
        if args.model:
            with Index.build(kept, Path(place) / "model", settings=settings) as index:
                own, number = by_themes(index, held)
                print(f"themes over MiniLM, {number} smallest: {share_of(own, held):.1%}")
                print(
                    f"k-means over MiniLM, {clusters} clusters: {share_of(by_kmeans(index, held, clusters), held):.1%}"
                )


if __name__ == "__main__":
    main()
