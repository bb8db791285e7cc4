"""CG-RAG from documents to contexts: what it reads, what it says of what leads nowhere, what it prints."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.errors import ConfigError, InputError
from ketrag_fast.systems.papers.cg_rag.candidates import ADJACENT, CITED, CITING, EPSILON_FITTED, REFERENCE
from ketrag_fast.systems.shared.rows import Arrays, lengths
from ketrag_fast.systems.shared.stored_rows import text_of
from tests.oracles import cg_rag
from tests.support.parts import part

TOPICS = (
    "The Fram was a ship that Colin Archer built for the ice.",
    "Colin Archer drew yachts and rescue boats in Larvik.",
    "Larvik is a town by the sea where whales were hunted.",
    "Whales feed on krill in cold water.",
    "Ice grows from the surface of the sea in winter.",
)


def documents() -> list[Document]:
    cites: list[object] = [["2", "9999"], ["3"], ["1", "3"], ["5"], []]
    return [
        Document(str(at), text, f"Note {at}", {"cites": own})
        for at, (text, own) in enumerate(zip(TOPICS, cites, strict=True), 1)
    ]


def built(path: Path, sources: list[Document] | Path, **settings: object) -> Index:
    return Index.build(sources, path, settings=Settings(**{"system": "cg-rag", **settings}))


def graph(index: Index) -> Arrays:
    return index.inspect.arrays()["citation_graph"]


def edges(index: Index, kind: int) -> set[tuple[int, int]]:
    """(receiver, sender) of that kind."""
    arrays = graph(index)
    receivers = np.repeat(np.arange(len(arrays["edges_indptr"]) - 1), lengths(arrays["edges_indptr"]))
    own = arrays["edge_kind"] & kind != 0
    return set(zip(receivers[own].tolist(), arrays["edges_indices"][own].tolist(), strict=True))


def test_citations_of_the_metadata_become_edges(tmp_path: Path) -> None:
    with built(tmp_path / "ix", documents()) as index:
        cited = {(0, 1), (1, 2), (2, 0), (2, 2 - 0), (3, 4)} - {(2, 2)}
        assert edges(index, CITED) == cited
        assert edges(index, CITING) == {(sender, receiver) for receiver, sender in cited}
        assert edges(index, ADJACENT) == edges(index, REFERENCE) == set()
        stats = index.stats()
        told = stats["systems"]["cg-rag"]
        assert told["citations"] == 4
        assert told["citations_of_itself"] == 1  # 3 cites 3
        assert told["unresolved"] == [{"document": "1", "citation": "9999"}]
        assert told["edges_by_kind"]["cited_to_citing"] == 4
        assert stats["edges"]["citation_graph"] == len(graph(index)["edges_indices"])
        assert index.retrieve("Who built the Fram?").mode == "cg-rag"
        assert index.retrieve("Who built the Fram?").warnings == ()


def test_documents_that_are_cut_at_their_headings(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    filler = "Nothing else is told of it in this place, and that is all there is to say. " * 12
    (folder / "a.md").write_text(f"# A\n\n{filler}\n\n## Ships\n\nThe Fram, see [b](b.md). {filler}\n")
    (folder / "b.md").write_text(f"# B\n\n{filler}\n\n## Ice\n\nDrifting ice of the north. {filler}\n")
    (folder / "c.md").write_text(f"# C\n\n[gone](nowhere.md) {filler}\n\n## More\n\n{filler}\n")
    given = Settings(modes="auto,cg-rag", mode="cg-rag")
    with Index.build([str(folder)], tmp_path / "ix", settings=given) as index:
        units = index.inspect.arrays()["units"]
        assert len(units["document_ids_offsets"]) - 1 == 6  # a row for each section
        stats = index.stats()["systems"]["cg-rag"]
        assert (stats["citations"], stats["unresolved_citations"]) == (1, 1)
        assert stats["unresolved"] == [{"document": "c.md", "citation": "nowhere.md"}]
        names = [text_of(units, "document_ids", row) for row in units["unit_document"].tolist()]
        tied = {(names[receiver], names[sender]) for receiver, sender in edges(index, CITED)}
        assert tied == {("a.md", "b.md")}
        assert index.retrieve("drifting ice").passages[0].document == "b.md"


@pytest.mark.parametrize(
    ("direction", "share", "epsilon"),
    [
        ("cited_to_citing", 0.5, 0.1),
        ("citing_to_cited", 0.75, 1.0),
        ("both", 0.5, 0.3),
        ("none", 0.0, 0.3),
    ],
)
def test_the_ranking_is_that_of_the_slow_form(
    direction: str, share: float, epsilon: float, tmp_path: Path
) -> None:
    wanted = {"cited_to_citing": CITED, "citing_to_cited": CITING, "both": CITED | CITING, "none": 0}
    question = "Which ship did Colin Archer build for the ice of the sea?"
    with built(tmp_path / "ix", documents()):
        pass
    settings = Settings(citation_direction=direction, lesegr_share=share, lesegr_epsilon=epsilon)
    with Index.open(tmp_path / "ix", settings=settings) as index:
        arrays = index.inspect.arrays()
        own, vectors = graph(index), arrays["vectors"]["unit_vectors"]
        rows = np.split(own["edges_indices"], own["edges_indptr"][1:-1].astype(np.int64))
        cuts = own["edges_indptr"][1:-1].astype(np.int64)
        kinds, alphas = np.split(own["edge_kind"], cuts), np.split(own["edge_alpha"], cuts)
        bm25 = {p.unit: p.score for p in index.retrieve(question, mode="bm25").passages}
        matches = [bm25.get(unit, 0.0) for unit in range(5)]  # every word once, as this question has them
        near = {p.unit: p.score for p in index.retrieve(question, mode="text").passages}
        assert len(near) == 5
        slow = cg_rag.messages(
            [row.tolist() for row in rows],
            [row.tolist() for row in kinds],
            [row.tolist() for row in alphas],
            cg_rag.weights(matches, epsilon),
            [near[unit] for unit in range(5)],
            layers=2,
            share=share,
            wanted=wanted[direction] | ADJACENT | REFERENCE,
        )
        found = {p.unit: p.score for p in index.retrieve(question, mode="cg-rag").passages}
        # The similarity comes from the vectors' codes of eight bits.
        assert np.allclose([found[unit] for unit in range(5)], slow, atol=5e-3)
        assert sorted(found.values(), reverse=True) == list(found.values())
        assert vectors.shape[0] == 5


def test_a_graph_without_an_edge_says_so_and_ranks_by_vectors_and_words(tmp_path: Path) -> None:
    plain = [Document(str(at), text) for at, text in enumerate(TOPICS)]
    with built(tmp_path / "ix", plain) as index:
        one, other = (index.retrieve("the sea", mode=mode) for mode in ("cg-rag", "text"))
        near = {p.unit: p.score for p in other.passages}
        bm25 = {p.unit: p.score for p in index.retrieve("the sea", mode="bm25").passages}
        weights = cg_rag.weights([bm25.get(unit, 0.0) for unit in range(5)], EPSILON_FITTED)
        wanted = {unit: near[unit] * weights[unit] for unit in near}
        assert {p.unit: p.score for p in one.passages} == pytest.approx(wanted, abs=5e-3)
        assert "no edge" in one.warnings[0]
        assert other.warnings == ()
        assert index.retrieve("xyzzy").reason == "no_match"


def test_bad_citations_do_no_harm(tmp_path: Path) -> None:
    """Cycles, itself, unknown and doubled ids, other letters, addresses of DOIs, and what is no list."""
    odd = [
        Document(
            "a", TOPICS[0], "", {"cites": ["b", "b", "B", "a", "nowhere", "nowhere"], "doi": "10.1000/A"}
        ),
        Document("b", TOPICS[1], "", {"cites": "https://doi.org/10.1000/a; DOI:10.1000/A. ; 10.9999/gone"}),
        Document("c", TOPICS[2], "", {"cites": {"b": 1}}),
        Document("d", TOPICS[3], "", {"cites": [["b"], None, "", 3.5]}),
        Document("e", TOPICS[4], "", {"doi": "doi:10.1000/a", "cites": ["c"]}),
    ]
    with built(tmp_path / "ix", odd) as index:
        arrays = index.inspect.arrays()["citations"]
        rows = np.split(arrays["cites_indices"], arrays["cites_indptr"][1:-1].astype(np.int64))
        # The first document of a DOI has the citations of the other, too.
        assert [row.tolist() for row in rows] == [[1, 2], [0], [], [], [2]]
        told = index.stats()["systems"]["cg-rag"]
        assert told["duplicate_documents"] == 1
        assert told["citations_of_itself"] == 1
        lost = {(entry["document"], entry["citation"]) for entry in told["unresolved"]}
        assert lost == {
            ("a", "nowhere"),
            ("b", "10.9999/gone"),
            ("c", "{'b': 1}"),
            ("d", "['b']"),
            ("d", "None"),
            ("d", "3.5"),
        }
        assert index.retrieve("whales", mode="cg-rag").passages


@pytest.mark.parametrize("count", [3_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_many_citations_of_one_document(count: int, tmp_path: Path) -> None:
    many = [Document("hub", TOPICS[0])]
    where = ("at sea", "in the ice")  # vectors are fitted to a sample, which need not have the hub
    many += [
        Document(str(at), f"Paper {at} about ships {where[at % 2]}.", "", {"cites": ["hub"]})
        for at in range(count)
    ]
    with built(tmp_path / "all", many) as index:
        assert len(edges(index, CITING)) == len(edges(index, CITED)) == count
        assert index.retrieve("the ship of the ice", mode="cg-rag").passages


def test_links_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = tmp_path / "notes"
    (notes / "sub").mkdir(parents=True)
    (notes / "one.md").write_text(
        "# One\nSee [two](sub/two.md#here), [[Three Notes]] and [out](../../etc/x.md)."
    )
    (notes / "sub" / "two.md").write_text("# Two\nBack to [one](../one.md); [gone](gone.md) and [[Nobody]].")
    (notes / "three-notes.md").write_text("# Third\nIt says `sub/two.md` and <a href='one.html'>one</a>.")
    with built(tmp_path / "ix", notes) as index:
        node = index.inspect.node("one.md", "document")
        assert list(node.to_json()["cites"]) == [
            {"document": "sub/two.md", "title": "Two", "sources": ("link",)},
            {"document": "three-notes.md", "title": "Third", "sources": ("link",)},
        ]
        assert [other["document"] for other in node.to_json()["cited_by"]] == ["sub/two.md", "three-notes.md"]
        assert node.to_json()["unresolved"] == ("../../etc/x.md (leads out of the source)",)
        told = index.stats()["systems"]["cg-rag"]["unresolved"]
        assert {entry["citation"] for entry in told} == {
            "../../etc/x.md (leads out of the source)",
            "gone.md",
            "[[Nobody]]",
        }
        with pytest.raises(InputError, match="no document 'two'"):
            index.inspect.node("two", "document")
    assert main(["graph", "sub/two.md", "--kind", "document", "-i", str(tmp_path / "ix")]) == 0
    shown = capsys.readouterr().out
    assert "sub/two.md Two (document): 1 unit, 2 edges" in shown
    assert "- one.md  One  (link)" in shown
    assert main(["graph", "sub/two.md", "--kind", "document", "-i", str(tmp_path / "ix"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "ketrag/cited-document/1"
    with built(tmp_path / "no", notes, text_links=False) as index:
        assert index.stats()["systems"]["cg-rag"]["citations"] == 0


def test_links_of_web_pages(tmp_path: Path) -> None:
    """A site with a circle of links, a page in a folder, a packed page and links that lead nowhere."""
    part("resiliparse", "documents")
    site = tmp_path / "site"
    (site / "sub dir").mkdir(parents=True)

    def page(title: str, body: str) -> str:
        words = f"<p>{'The text of this page is long enough to be its main part. ' * 6}</p>"
        around = '<div class="navheader"><a href="contents.html">Contents</a></div>'
        return f"<html><head><title>{title}</title></head><body>{around}<h1>{title}</h1>{words}{body}</body>"

    links = {
        "a.html": '<a href="b.html#part">b</a> <a href="a.html#top">itself</a> <a href="#top">top</a>',
        "b.html": '<a href="sub%20dir/">the folder</a> <a href="gone.html">gone</a> <a href="x.png">x</a>',
        "contents.html": '<ul><li><a href="a.html">a</a></li><li><a href="b.html?q=1">b</a></li></ul>',
        "sub dir/index.html": '<a href="../a.html">a</a><a href="/b.html">b</a><a href="../../out.html">x',
        "packed.html.gz": '<a href="a.html">a</a><pre>[[:space:]] [[1, 2]] [^b](a.html)</pre>',
    }
    for name, body in links.items():
        data = page(name, body).encode()
        (site / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with built(tmp_path / "ix", site) as index:
        cites = {
            name: [one["document"] for one in index.inspect.node(name, "document").to_json()["cites"]]
            for name in links
        }
        assert cites == {
            "a.html": ["b.html"],
            "b.html": ["sub dir/index.html"],
            "contents.html": ["a.html", "b.html"],
            "sub dir/index.html": ["a.html", "b.html"],
            "packed.html.gz": ["a.html"],
        }
        told = index.stats()["systems"]["cg-rag"]
        assert {(entry["document"], entry["citation"]) for entry in told["unresolved"]} == {
            ("b.html", "gone.html"),
            ("sub dir/index.html", "../../out.html (leads out of the source)"),
        }
        assert index.retrieve("the main part", mode="cg-rag").passages
    with built(tmp_path / "no", site, text_links=False) as index:
        assert index.stats()["systems"]["cg-rag"]["citations"] == 0


def test_references_between_the_texts_of_a_document(tmp_path: Path) -> None:
    fill = " ".join(f"word{n}" for n in range(60))
    text = f"# 1 Start\n{fill} see Section 3.\n\n# 2 Middle\n{fill}\n\n# 3 End\n{fill} as Table 7 says, not 1"
    with built(tmp_path / "ix", [Document("a", text)], chunk_tokens=80) as index:
        starts = index.inspect.arrays()["units"]["unit_span"][:, 0].tolist()
        assert len(starts) > 3
        unit = [
            max(at for at, start in enumerate(starts) if start <= text.index(mark))
            for mark in ("# 3", "see Sec")
        ]
        assert (unit[1], unit[0]) in edges(index, REFERENCE)
        assert edges(index, ADJACENT) == {(at + 1, at) for at in range(len(starts) - 1)}
        told = index.stats()["systems"]["cg-rag"]
        assert told["references_without_a_label"] == 1
        reasons = [
            entry
            for passage in index.retrieve("Middle", mode="cg-rag", explain=True).passages
            for entry in passage.why
            if "partner" in entry
        ]
        assert any(
            "follows it" in entry["sentence"] or "refers to it" in entry["sentence"] for entry in reasons
        )


def test_a_bibliography_leads_to_documents(tmp_path: Path) -> None:
    part("bibtexparser", "checks")
    bib = tmp_path / "refs.bib"
    bib.write_text("@misc{fram, doi = {10.1000/a}}\n@misc{lost, title = {Nowhere}}")
    papers = [
        Document("a", TOPICS[0], "", {"doi": "10.1000/A"}),
        Document("b.md", "As @fram has it, and [@lost].", ""),
        Document("c", "x", "", {"cites": ["fram"]}),
    ]
    with built(tmp_path / "ix", papers, bibliography=str(bib)) as index:
        assert edges(index, CITED) == {(1, 0), (2, 0)}
        assert [entry["citation"] for entry in index.stats()["systems"]["cg-rag"]["unresolved"]] == ["@lost"]
        first = index.digest
    bib.write_text("@misc{other, doi = {10.1000/a}}")  # another bibliography is another graph
    with Index.build([], tmp_path / "ix") as index:
        assert edges(index, CITED) == set()
        assert index.digest != first
    with pytest.raises(ConfigError, match="bibliography"):
        built(tmp_path / "no", papers, bibliography=str(tmp_path / "none.bib"))


def test_what_was_built_once_is_not_built_again(tmp_path: Path) -> None:
    with built(tmp_path / "ix", documents()) as index:
        first = index.digest
    with built(tmp_path / "ix", documents()) as index:
        assert index.report is not None
        assert not index.report.changed
    for threads in (1, 3):
        with built(tmp_path / f"other{threads}", documents(), threads=threads) as index:
            assert index.digest == first
    more = documents()
    more[3] = Document("4", TOPICS[3], "Note 4", {"cites": ["1"]})
    with built(tmp_path / "ix", more) as index:
        assert index.digest != first
        assert (3, 0) in edges(index, CITED)


def test_a_question_without_an_index_of_citations(tmp_path: Path) -> None:
    from ketrag_fast.errors import ModeUnavailable

    with Index.build(documents(), tmp_path / "ix", settings=Settings(modes="bm25")) as index:
        with pytest.raises(ModeUnavailable) as caught:
            index.retrieve("whales", mode="cg-rag")
        assert "--modes bm25,cg-rag" in (caught.value.hint or "")


def test_an_empty_index_and_one_text(tmp_path: Path) -> None:
    with built(tmp_path / "none", []) as index:
        assert index.retrieve("whales", mode="cg-rag").reason == "empty_index"
        assert index.stats()["systems"]["cg-rag"]["citations"] == 0
    with built(tmp_path / "one", [Document("a", TOPICS[0], "", {"cites": ["a", "b"]})]) as index:
        assert [p.document for p in index.retrieve("Who built the Fram?", mode="cg-rag").passages] == ["a"]
