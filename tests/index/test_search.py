"""Search, exact search and excerpts: where things are, what may be seen, and what is wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Query, Settings
from ketrag_fast.errors import InputError, UnknownName
from tests.support.office_files import docx, mail, paragraph, pptx, shape, text_row, xlsx
from tests.support.pdf_files import simple

WORDS = "penguin Fram fsync captain walrus orca petrels albatross keel lamp parcel kraken"
GUIDE = (
    "---\ntitle: Guide\nyear: 1990\n---\n\n# Guide\n\nIntro about ships.\n\n## Ships\n\n"
    + "\n\n".join(f"Paragraph {n} tells of the penguin with the number {n}." for n in range(60))
    + "\n\n## Ice\n\nThe Maud lay in the ice of the harbour.\n\n"
    + "She was frozen in for two long years, and her men measured wind, tides and the drift of the pack.\n"
)
CODE = '"""Files."""\n\nimport os\n\n\ndef sync(path):\n    """Write to the disk."""\n    os.fsync(path)\n'


def write_files(folder: Path) -> Path:
    folder.mkdir()
    (folder / "guide.md").write_text(GUIDE)
    (folder / "drift.txt").write_bytes(b"\n\n  The Fram drifted.\r\nNansen was aboard.\r\n")
    (folder / "sync.py").write_text(CODE)
    (folder / "crew.csv").write_text("name,role\nSverdrup,captain\nJohansen,stoker\n")
    (folder / "log.jsonl").write_text('{"text": "A walrus was seen"}\n{"text": "A narwhal was heard"}\n')
    (folder / "talk.srt").write_text(
        "1\n00:00:01,000 --> 00:00:03,000\nHello.\n\n2\n00:12:30,000 --> 00:12:33,000\nSeals bark.\n"
    )
    (folder / "note.rst").write_text("Title\n=====\n\nText of orca.\n\nSub\n---\n\nMore of beluga.\n")
    (folder / "birds.pdf").write_bytes(simple("The first page about petrels.", "Second page on skua."))
    (folder / "plan.docx").write_bytes(docx(paragraph("Albatross", "Heading1") + paragraph("They fly far.")))
    (folder / "ice.pptx").write_bytes(pptx([shape(["Ice"], "title") + shape(["The keel was strong."])]))
    rows = [text_row(1, "item", "count"), text_row(2, "lamp", "twelve"), text_row(3, "rope", "nine")]
    (folder / "stock.xlsx").write_bytes(xlsx({"Stock": rows}))
    (folder / "letter.eml").write_bytes(mail("Dear Sir,\n\nthe parcel arrived.\n\nYours"))
    (folder / "sub").mkdir()
    (folder / "sub" / "deep.md").write_text("# Deep\n\nA kraken sleeps.\n")
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("search") / "files")


@pytest.fixture(scope="module")
def index(files: Path) -> Iterator[Index]:
    with Index.build(files, files.parent / "index", settings=Settings(chunk_tokens=80)) as built:
        yield built


def test_hits_name_the_file_the_lines_and_the_headings(index: Index, files: Path) -> None:
    hit = index.search("Where lay the Maud?")[0]
    assert (hit.rank, hit.document, hit.path) == (1, "guide.md", str(files / "guide.md"))
    assert (hit.source, hit.headings, hit.state) == (str(files), ("Guide", "Ice"), None)
    lines = GUIDE.split("\n")
    assert hit.lines is not None and lines[hit.lines[0] - 1] == hit.text.split("\n")[0]
    shown = hit.snippet[0]
    assert shown.number is not None and lines[shown.number - 1] == shown.text
    assert [shown.text[a:b] for a, b in shown.marks] == ["Maud", "lay"]


@pytest.mark.parametrize(
    ("query", "document", "position"),
    [
        ("captain Sverdrup", "crew.csv#2", ""),
        ("narwhal", "log.jsonl:2", "2"),
        ("seals bark", "talk.srt", "00:12:30"),
        ("keel", "ice.pptx", "p1"),
        ("lamp twelve", "stock.xlsx/Stock#2", "Stock!A2"),
        ("kraken", "sub/deep.md", "3"),
        ("petrels", "birds.pdf", "p1"),
    ],
)
def test_positions_of_all_formats_lead_back_to_the_text(
    index: Index, files: Path, query: str, document: str, position: str
) -> None:
    hit = index.search(query, limit=1)[0]
    assert (hit.document, hit.position) == (document, position)
    place = f"{hit.path}{hit.part}" + (f":{position}" if position else "")
    assert query.split()[0].casefold() in index.text(place).text.casefold()


def test_lines_are_those_of_the_file(index: Index, files: Path) -> None:
    checked = 0
    for match in index.grep("."):
        if match.lines is None or match.document.startswith("log.jsonl"):
            continue
        text = (files / match.document).read_bytes().decode().replace("\r", "")
        assert text.split("\n")[match.lines[0] - 1] == match.line.text
        checked += 1
    assert checked > 70
    for listed in index.inspect.documents():
        for unit in range(listed.unit, listed.unit + listed.units):
            span = index.inspect.around(unit, 0, 0)[0][1]
            lines = index.inspect.location(unit, span.start, span.end).get("lines")
            if lines is not None:
                text = (files / listed.document).read_bytes().decode().replace("\r", "")
                assert text.split("\n")[lines[0] - 1].strip() == span.text.split("\n")[0].strip()


def test_excerpts(index: Index, files: Path) -> None:
    whole = index.text(files / "guide.md")
    assert (whole.first, whole.total) == (6, len(GUIDE.split("\n")) - 1)
    assert whole.text == "\n".join(GUIDE.split("\n")[5:-1])
    for place in ("guide.md:10-12", "guide.md:10:3"):
        part = index.text(place)
        assert (part.lines, part.text) == (
            (10, 12),
            "## Ships\n\nParagraph 0 tells of the penguin with the number 0.",
        )
    assert index.text("guide.md", (10, 12)) == part
    assert len(index.text("guide.md:10").text.split("\n")) == 20
    assert index.text(f"{files}/birds.pdf:p2").text == "Second page on skua."
    assert index.text("crew.csv").text == "name: Sverdrup\nrole: captain\nname: Johansen\nrole: stoker"
    assert index.text("drift.txt:4").text == "Nansen was aboard."
    for bad in (
        "guide.md:9999",
        "birds.pdf:p3",
        "talk.srt:01:00:00",
        "stock.xlsx:Stock!A9",
        "stock.xlsx:No!A2",
    ):
        with pytest.raises(UnknownName):
            index.text(bad)
    for odd in ("~nobody-has-this-name/x", "a\x00b", "", ":", "guide.md:", "C:\\notes\\guide.md:3", "\udcff"):
        with pytest.raises(UnknownName):
            index.text(odd)
    for backwards in ("guide.md:12-10", "guide.md:12:0"):
        with pytest.raises(InputError):
            index.text(backwards)
    with pytest.raises(InputError):
        index.text("guide.md", (3, 2))


def test_paths_may_be_relative_or_contain_dots(
    index: Index, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files / "sub")
    for name in ("deep.md", "../sub/deep.md", str(files / "sub" / "." / "deep.md"), "sub/deep.md"):
        assert index.text(name).document == "sub/deep.md"


def test_exact_search(index: Index) -> None:
    found = index.grep("fsync|FRAM")
    assert [(one.document, one.position) for one in found] == [("sync.py", "8")]
    both = index.grep("fsync|FRAM", ignore_case=True)
    assert [(one.document, one.position) for one in both] == [("drift.txt", "3"), ("sync.py", "8")]
    assert not index.grep("sync", words=True, glob="*.md")
    assert len(index.grep("sync", words=True)) == 1
    assert [one.line.text for one in index.grep("s.fs", fixed=True)] == ["    os.fsync(path)"]
    assert len(index.grep("penguin", limit=7)) == 7
    counts = index.grep_counts("penguin|kraken")
    assert sorted(counts.values()) == [1, 60] and all(Path(path).is_absolute() for path in counts)
    pages = index.grep("skua")
    assert (pages[0].page, pages[0].lines, pages[0].position) == (2, None, "p2")
    with pytest.raises(InputError, match="unclosed"):
        index.grep("a(")
    with pytest.raises(InputError, match="empty"):
        index.grep("")


def test_globs_and_patterns_narrow_a_search(index: Index, files: Path) -> None:
    every = {hit.document for hit in index.search(WORDS, limit=50)}
    assert len(every) > 5
    for glob, expected in (
        ("*.md", {"guide.md", "sub/deep.md"}),
        ("sub/**", {"sub/deep.md"}),
        ("files/sub", {"sub/deep.md"}),
        ("*.{pdf,docx}", {"birds.pdf", "plan.docx"}),
        (["*.md", "!guide*"], {"sub/deep.md"}),
    ):
        found = index.search(WORDS, limit=50, glob=glob)
        assert {hit.document for hit in found} == expected
    found = index.search("penguin", grep=r"number 1\d\b", limit=50)
    assert found and all("number 1" in hit.text for hit in found)
    assert index.search("penguin", grep="unheard of").reason == "nothing_fits_filter"
    for bad in ("", "!"):
        with pytest.raises(InputError):
            index.search("the", glob=bad)


def test_a_least_score_leaves_hits_out(index: Index) -> None:
    hits = index.search("penguin number 7", mode="bm25")
    least = hits[1].score
    better = index.search("penguin number 7", mode="bm25", min_score=least)
    assert 0 < len(better) <= len(hits) and all(hit.score >= least for hit in better)
    none = index.search("penguin number 7", mode="bm25", min_score=1.0)
    assert not none and none.reason == "below_min_score"


def test_rights_and_filters_hold_everywhere(tmp_path: Path) -> None:
    for name, level in (("open", 1), ("secret", 2)):
        (tmp_path / f"{name}.md").write_text(
            f"---\nlevel: {level}\n---\n# {name}\n\nThe {name} word is zeppelin.\n"
        )
    sources = [tmp_path / "open.md", tmp_path / "secret.md"]
    with Index.build(sources, tmp_path / "ix") as index:
        for chosen in ({"filter": "level=1"}, {"allow": "level=1"}):
            assert [hit.document for hit in index.search("zeppelin", **chosen)] == ["open.md"]
            assert [match.document for match in index.grep("zeppelin", **chosen)] == ["open.md"]
            assert list(index.grep_counts("zeppelin", **chosen)) == [str(tmp_path / "open.md")]
            assert "open" in index.text("open.md", **chosen).text
            errors = []
            for name in ("secret.md", "nothing.md"):
                with pytest.raises(UnknownName) as caught:
                    index.text(name, **chosen)
                errors.append(str(caught.value).replace(name, "NAME"))
            assert errors[0] == errors[1]
    with Index.open(tmp_path / "ix", settings=Settings(allow="level=1")) as index:
        assert [match.document for match in index.grep("zeppelin")] == ["open.md"]
        with pytest.raises(UnknownName):
            index.text("secret.md")


def test_files_that_vanished_and_documents_without_one(tmp_path: Path) -> None:
    (tmp_path / "gone.md").write_text("# Gone\n\nThe zeppelin left.\n")
    sources = [tmp_path / "gone.md", Document("own", "A zeppelin of a program.")]
    with Index.build(sources, tmp_path / "ix") as index:
        (tmp_path / "gone.md").unlink()
        found = {hit.document: hit for hit in index.search("zeppelin")}
        assert (found["gone.md"].state, found["gone.md"].path) == ("missing", str(tmp_path / "gone.md"))
        assert (found["own"].state, found["own"].path, found["own"].source) == (None, None, None)
        assert index.text("own").text == "A zeppelin of a program."
        assert index.text(tmp_path / "gone.md").state == "missing"
        data = json.loads(json.dumps(index.search("zeppelin", limit=1).to_json()))
        assert data["schema"] == "ketrag/search/1" and data["hits"][0]["document"] in found


def test_a_merged_index_and_an_empty_one(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\nThe zeppelin of {name}.\n")
        Index.build(tmp_path / f"{name}.md", tmp_path / f"{name}-index").close()
    parts = [tmp_path / "one-index", tmp_path / "two-index"]
    with Index.merge(parts, tmp_path / "both") as both:
        assert {hit.path for hit in both.search("zeppelin")} == {
            str(tmp_path / "one.md"),
            str(tmp_path / "two.md"),
        }
        assert len(both.grep("zeppelin")) == 2
    with Index.build([], tmp_path / "empty") as nothing:
        assert nothing.search("zeppelin").reason == "empty_index"
        assert not nothing.grep("zeppelin")


def test_hops_are_further_starting_points(index: Index) -> None:
    """Passages of a name that the question does not have are found, and its words are marked."""
    question = "What was heard by its sailors?"
    assert index.search(question, limit=1)[0].document != "sub/deep.md"
    hit = index.search(question, limit=1, hops=["the kraken sleeps", "who dives deep?"])[0]
    assert hit.document == "sub/deep.md"
    line = hit.snippet[0]
    assert "kraken" in [line.text[slice(*mark)] for mark in line.marks]
    context = index.retrieve(question, hops=("kraken",))
    assert context.question == question and context.passages[0].document == "sub/deep.md"
    both = index.retrieve_many([question, Query(question, hops=["kraken"])], top=1)
    assert [one.passages[0].document for one in both] == [
        index.retrieve(question).passages[0].document,
        "sub/deep.md",
    ]
    assert index.retrieve(question).passages == index.retrieve(question, hops=[]).passages
    for bad in ("kraken", ["", "a"], [1], ["a"] * 21):
        with pytest.raises(InputError, match="hops"):
            index.retrieve(question, hops=bad)


@pytest.mark.skipif(os.name == "nt", reason="names of files are text")
def test_a_file_whose_name_is_not_utf_8_exists(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    name = os.fsencode(folder) + b"/bad\xff\xfe.txt"
    try:
        Path(os.fsdecode(name)).write_text("alpha text five")
    except OSError:
        pytest.skip("this file system has no such names")
    with Index.build(folder, tmp_path / "index") as index:
        (hit,) = index.search("alpha text five")
        assert hit.document == r"bad\xff\xfe.txt" and hit.state is None and hit.part == ""
        assert index.text(hit.document).text == "alpha text five"
        assert hit.path is not None and hit.path.encode()
    Path(os.fsdecode(name)).unlink()
    with Index.open(tmp_path / "index") as index:
        assert index.search("alpha text five")[0].state == "missing"


def test_a_path_that_is_not_there_suggests_those_that_the_caller_may_see(tmp_path: Path) -> None:
    documents = [
        Document("docs/read-me.md", "The plan.", "", {"team": "red"}),
        Document("docs/crew.csv#2", "Wild", "", {"team": "red"}),
        Document("secret/red-kettle.md", "A secret.", "", {"team": "blue"}),
    ]

    def hint(index: Index, path: str, **chosen: str) -> str | None:
        with pytest.raises(UnknownName, match="is not in the index") as caught:
            index.text(path, **chosen)
        return caught.value.hint

    with Index.build(documents, tmp_path / "index") as index:
        assert hint(index, "src/Read_me.md:3-9") == "did you mean docs/read-me.md?"
        assert hint(index, "crow.csv") == "did you mean docs/crew.csv?"
        assert hint(index, "red-kettel.md") == "did you mean secret/red-kettle.md?"
        assert hint(index, "main.rs") == "`ketrag documents` lists what is"
        assert hint(index, "red-kettel.md", filter="team=red") == "`ketrag documents` lists what is"
    with Index.open(tmp_path / "index", settings=Settings(allow="team=red")) as index:
        assert hint(index, "red-kettel.md") == "`ketrag documents` lists what is"
        assert hint(index, "readme.md") == "did you mean docs/read-me.md?"


def test_files_are_listed_once_in_index_order(index: Index, files: Path) -> None:
    listed = index.files()
    names = [
        *(
            "birds.pdf",
            "crew.csv",
            "drift.txt",
            "guide.md",
            "ice.pptx",
            "letter.eml",
            "log.jsonl",
            "note.rst",
        ),
        *("plan.docx", "stock.xlsx", "sub/deep.md", "sync.py", "talk.srt"),
    ]
    assert listed.paths == tuple(str(files / name) for name in names)
    assert listed.documents == tuple("stock.xlsx/Stock" if name == "stock.xlsx" else name for name in names)
    for place, path, document in zip(listed, listed.paths, listed.documents, strict=True):
        assert (place.path, place.document, place.lines, place.part) == (path, document, None, "")
    titles = {place.document: place.headings for place in listed}
    assert titles["guide.md"] == ("Guide",) and titles["crew.csv"] == ()


def test_listed_files_match_a_filter_and_globs(index: Index) -> None:
    assert index.files("*.md").documents == ("guide.md", "sub/deep.md")
    assert index.files("sub/*").documents == ("sub/deep.md",)
    assert index.files(filter="year=1990").documents == ("guide.md",)
    assert index.files("sub/*", filter="year=1990").documents == ()
    nothing = index.files("*.none")
    assert (nothing.paths, nothing.documents, list(nothing)) == ((), (), [])


def test_documents_of_a_program_are_listed_by_their_ids(tmp_path: Path) -> None:
    with Index.build([Document("b", "Second.", "B"), Document("a", "First.")], tmp_path / "index") as index:
        assert index.files().paths == index.files().documents == ("b", "a")
        assert [place.headings for place in index.files()] == [("B",), ()]


@pytest.mark.parametrize(
    ("words", "marks"),
    [
        ("北京", [(8, 10)]),
        ("東京タワー", [(8, 10), (10, 12)]),
        ("ในวันนี้", [(8, 12), (12, 16)]),
        ("မြန်", [(8, 12)]),
        ("ភាសា", [(8, 12)]),
    ],
)
def test_snippets_of_scripts_without_spaces(words: str, marks: list[tuple[int, int]], tmp_path: Path) -> None:
    """Their keywords are pairs of letters, which are looked for in the text."""
    text = (
        f"Intro line without it.\n\nAnother line about boats.\n\nHere is {words} in a line.\n\nThe last line."
    )
    with Index.build([Document("a", text)], tmp_path / "index") as index:
        (hit,) = index.search(words)
    assert hit.snippet[0].text == f"Here is {words} in a line." and list(hit.snippet[0].marks) == marks
