"""`ketrag index --system ket-rag:reference`, end to end, against what the published KET-RAG functions return.

Item by item (musique-train100/ketrag-reference): every list is equal, in order and to the last unit, and
nothing is compared by averages. The vectors are the reference's own, brought by text, so that no difference
comes from a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support import all_kernels as kernels
from tests.support.vector_files import write_vectors

from ketrag_fast import Index, Settings
from ketrag_fast.building.runner import build
from ketrag_fast.errors import BackendMissing
from ketrag_fast.kernels.text import unpack
from ketrag_fast.systems.papers.ket_rag.reference_words import PUNKT, STOP_WORDS, digest
from ketrag_fast.systems.planning import stages_for

Arrays = Any
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "nltk.json").read_text(encoding="ascii"))


def lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


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


@pytest.fixture(scope="module")
def reference(passages: Path) -> Reference:
    return Reference(passages / "ketrag-reference")


def nltk_folder(folder: Path, stop_words: list[str]) -> Path:
    """NLTK's layout, with the entries of Punkt's parameters that these texts look up."""
    punkt = folder / PUNKT
    punkt.mkdir(parents=True)
    (folder / STOP_WORDS).parent.mkdir(parents=True)
    (folder / STOP_WORDS).write_text("\n".join(stop_words), "utf-8")
    (punkt / "abbrev_types.txt").write_text("\n".join(GOLDEN["abbreviations"]), "utf-8")
    pairs = "\n".join("\t".join(pair) for pair in GOLDEN["collocations"])
    (punkt / "collocations.tab").write_text(pairs, "utf-8")
    (punkt / "sent_starters.txt").write_text("\n".join(GOLDEN["starters"]), "utf-8")
    contexts = "\n".join(f"{word}\t{bits}" for word, bits in GOLDEN["contexts"].items())
    (punkt / "ortho_context.tab").write_text(contexts, "utf-8")
    return folder


@pytest.fixture(scope="module")
def index(passages: Path, reference: Reference, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("reference")
    # Passages of one text have one vector; the reference embedded each by itself, and differs by rounding.
    rows = {
        **dict(zip((s["sentence"] for s in reference.sentences), reference.sentence_vectors, strict=True)),
        **dict(zip(reference.texts, reference.units, strict=True)),
        **{row["text"]: query for row, query in zip(reference.contexts, reference.queries, strict=True)},
    }
    write_vectors(folder / "vectors", list(rows), np.stack(list(rows.values())))
    settings = Settings(
        system="ket-rag:reference",
        modes="text,keyword",
        overlap=0,  # as the reference was made
        embedder=f"vectors:{folder / 'vectors'}",
    )
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("NLTK_DATA", str(nltk_folder(folder / "nltk", reference.stop_words)))
    # The reference has no title; a text file would have its name as title.
    text = (passages / "ketrag-reference" / "document.txt").read_text("utf-8")
    source = folder / "documents.jsonl"
    source.write_text(json.dumps({"text": text}), "utf-8")
    build(folder / "index", source, partial(stages_for, extra=("core",)), settings)  # nothing reads the core
    with Index.open(folder / "index") as built:
        yield built


def stage(index: Index, name: str) -> Arrays:
    return index._opened.generation.stages[name]


def rows(arrays: Arrays, name: str) -> list[list[int]]:
    indptr, indices = arrays[f"{name}_indptr"].tolist(), arrays[f"{name}_indices"].tolist()
    return [indices[a:b] for a, b in pairwise(indptr)]


def texts(arrays: Arrays, name: str) -> list[str]:
    return unpack(arrays[f"{name}_blob"], arrays[f"{name}_offsets"])


def test_units(index: Index, reference: Reference) -> None:
    units = stage(index, "units")
    assert texts(units, "unit_texts") == reference.texts
    assert units["unit_tokens"].tolist() == reference.n_tokens


def test_words_of_the_cooccurrence(index: Index, reference: Reference) -> None:
    found = rows(stage(index, "reference_words"), "cooc")
    assert [len(row) for row in found] == [row["words"] for row in reference.neighbours]


def test_neighbours_and_graph(index: Index, reference: Reference) -> None:
    knn = stage(index, "knn")
    lexical = np.stack([knn["lexical"], knn["lexical_counts"]], axis=2).tolist()
    assert lexical == [row["lexical"][:1] for row in reference.neighbours]
    assert knn["semantic"].tolist() == [row["semantic"][:1] for row in reference.neighbours]
    wanted: list[set[int]] = [set() for _ in range(reference.n)]
    for a, b in reference.core["edges"]:
        wanted[a].add(b)
        wanted[b].add(a)
    assert rows(knn, "unit_graph") == [sorted(row) for row in wanted]


def test_pagerank_and_core(index: Index, reference: Reference) -> None:
    core = stage(index, "core")
    published = [row["as_published"] for row in reference.ranks]
    np.testing.assert_allclose(core["pagerank"], published, rtol=1e-12)
    assert core["core_units"].tolist() == reference.core["core_as_published"]
    owner = stage(index, "units")["unit_chunk"].tolist()
    first = list(dict.fromkeys(owner[unit] for unit in reference.core["core_as_published"]))
    assert core["core"].tolist() == first


def test_core_as_specified_adds_one_unit(index: Index, reference: Reference) -> None:
    """The count is rounded up (1.9 #2): unit 235 joins; the converged rank moves no unit over the cut."""
    knn = stage(index, "knn")
    ranks = kernels.pagerank(knn["unit_graph_indptr"], knn["unit_graph_indices"])
    published = reference.core["core_as_published"]
    ours = kernels.select_ranked(ranks, kernels.core_count(reference.n, reference.core["beta"])).tolist()
    assert set(ours) - set(published) == {235}
    assert len(ours) == len(published) + 1


def test_sentences_as_embedded(index: Index, reference: Reference) -> None:
    assert texts(stage(index, "reference_words"), "keyword_texts") == [
        s["sentence"] for s in reference.sentences
    ]


def test_keywords_and_their_units(index: Index, reference: Reference) -> None:
    words = stage(index, "reference_words")
    names, units = texts(words, "keyword_vocabulary"), rows(words, "keyword_units")
    assert dict(zip(names, units, strict=True)) == {
        word: sorted(units) for word, units in reference.keywords.items()
    }
    assert names == sorted(names, key=str.encode)


def test_keyword_means_count_every_occurrence(index: Index, reference: Reference) -> None:
    words, means = stage(index, "reference_words"), stage(index, "keywords")["vectors"]
    counts = words["keyword_counts"]
    indptr = words["keyword_sentences_indptr"].astype(int)
    indices = words["keyword_sentences_indices"]
    assert counts.max() > 1
    vectors = stage(index, "reference_sentences")["keyword_text_vectors"].astype(np.float64)
    for word in range(0, len(means), 97):
        own = slice(indptr[word], indptr[word + 1])
        expected = np.average(vectors[indices[own]], axis=0, weights=counts[own])
        np.testing.assert_allclose(means[word], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("mode", ["text", "keyword"])
def test_contexts(index: Index, reference: Reference, mode: str) -> None:
    questions = [row["text"] for row in reference.contexts]
    found = index.retrieve_many(questions, mode=mode, budgets=[3000, 6000], literal=True)
    for row, (small, large) in zip(reference.contexts, found, strict=True):
        for context in (small, large):
            wanted = row[f"{mode}_{context.budget}"]
            assert [passage.unit for passage in context.passages] == wanted
            lines = "".join(f"chunk_{at}|{reference.texts[u]}\n" for at, u in enumerate(wanted, 1))
            head = "\n\n-----Text source that may be relevant-----\nid|text\n"
            assert context.text == head + lines
            assert context.tokens <= context.budget


def test_a_run_can_name_its_model(index: Index) -> None:
    model = index.stats()["models"]["embedder"]
    assert model["spec"].startswith("vectors:")
    assert len(model["fingerprint"]) >= 32


def test_modes_that_need_other_parts_say_which(index: Index) -> None:
    missing = index._opened.missing
    assert missing["text"] is None
    assert missing["keyword"] is None
    assert missing["knn"] == "the KNN graph (stage knn)"


def test_the_same_with_the_built_in_vectors(
    passages: Path, reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No model: another ranking, and the same words."""
    monkeypatch.setenv("NLTK_DATA", str(nltk_folder(tmp_path / "nltk", reference.stop_words)))
    lines = [
        json.dumps({"_id": str(n), "title": f"T {n % 3}", "text": t})
        for n, t in enumerate(reference.texts[:30])
    ]
    (tmp_path / "some.jsonl").write_text("\n".join(lines), "utf-8")
    settings = Settings(system="ket-rag:reference")
    with Index.build(tmp_path / "some.jsonl", tmp_path / "index", settings=settings) as index:
        assert "keyword" in index.modes
        words = stage(index, "reference_words")
        assert "The" in texts(words, "keyword_vocabulary")
        assert len(stage(index, "keywords")["vectors"]) == len(texts(words, "keyword_vocabulary"))
        context = index.retrieve("Which district is in Bashkortostan?", mode="keyword", budget=400)
        assert context.text.startswith("\n\n-----Text source")
        assert 0 < context.tokens <= 400
        assert index.retrieve("Which district?", mode="walk", budget=400).passages


def test_without_nltks_data_it_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("Ice is water.")
    monkeypatch.setenv("NLTK_DATA", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    with pytest.raises(BackendMissing, match="in none of its usual folders") as caught:
        Index.build(tmp_path / "a.txt", tmp_path / "index", settings=Settings(system="ket-rag:reference"))
    assert "nltk.downloader" in (caught.value.hint or "")
    folder = nltk_folder(tmp_path / "nltk_data", ["the"])  # under HOME: one of the usual places
    with Index.build(
        tmp_path / "a.txt", tmp_path / "index", settings=Settings(system="ket-rag:reference")
    ) as index:
        assert index.modes
    before = digest()
    (folder / STOP_WORDS).write_text("is")
    assert digest() != before
    with Index.build(
        tmp_path / "a.txt", tmp_path / "index", settings=Settings(system="ket-rag:reference")
    ) as index:
        assert index.report is not None
        assert index.report.changed  # other data in the same folder are other words
        assert "is" not in texts(stage(index, "reference_words"), "keyword_vocabulary")
    with Index.build(
        tmp_path / "a.txt", tmp_path / "index", settings=Settings(system="ket-rag:reference")
    ) as index:
        assert index.report is not None
        assert not index.report.changed
