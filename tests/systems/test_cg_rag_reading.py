"""Citations as CG-RAG reads them: names of documents, links in texts, references inside, bibliographies."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import pytest

from ketrag_fast.errors import BackendMissing, ConfigError, DocumentError
from ketrag_fast.systems.papers.cg_rag.citations import digest, entries, fill
from ketrag_fast.systems.papers.cg_rag.crossrefs import references, rst_labels, slug, starts_of
from ketrag_fast.systems.papers.cg_rag.resolution import Library, cited_documents, outer_key
from ketrag_fast.systems.papers.cg_rag.textlinks import Link, given_links, links, paths, without_code
from tests.support.parts import part

Form = Literal["NFC", "NFD"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("10.1145/1327452.1327492", "doi:10.1145/1327452.1327492"),
        ("https://doi.org/10.1145/ABC", "doi:10.1145/abc"),
        ("http://dx.doi.org/10.1145/abc/", "doi:10.1145/abc"),
        (" DOI: 10.1145/abc. ", "doi:10.1145/abc"),
        ("doi.org/10.1000%2Fx", None),
        ("https://doi.org/10.1002/(SICI)1097-4571", "doi:10.1002/(sici)1097-4571"),
        ("https://doi.org/10.48550/arXiv.2005.11401", "arxiv:2005.11401"),
        ("arXiv:2005.11401v4", "arxiv:2005.11401"),
        ("https://arxiv.org/abs/2005.11401", "arxiv:2005.11401"),
        ("arxiv.org/pdf/2005.11401v2.pdf", "arxiv:2005.11401"),
        ("2005.11401", "arxiv:2005.11401"),
        ("arXiv:hep-th/9901001v3", "arxiv:hep-th/9901001"),
        ("PMID: 12345", "pubmed:12345"),
        ("https://pubmed.ncbi.nlm.nih.gov/12345/", "pubmed:12345"),
        ("PMC1234", "pmc:pmc1234"),
        ("12345", None),
        ("a note", None),
        ("", None),
        ("10.1/" + "x" * 5000, None),
    ],
)
def test_outer_keys(text: str, key: str | None) -> None:
    assert outer_key(text) == key


def library() -> Library:
    ids = ["a", "B", "guide/Start.md", "https://doi.org/10.1/One", "5", "twin"]
    titles = ["First note", "", "Getting started", "One", "", ""]
    about: list[dict[str, object]] = [
        {"doi": "10.1000/A"},
        {"arxiv_id": "2005.11401v1"},
        {"key": "start2020"},
        {},
        {"pmid": 77},
        {"DOI": "https://doi.org/10.1000/a"},
    ]
    return Library(ids, titles, about)


def test_documents_under_all_their_names() -> None:
    known = library()
    same = {
        "a": 0,
        "A": 0,
        "b": 1,
        "doi:10.1000/a": 0,
        "https://arxiv.org/abs/2005.11401v9": 1,
        "start2020": 2,
        "GUIDE/start.md": 2,
        "10.1/one": None,
        "5": 4,
        "PMID 77": 4,
        "77": None,
        "c": None,
    }
    assert {name: known.find(name) for name in same} == same
    assert known.find_title("getting  STARTED!") == 2
    assert known.find_name("Start") == 2
    assert known.same == {5: 0}  # the first has the DOI


@pytest.mark.parametrize("forms", [("NFC", "NFD"), ("NFD", "NFC")])
def test_letters_are_the_same_composed_or_not(
    forms: tuple[Literal["NFC", "NFD"], Literal["NFC", "NFD"]],
) -> None:
    name = "Über Ångström"
    stored, cited = (normalize(form, name) for form in forms)
    known = Library((f"{stored}.md",), (stored,), ({},))
    assert stored != cited
    assert known.find(f"{cited}.md") == known.find_path(f"{cited}.md") == 0
    assert known.find_title(cited) == known.find_name(cited.upper()) == 0


def test_the_field_cites_in_all_its_forms() -> None:
    known = library()

    def read(cites: object) -> list[tuple[str, int | None]]:
        return list(cited_documents({"cites": cites}, known))

    assert read(["a", 5, "gone", None, 1.5, True, {"id": "a"}]) == [
        ("a", 0),
        ("5", 4),
        ("gone", None),
        ("None", None),
        ("1.5", None),
        ("True", None),
        ("{'id': 'a'}", None),
    ]
    assert read("a; b;gone one") == [("a", 0), ("b", 1), ("gone", None), ("one", None)]
    assert read("a, b | doi:10.1000/A") == [("a", 0), ("b", 1), ("doi:10.1000/A", 0)]
    assert read(5) == [("5", 4)]
    assert read(None) == read("") == read([]) == read(" ") == list(cited_documents({}, known)) == []


def found(name: str, text: str, *, keys: bool = False) -> list[tuple[str, str, str]]:
    return [(link.kind, link.target, link.fragment) for link in links(name, text, keys=keys)]


def test_links_of_markdown_and_wikis() -> None:
    text = (
        "See [one](other.md#part), [two]( <a b.md> 'title'), ![pic](x.png), [web](https://example.org/x),\n"
        "[[Note]] and [[Other note#Head|said so]], [r][ref].\n\n[ref]: sub/third.md\n[^1]: no link\n"
        '<a class="x" href="fourth.html">4</a> [mail](mailto:a@b.c) [paren](p_(q).md)\n'
        "```\n[code](code.md) [[code]]\n```\n`[[code]]` and ``[code](code.md)``,\n"
        "in `docs/modes.md` it is said\n"
    )
    got = found("x.md", text)
    assert ("path", "other.md", "part") in got
    assert ("path", "a b.md", "") in got
    assert ("path", "sub/third.md", "") in got
    assert ("path", "fourth.html", "") in got
    assert ("path", "p_(q).md", "") in got
    assert ("wiki", "Note", "") in got
    assert ("wiki", "Other note", "Head") in got
    assert ("outer", "https://example.org/x", "") in got
    assert ("mention", "docs/modes.md", "") in got
    assert not [link for link in got if "code" in link[1] or "no link" in link[1] or "mail" in link[1]]


@pytest.mark.parametrize("name", ["a.c", "a.sh", "a.html", "a.pdf", "a.rst"])
def test_brackets_in_code_and_converted_texts_are_no_links(name: str) -> None:
    text = "x[[1, 2]] = [[note]] m[i](j) [r]: other\nif [[ -f x ]]; then sed 's/[[:space:]]//'; fi"
    assert found(name, text) == []


def test_brackets_that_are_no_links_of_a_wiki() -> None:
    text = "[[:space:]] [[1, 2]] [[ -f x ]] [[$a == b]] [^b](c) [[Real note]] [[2024]] [a](b.md)\n[^1]: x\n"
    expected = [("path", "b.md", ""), ("wiki", "Real note", ""), ("wiki", "2024", "")]
    assert [link for link in found("a.md", text) if link[0] != "mention"] == expected
    assert found("notes", text) == found("a.md", text)


def test_indented_code_of_markdown() -> None:
    text = (
        "# Head\n\n    [code](a.md)\n\n\t[[Code]]\n    more [code](b.md)\n\ntext\n    [lazy](lazy.md)\n\n"
        "- item\n\n    [item](item.md)\n\n1. one\n    - two\n\n        [deep](deep.md)\n\n"
        "end\n\n    [x](y.md)\n"
    )
    paths_found = [target for kind, target, _ in found("a.md", text) if kind == "path"]
    assert paths_found == ["lazy.md", "item.md", "deep.md"]
    assert len(without_code(text, indented=True)) == len(text)


def test_links_in_the_metadata_of_a_page() -> None:
    targets = ["b.html", "sub/a%20b.html#x", "../c/?q=1", "mailto:a@b.c", "https://x.org/", 5, None, ""]
    got = [(link.kind, link.target, link.fragment) for link in given_links(targets)]
    assert got == [
        ("path", "b.html", ""),
        ("path", "sub/a b.html", "x"),
        ("path", "../c/", ""),
        ("outer", "https://x.org/", ""),
        ("path", "", ""),
    ]
    assert list(given_links("b.html")) == list(given_links(None)) == []
    assert "docs/index.html" in (paths("docs/sub/a.html", "../") or [])
    assert "b.html.gz" in (paths("a.html.gz", "b.html") or [])


def test_links_of_restructuredtext_and_keys_of_a_bibliography() -> None:
    text = (
        ".. _Start here:\n\nTitle\n=====\n"
        "See :doc:`the guide <guide/start>`, :ref:`label` and `x <y.rst>`_.\n"
        ".. _outside: https://doi.org/10.1/abc\n"
    )
    got = found("x.rst", text)
    assert ("doc", "guide/start", "") in got
    assert ("ref", "label", "") in got
    assert ("path", "y.rst", "") in got
    assert ("outer", "https://doi.org/10.1/abc", "") in got
    assert list(rst_labels(text)) == ["start here"]
    cites = r"\citep[see][p.~3]{a1,b2} and \cite{c} [@d2020; -@{e:f}] mail@example.org"
    assert [link[1] for link in found("x.tex", cites, keys=True)] == ["a1", "b2", "c", "d2020", "e:f"]
    assert found("x.tex", cites) == []
    arxiv = "as in arXiv:2005.11401v2, doi:10.1145/x.y. and PMID: 99"
    assert {link[1] for link in found("x.txt", arxiv)} == {
        "arXiv:2005.11401v2",
        "doi:10.1145/x.y",
        "PMID: 99",
    }


def test_paths_stay_inside_the_source() -> None:
    assert paths("a/b.md", "../c.md") == ["c.md"]
    assert paths("a/b.md", "../../c.md") is None
    assert paths("b.md", "..") is None
    assert (paths("a/b.md", "/c/d") or [])[:2] == ["c/d", "c/d.md"]
    assert "x/index.md" in (paths("b.md", "x/") or [])
    assert (paths("b.md", "c.html") or [])[:2] == ["c.html", "c.md"]


def test_hostile_texts_take_no_longer() -> None:
    began = time.process_time()
    size = 200_000
    for text in (
        "[" * size,
        "](" * size,
        "[[" * size,
        "<a " * size,
        "`" * size,
        "a/" * size,
        "../" * size,
        "\\cite{" * size,
        "@" * size,
        "\n" * size,
        "# " * size,
        "Section " * size,
        "1.1" * size,
        "\\ref{" * size,
        "a" * size + ".md",
        "x\n===\n" * (size // 6),
    ):
        assert isinstance(list(links("x.rst", text, keys=True)), list)
        references(text, [0, 10], [])
    assert time.process_time() - began < 20  # seconds; squares of these sizes would take hours


def test_code_keeps_its_length() -> None:
    text = "a\n```py\n[x](y.md)\n```\nb ~~~ c\n~~~\nunclosed"
    plain = without_code(text)
    assert len(plain) == len(text)
    assert plain.index("b ~~~ c") == text.index("b ~~~ c")
    assert "[x]" not in plain
    assert "unclosed" not in plain


def test_references_inside_a_document() -> None:
    text = (
        "# 1 Start\nSee Section 2.1 and Figure 3, \\ref{eq:one}; Table 9 is nowhere.\n"  # unit 0
        "## 2.1 Method\nFigure 3: a picture. \\label{eq:one} \\label{eq:one}\n"  # unit 1
        "## End\nAs Sec. 1 says, Fig. 3 and [there](#start).\n"  # unit 2
    )
    starts = [0, text.index("## 2.1"), text.index("## End")]
    got = references(text, starts, [("1-start", text.index("[there]")), ("nothing", 0)])
    assert got.pairs == {(0, 1), (2, 0), (2, 1)}
    assert got.unresolved == ["#nothing", "Table 9"]
    assert got.repeated == 1
    assert slug("The `Code` & *Marks*") == "the-code--marks"
    assert starts_of([[0, 10], [8, 20], [20, 30]]) == [0, 10, 20]
    assert starts_of([]) == []


def test_bibliographies(tmp_path: Path) -> None:
    part("bibtexparser", "checks")
    bib = tmp_path / "refs.bib"
    bib.write_text(
        "@article{one, title = {Not it}, doi = {https://doi.org/10.1000/A}}\n"
        "@misc{two, eprint = {2005.11401}, archivePrefix = {arXiv}}\n"
        "@book{three, title = {{Getting} Started}}\n@book{broken, title = {x\n"
        "@article{one, doi = {10.1/other}}\n@misc{gone, title = {Elsewhere}}\n",
        "utf-8",
    )
    csl = tmp_path / "refs.json"
    csl.write_text(json.dumps([{"id": "four", "PMID": "77"}, {"no": "id"}, 3, {"id": 5, "title": "x"}]))
    known = library()
    listed = entries(f"{bib}, {csl}")
    assert [entry.key for entry in listed] == ["one", "two", "three", "gone", "four", "5"]
    fill(known, listed)
    assert {key: known.find(key) for key in ("one", "two", "three", "four", "gone")} == {
        "one": 0,
        "two": 1,
        "three": 2,
        "four": 4,
        "gone": None,
    }
    assert known.find("5") == 4  # its own id comes first
    before = digest(str(bib))
    bib.write_text("@misc{x, doi = {10.1000/A}}")
    assert digest(str(bib)) != before
    assert digest(None) == digest(None)
    for broken in ("@@@{{{ = }", "@misc", "@misc{a", "no entry", "@misc{, title = {x}}", "{" * 1000):
        bib.write_text(broken)
        assert all(entry.title != "x" or not entry.key for entry in entries(str(bib)))
    bib.write_bytes(b"\xff\xfe\x00@@@{{{")
    with pytest.raises(DocumentError, match=r"refs\.bib: byte order mark of"):
        entries(str(bib))


def test_bibliographies_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        entries(str(tmp_path / "refs.bib"))
    (tmp_path / "refs.txt").write_text("x")
    with pytest.raises(ConfigError, match="neither BibTeX nor CSL-JSON"):
        entries(str(tmp_path / "refs.txt"))
    (tmp_path / "refs.json").write_text("{")
    with pytest.raises(DocumentError, match="invalid CSL-JSON"):
        entries(str(tmp_path / "refs.json"))
    (tmp_path / "refs.json").write_text("3")
    with pytest.raises(DocumentError, match="not a list"):
        entries(str(tmp_path / "refs.json"))
    (tmp_path / "refs.bib").write_text("@misc{x, title = {y}}")
    monkeypatch.setitem(sys.modules, "bibtexparser.entrypoint", None)
    with pytest.raises(BackendMissing) as caught:
        entries(str(tmp_path / "refs.bib"))
    assert "pip install 'bibtexparser>=2'" in (caught.value.hint or "")


def test_a_link_says_where_it_stands() -> None:
    assert list(links("x.md", "ab [c](d.md)")) == [Link("path", "d.md", "", 5)]
