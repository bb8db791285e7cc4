"""Item by item against what the published KET-RAG functions return (musique-train100/ketrag-reference).

Under the parity settings every list is equal, in order and to the last unit; where the specification
departs from the published code, the test names the units that differ. Nothing is compared by averages.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast.kernels import context, graphs
from ketrag_fast.kernels.published import PublishedTokenizer
from ketrag_fast.reference import context as plain

ROOT = Path(__file__).parents[2]
PLACES = [os.environ.get("KETRAG_SHARED_DATA", ""), ROOT.parent / "shared" / "data", ROOT / "shared" / "data"]
FOUND = [Path(p) / "musique-train100" / "ketrag-reference" for p in PLACES if p]
FOLDER = next((p for p in FOUND if p.is_dir()), None)
pytestmark = pytest.mark.skipif(FOLDER is None, reason="the KET-RAG reference data is not in ../shared/data")

GOLDEN = json.loads((ROOT / "tests" / "golden" / "nltk.json").read_text(encoding="ascii"))


def lines(name: str) -> list[dict[str, Any]]:
    assert FOLDER is not None
    with (FOLDER / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Reference:
    """The reference data, read once."""

    def __init__(self) -> None:
        assert FOLDER is not None
        units = lines("units.jsonl")
        self.texts = [u["text"] for u in units]
        self.n_tokens = [u["n_tokens"] for u in units]
        self.n = len(units)
        self.neighbours = lines("neighbours.jsonl")
        self.core = json.loads((FOLDER / "core.json").read_text())
        self.ranks = lines("pagerank.jsonl")
        self.sentences = lines("sentences.jsonl")
        self.keywords = {k["word"]: k["units"] for k in lines("keywords.jsonl")}
        self.contexts = lines("contexts.jsonl")
        vectors = np.load(FOLDER / "vectors.npz")
        self.units, self.sentence_vectors = vectors["units"], vectors["sentences"]
        self.queries = vectors["queries"]
        self.stop_words = self.core["stop_words"]

    def graph(self, edges: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
        rows: list[set[int]] = [set() for _ in range(self.n)]
        for a, b in edges:
            rows[a].add(b)
            rows[b].add(a)
        return np.cumsum([0, *map(len, rows)]), np.array([x for row in rows for x in sorted(row)])


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference()


@pytest.fixture(scope="module")
def tokenizer() -> PublishedTokenizer:
    """With the entries of Punkt's parameters that these texts look up (tests/golden/make_nltk.py)."""
    names = ("abbreviations", "collocations", "starters", "contexts")
    return PublishedTokenizer.from_parameters(*(GOLDEN[name] for name in names))


@pytest.fixture(scope="module")
def words(reference: Reference, tokenizer: PublishedTokenizer) -> list[set[str]]:
    found = tokenizer.cooccurrence_words(reference.texts, reference.stop_words)
    assert all(len(set(unit)) == len(unit) for unit in found)
    return [set(unit) for unit in found]


@pytest.fixture(scope="module")
def sentences(reference: Reference, tokenizer: PublishedTokenizer) -> list[list[Any]]:
    return tokenizer.keyword_sentences(reference.texts, reference.stop_words)


def test_words_of_each_unit(reference: Reference, words: list[set[str]]) -> None:
    assert [len(w) for w in words] == [row["words"] for row in reference.neighbours]


def test_lexical_neighbours(reference: Reference, words: list[set[str]]) -> None:
    """All pairs; the published order is (common words desc, id asc), and so is ours."""
    for unit, row in enumerate(reference.neighbours):
        common = [(len(words[unit] & words[j]), j) for j in range(reference.n) if j != unit]
        best = sorted(common, key=lambda pair: (-pair[0], pair[1]))[:3]
        assert [[j, count] for count, j in best] == row["lexical"]


def test_semantic_neighbours(reference: Reference) -> None:
    """Exact cosines in f64, ties by id; the published ones are f32 and have no tie that matters."""
    vectors = reference.units.astype(np.float64)
    near = vectors @ vectors.T
    for unit, row in enumerate(reference.neighbours):
        others = [j for j in range(reference.n) if j != unit]
        assert sorted(others, key=lambda j: (-near[unit, j], j))[:3] == row["semantic"]


def test_the_graph_is_that_of_the_neighbours(reference: Reference) -> None:
    edges = set()
    for unit, row in enumerate(reference.neighbours):
        for other in (row["lexical"][0][0], row["semantic"][0]):
            edges.add((min(unit, other), max(unit, other)))
    assert sorted(edges) == [tuple(sorted(edge)) for edge in sorted(map(sorted, reference.core["edges"]))]


def test_pagerank_as_published_and_converged(reference: Reference) -> None:
    graph = reference.graph(reference.core["edges"])
    published = graphs.pagerank(*graph, until="networkx")
    np.testing.assert_allclose(published, [r["as_published"] for r in reference.ranks], rtol=1e-12)
    converged = graphs.pagerank(*graph, tolerance=1e-13)
    # networkx stopped there when a step changed less than n * 1e-14: that far it may be from the limit.
    theirs = np.array([r["converged"] for r in reference.ranks])
    assert np.abs(converged - theirs).sum() < reference.n * 1e-14 * 0.85 / 0.15
    usual = graphs.pagerank(*graph)
    assert np.abs(usual - converged).sum() < 1e-9


def test_core_as_published(reference: Reference) -> None:
    """`int(n * beta)` units, sorted stably by the rank as networkx leaves it."""
    published = graphs.pagerank(*reference.graph(reference.core["edges"]), until="networkx")
    count = int(reference.n * reference.core["beta"])
    assert graphs.select_ranked(published, count).tolist() == reference.core["core_as_published"]


def test_core_as_specified_adds_one_unit(reference: Reference) -> None:
    """The count is rounded up (1.9 #2): unit 235 joins; the converged rank moves no unit over the cut."""
    ranks = graphs.pagerank(*reference.graph(reference.core["edges"]))
    count = graphs.core_count(reference.n, reference.core["beta"])
    ours = graphs.select_ranked(ranks, count).tolist()
    assert set(ours) - set(reference.core["core_as_published"]) == {235}
    assert len(ours) == len(reference.core["core_as_published"]) + 1


def test_sentences_as_embedded(reference: Reference, sentences: list[list[Any]]) -> None:
    got = [(unit, s.text) for unit, found in enumerate(sentences) for s in found]
    assert got == [(s["unit"], s["sentence"]) for s in reference.sentences]


def test_keywords_and_their_units(reference: Reference, sentences: list[list[Any]]) -> None:
    keywords: dict[str, list[int]] = {}
    for unit, found in enumerate(sentences):
        for word in (w for s in found for w in s.keywords):
            units = keywords.setdefault(word, [])
            if units[-1:] != [unit]:
                units.append(unit)
    assert keywords == {word: sorted(units) for word, units in reference.keywords.items()}
    # In the product's form: the same graph, turned around by the kernel.
    names = sorted(keywords, key=str.encode)
    number = {word: i for i, word in enumerate(names)}
    rows = [sorted({number[w] for s in found for w in s.keywords}) for found in sentences]
    indptr, indices = np.cumsum([0, *map(len, rows)]), np.concatenate([np.array(r, int) for r in rows])
    graph = graphs.bipartite(indptr, indices, len(names))
    assert graph.kept.tolist() == list(range(len(names)))
    units = np.split(graph.keyword_units.indices, graph.keyword_units.indptr[1:-1].astype(int))
    assert [u.tolist() for u in units] == [sorted(reference.keywords[name]) for name in names]


def rankings(reference: Reference) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    for row, query in zip(reference.contexts, reference.queries, strict=True):
        yield row, reference.units.astype(np.float64) @ query.astype(np.float64)


def printed(reference: Reference, candidates: list[int], budget: int) -> list[int]:
    style = {"style": "published", "oversize_policy": "drop"}
    result = context.render(candidates, reference.texts, reference.n_tokens, budget, **style)
    assert result.tokens <= budget
    return result.units.tolist()


@pytest.mark.parametrize("budget", [3000, 6000])
def test_text_channel(reference: Reference, budget: int) -> None:
    for row, near in rankings(reference):
        candidates = sorted(range(reference.n), key=lambda u: (-near[u], u))
        assert printed(reference, candidates, budget) == row[f"text_{budget}"]


@pytest.fixture(scope="module")
def keyword_means(reference: Reference, sentences: list[list[Any]]) -> tuple[list[list[int]], np.ndarray]:
    """As published: the mean over the occurrences of each word, in order of first occurrence."""
    sums: dict[str, Any] = {}
    counts: dict[str, int] = {}
    at = 0
    for found in sentences:
        for sentence in found:
            for word in sentence.keywords:
                sums[word] = sums.get(word, 0.0) + reference.sentence_vectors[at].astype(np.float64)
                counts[word] = counts.get(word, 0) + 1
            at += 1
    assert list(sums) == list(reference.keywords)
    means = np.stack([sums[word] / counts[word] for word in sums])
    return [reference.keywords[word] for word in sums], means


@pytest.mark.parametrize("budget", [3000, 6000])
def test_keyword_channel(
    reference: Reference, keyword_means: tuple[list[list[int]], np.ndarray], budget: int
) -> None:
    """The 1,000 best keywords by inner product, each keyword's units by similarity, to twice the budget."""
    keyword_units, means = keyword_means
    for row, query in zip(reference.contexts, reference.queries, strict=True):
        pool = plain.keyword_pool(
            query, means, keyword_units, reference.units, reference.n_tokens, budget,
            most_keywords=1000, published=True,
        )  # fmt: skip
        assert printed(reference, pool, budget) == row[f"keyword_{budget}"]
