"""Item by item against what the published KET-RAG functions return (musique-train100/ketrag-reference).

Under the parity settings every list is equal, in order and to the last unit; where the specification
departs from the published code, the test names the units that differ. Nothing is compared by averages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.oracles import context as plain
from tests.oracles import cooccurrence as plain_cooccurrence
from tests.oracles import vectors as plain_vectors
from tests.support import all_kernels as kernels
from tests.support.inner_kernels.published import PublishedTokenizer

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "nltk.json").read_text(encoding="ascii"))


def lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def rows_of(lists: Iterable[Iterable[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Compressed rows of the distinct numbers of each list."""
    rows = [sorted(set(row)) for row in lists]
    flat = [x for row in rows for x in row]
    return np.cumsum([0, *map(len, rows)]).astype(np.uint64), np.array(flat, np.uint32)


class Reference:
    """The reference data, read once."""

    def __init__(self, folder: Path) -> None:
        units = lines(folder / "units.jsonl")
        self.texts = [u["text"] for u in units]
        self.n_tokens = [u["n_tokens"] for u in units]
        self.n = len(units)
        self.neighbours = lines(folder / "neighbours.jsonl")
        self.core = json.loads((folder / "core.json").read_text())
        self.ranks = lines(folder / "pagerank.jsonl")
        self.sentences = lines(folder / "sentences.jsonl")
        self.keywords = {k["word"]: k["units"] for k in lines(folder / "keywords.jsonl")}
        self.contexts = lines(folder / "contexts.jsonl")
        vectors = np.load(folder / "vectors.npz")
        self.units, self.sentence_vectors = vectors["units"], vectors["sentences"]
        self.queries = vectors["queries"]
        self.stop_words = self.core["stop_words"]

    def graph(self, edges: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
        rows: list[set[int]] = [set() for _ in range(self.n)]
        for a, b in edges:
            rows[a].add(b)
            rows[b].add(a)
        return rows_of(rows)


@pytest.fixture(scope="module")
def reference(passages: Path) -> Reference:
    return Reference(passages / "ketrag-reference")


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


@pytest.fixture(scope="module")
def lexical(reference: Reference, words: list[set[str]]) -> kernels.CooccurrenceNeighbours:
    number = {word: i for i, word in enumerate(sorted(set().union(*words)))}
    rows = rows_of([number[w] for w in unit] for unit in words)
    return kernels.cooccurrence_knn(*rows, len(number), 3, allow_zero=True)


@pytest.fixture(scope="module")
def semantic(reference: Reference) -> np.ndarray:
    ids, scores = kernels.cosine_knn(reference.units, 3)
    assert (np.diff(scores) <= 0).all()
    return ids


def test_lexical_neighbours(
    reference: Reference, words: list[set[str]], lexical: kernels.CooccurrenceNeighbours
) -> None:
    """All pairs; the published order is (common words desc, id asc), and so is ours."""
    found = np.stack([lexical.ids, lexical.counts], axis=2).tolist()
    assert found == [row["lexical"] for row in reference.neighbours]
    number = {word: i for i, word in enumerate(sorted(set().union(*words)))}
    ids, counts = plain_cooccurrence.cooccurrence_knn(
        [[number[w] for w in u] for u in words], 3, allow_zero=True
    )
    assert (lexical.ids.tolist(), lexical.counts.tolist()) == (ids.tolist(), counts.tolist())


def test_semantic_neighbours(reference: Reference, semantic: np.ndarray) -> None:
    """Reference similarities, ties by id; the published ones are f32 and have no tie that matters."""
    assert semantic.tolist() == [row["semantic"] for row in reference.neighbours]
    for unit in range(0, reference.n, 50):
        best = plain_vectors.top_k(reference.units, reference.units[unit], 4)
        assert [other for other, _ in best if other != unit][:3] == semantic[unit].tolist()


def test_the_graph_is_that_of_the_neighbours(
    reference: Reference, lexical: kernels.CooccurrenceNeighbours, semantic: np.ndarray
) -> None:
    """The published graph was made of one neighbour of each kind."""
    graph = kernels.knn_graph(lexical.ids[:, :1].copy(), semantic[:, :1].copy())
    indptr, indices = reference.graph(reference.core["edges"])
    assert graph.indptr.tolist() == indptr.tolist()
    assert graph.indices.tolist() == indices.tolist()


def test_pagerank_as_published_and_converged(reference: Reference) -> None:
    graph = reference.graph(reference.core["edges"])
    published = kernels.pagerank(*graph, until="networkx")
    np.testing.assert_allclose(published, [r["as_published"] for r in reference.ranks], rtol=1e-12)
    converged = kernels.pagerank(*graph, tolerance=1e-13)
    # networkx stopped there when a step changed less than n * 1e-14: that far it may be from the limit.
    theirs = np.array([r["converged"] for r in reference.ranks])
    assert np.abs(converged - theirs).sum() < reference.n * 1e-14 * 0.85 / 0.15
    usual = kernels.pagerank(*graph)
    assert np.abs(usual - converged).sum() < 1e-9


def test_core_as_published(reference: Reference) -> None:
    """`int(n * beta)` units, sorted stably by the rank as networkx leaves it."""
    published = kernels.pagerank(*reference.graph(reference.core["edges"]), until="networkx")
    count = int(reference.n * reference.core["beta"])
    assert kernels.select_ranked(published, count).tolist() == reference.core["core_as_published"]


def test_core_as_specified_adds_one_unit(reference: Reference) -> None:
    """The count is rounded up (1.9 #2): unit 235 joins; the converged rank moves no unit over the cut."""
    ranks = kernels.pagerank(*reference.graph(reference.core["edges"]))
    count = kernels.core_count(reference.n, reference.core["beta"])
    ours = kernels.select_ranked(ranks, count).tolist()
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
    graph = kernels.transpose(indptr, indices, len(names))
    units = np.split(graph.indices, graph.indptr[1:-1].astype(int))
    assert [u.tolist() for u in units] == [sorted(reference.keywords[name]) for name in names]


def printed(reference: Reference, candidates: list[int], budget: int) -> list[int]:
    style = {"style": "published", "oversize_policy": "drop"}
    result = kernels.render(candidates, reference.texts, reference.n_tokens, budget, **style)
    assert result.tokens <= budget
    return result.units.tolist()


@pytest.mark.parametrize("budget", [3000, 6000])
def test_text_channel(reference: Reference, budget: int) -> None:
    ranked, _ = kernels.top_k(reference.units, reference.queries, reference.n)
    for row, candidates in zip(reference.contexts, ranked, strict=True):
        assert printed(reference, candidates.tolist(), budget) == row[f"text_{budget}"]


def test_text_channel_of_the_oracle(reference: Reference) -> None:
    ranked, scores = kernels.top_k(reference.units, reference.queries[:3], reference.n)
    for ids, own, query in zip(ranked, scores, reference.queries, strict=False):
        assert list(zip(ids.tolist(), own.tolist(), strict=True)) == plain_vectors.top_k(
            reference.units, query, reference.n
        )


@pytest.fixture(scope="module")
def occurrences(reference: Reference, sentences: list[list[Any]]) -> dict[str, list[int]]:
    """For each keyword, in the published order, the sentence of each of its occurrences."""
    places: dict[str, list[int]] = {}
    flat = [sentence for found in sentences for sentence in found]
    for at, sentence in enumerate(flat):
        for word in sentence.keywords:
            places.setdefault(word, []).append(at)
    assert list(places) == list(reference.keywords)
    return places


@pytest.fixture(scope="module")
def means(reference: Reference, occurrences: dict[str, list[int]]) -> np.ndarray:
    """As published, a sentence counts as often as the word stands in it: one row for each occurrence."""
    flat = np.concatenate([np.array(at) for at in occurrences.values()])
    lengths = [len(at) for at in occurrences.values()]
    return kernels.keyword_means(
        (np.cumsum([0, *lengths]), np.arange(len(flat))), reference.sentence_vectors[flat]
    )


def test_keyword_means(reference: Reference, occurrences: dict[str, list[int]], means: np.ndarray) -> None:
    vectors = reference.sentence_vectors.astype(np.float64)
    expected = np.stack([vectors[at].sum(axis=0) / len(at) for at in occurrences.values()])
    np.testing.assert_allclose(means, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("budget", [3000, 6000])
def test_keyword_channel(reference: Reference, means: np.ndarray, budget: int) -> None:
    """The 1,000 best keywords by inner product, each keyword's units by similarity, to twice the budget.

    The published code tests the overflow before it tests whether a unit is in the pool already (1.9): its
    pools may end sooner, which moves no printed row here.
    """
    units = list(reference.keywords.values())
    rows = rows_of(units)
    for row, query in zip(reference.contexts, reference.queries, strict=True):
        arguments = (query, means.astype(np.float64), units, reference.units, reference.n_tokens, budget)
        pool = kernels.keyword_pool(
            means, rows, reference.units, reference.n_tokens, query, 2 * budget, most_seeds=1000
        )
        assert pool.units.tolist() == plain.keyword_pool(*arguments, most_keywords=1000)
        assert printed(reference, pool.units.tolist(), budget) == row[f"keyword_{budget}"]
        published = plain.keyword_pool(*arguments, most_keywords=1000, published=True)
        assert printed(reference, published, budget) == row[f"keyword_{budget}"]
