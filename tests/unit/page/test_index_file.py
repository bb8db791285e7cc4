"""`ketrag export html`: the views in one file, in a real browser, without a server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings, export_graph
from ketrag_fast.apps.cli.main import main
from ketrag_fast.page import index_file
from tests.support.browser import Browser
from tests.support.browser_fixtures import fits, problems, texts
from tests.unit.apps.server.test_page_views import FILM, HOSTILE, TEXTS, ink, paint

pytestmark = pytest.mark.usefixtures("loopback")
LONG = "x" * 10_000


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("filed") / "index"
    documents = [Document(f"{k}.md", text, title, {"number": k}) for k, (title, text) in enumerate(TEXTS)]
    documents.append(Document("long.md", "A long title is above this text.", LONG))
    with Index.build(documents, folder, settings=Settings(threads=1, llm="heuristic", mode="walk")) as built:
        yield built


def data_of(file: Path) -> dict[str, Any]:
    found = re.search(r'id="file-data">(.*?)</script>', file.read_text("utf-8"), re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def open_file(page: Browser, file: Path, view: str = "") -> None:
    page.go(f"{file.as_uri()}{view}")
    page.wait("document.getElementById('about').textContent.includes('in this file')")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)], ids=str)
def test_every_view_works_without_a_server(
    index: Index, page: Browser, tmp_path: Path, pictures: Path, width: int, dark: bool
) -> None:
    file = tmp_path / "films.html"
    export_graph(index, "html", file)
    name = f"{width}-{'dark' if dark else 'light'}"
    page.look(width, 900, dark=dark, phone=width < 500)
    open_file(page, file)
    page.wait("!document.getElementById('examples-part').hidden")
    page.value("document.querySelector('#examples button').click()")
    page.wait("document.querySelectorAll('#columns article').length > 0")
    page.value("document.getElementById('question').focus(); document.getElementById('question').select()")
    page.type("Where was Ada Lorne born?")
    page.press("Enter", 13, "\r")
    page.wait("document.querySelector('#columns article h4')?.textContent === '[1] Ada Lorne'")
    assert {"Ada", "Lorne", "born"} <= set(texts(page, "#columns article:first-of-type mark"))
    assert fits(page)
    page.picture(pictures / f"file-ask-{name}.png")
    page.value("document.querySelector('#columns article h4 a').click()")
    page.wait("document.getElementById('reader').open")
    page.press("Escape", 27)
    # Closing is a step back in the history, which must have ended before the next step.
    page.wait("!document.getElementById('reader').open && !location.hash.includes('document=')")
    page.value("document.getElementById('to-graph').click()")
    page.wait("!!panel?.view")
    paint(page)
    assert ink(page) > 500
    page.value("panel.go({ graph: 'walk', around: ['ada lorne'] })")
    page.wait("panel.view.nodes.title[0] === 'ada lorne'")
    assert fits(page)
    page.picture(pictures / f"file-graph-{name}.png")
    page.value("document.getElementById('to-documents').click()")
    page.wait("document.querySelectorAll('#documents-table tbody tr').length === 50")
    assert fits(page)
    page.value("document.getElementById('containing').value = 'milan'")
    page.value("document.getElementById('containing-form').requestSubmit()")
    page.wait("document.querySelectorAll('#documents-table tbody tr').length === 1")
    page.value("document.getElementById('to-index').click()")
    page.wait("document.querySelectorAll('#index-view table').length >= 4")
    assert fits(page)
    assert problems(page) == []
    assert all(url.startswith(("file:", "about:", "data:")) for url in page.requests)


def test_nothing_in_the_file_names_another_host_or_becomes_markup(
    index: Index, page: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "films.html"
    export_graph(index, "html", file)
    text = file.read_text("utf-8")
    assert not re.search(r"\ssrc=|https?://|@import|url\(", text)
    assert "script-src 'sha256-" in text
    assert "unsafe" not in text
    assert text.count("</script>") == 2  # the data and the script
    open_file(page, file, "#documents")
    page.value("document.getElementById('containing').value = 'eman'")
    page.value("document.getElementById('containing-form').requestSubmit()")
    page.wait("document.querySelectorAll('#documents-table tbody tr').length === 1")
    shown = texts(page, "#documents-table td a")[0]
    assert shown == HOSTILE.replace("\u202e", "\\u202e")
    assert page.value("document.querySelectorAll('main script').length") == 0
    assert problems(page) == []


def test_a_stored_question_has_its_path_and_the_graph_of_its_passages(
    index: Index, page: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "film.html"
    report = export_graph(index, "html", file, query=FILM)
    data = data_of(file)
    found = [passage.document for passage in index.retrieve(FILM).passages]
    assert {one["document"] for one in data["documents"]} == set(found)
    assert [one["question"] for one in data["contexts"]] == [FILM]
    assert report.nodes == sum(len(view["nodes"]["id"]) for view in data["views"].values())
    open_file(page, file)
    page.wait("!document.getElementById('examples-part').hidden")
    assert texts(page, "#examples button") == [FILM]
    page.value("document.querySelector('#examples button').click()")
    page.wait("!document.getElementById('path-part').hidden")
    page.value("document.getElementById('path-part').open = true")
    assert {"Ada Lorne", "Milan"} <= set(texts(page, "#path g.bridge text"))
    bridge = (
        "[...document.querySelectorAll('#path g.bridge')].find((g) => g.textContent.includes('Ada Lorne'))"
    )
    page.value(f"{bridge}.focus()")
    page.wait("document.querySelectorAll('#columns .lit').length > 0")
    assert "Ada Lorne was born in Milan." in page.value("document.getElementById('path-note').textContent")
    assert page.value("document.querySelectorAll('#path .link.lit').length") >= 2
    page.value(f"{bridge}.blur()")
    page.wait("document.querySelectorAll('#columns .lit').length === 0")
    page.value("document.getElementById('explore-question').click()")
    page.wait("panel?.view?.nodes.seed.length > 0")
    assert problems(page) == []


def test_a_path_and_a_name_that_the_file_lacks(index: Index, page: Browser, tmp_path: Path) -> None:
    file = tmp_path / "films.html"
    export_graph(index, "html", file, graph="walk")
    assert list(data_of(file)["views"]) == ["walk"]
    open_file(page, file, "#graph")
    page.wait("!!panel?.view")
    page.value("panel.search.value = 'Blue Engine'; panel.end.value = 'Milan'; panel.form.requestSubmit()")
    page.wait("panel.view.path.length > 1")
    titles = page.value("panel.view.path.map((node) => panel.view.nodes.title[node])")
    assert (titles[0], titles[-1]) == ("Blue Engine", "Milan")
    assert "the shortest path has" in page.value("panel.counts.textContent")
    page.value("panel.go({ around: ['nobody at all'] })")
    page.wait("panel.counts.textContent === 'this file has no node nobody at all'")
    page.value("panel.go({ around: ['Filler 1'], to: 'Milan' })")
    page.wait("panel.counts.textContent.includes('path')")
    assert problems(page) == []


def test_a_neighbourhood_has_the_passages_of_its_nodes(index: Index, tmp_path: Path) -> None:
    file = tmp_path / "milan.html"
    export_graph(index, "html", file, graph="walk", neighbourhood_of="Milan")
    data = data_of(file)
    held = {one["title"] for one in data["documents"]}
    assert {"Milan", "Ada Lorne"} <= held
    assert len(held) < 10
    assert data["index"]["documents"] == len(held)
    assert data["index"]["documents_in_all"] == len(TEXTS) + 1
    assert data["views"]["walk"]["nodes"]["seed"] != []


def test_a_missing_graph_names_its_command_and_an_empty_index_has_every_view(
    page: Browser, tmp_path: Path
) -> None:
    settings = Settings(threads=1, modes="text")
    with Index.build(
        [Document("a", "The Fram sailed north.", "Fram")], tmp_path / "i", settings=settings
    ) as one:
        export_graph(one, "html", tmp_path / "plain.html")
    with Index.build([], tmp_path / "none", settings=Settings(threads=1)) as none:
        export_graph(none, "html", tmp_path / "empty.html")
    open_file(page, tmp_path / "plain.html", "#index")
    page.wait("document.getElementById('index-view').textContent.includes('ketrag index --llm heuristic')")
    page.value("document.getElementById('to-graph').click()")
    page.value("panel.go({ graph: 'skeleton' })")
    page.wait("panel.counts.textContent === 'this file has no graph skeleton'")
    open_file(page, tmp_path / "empty.html", "#graph")
    page.wait("document.querySelector('.graph-counts')?.textContent.includes('this graph is empty')")
    page.value("document.getElementById('to-ask').click()")
    page.value("document.getElementById('question').value = 'Fram'")
    page.value("document.getElementById('ask').requestSubmit()")
    page.wait("document.querySelector('#columns h3')?.textContent.startsWith('Nothing in the documents')")
    assert problems(page) == []


def test_passages_beyond_the_limit_are_counted(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_file, "MOST_TEXT", 200)
    export_graph(index, "html", tmp_path / "films.html")
    data = data_of(tmp_path / "films.html")
    assert sum(len(text) for text in data["units"]["text"]) <= 200
    assert 0 < data["index"]["documents"] < data["index"]["documents_in_all"]
    assert data["stats"]["counts"]["passages in this file"] == len(data["units"]["text"])


def test_the_command(index: Index, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "films.html"
    argv = ["export", "html", str(file), "-i", str(index.path)]
    assert main([*argv, "--query", FILM]) == 0
    assert "nodes and" in capsys.readouterr().out
    assert data_of(file)["contexts"][0]["question"] == FILM
    assert main(argv) == 4 or "already exists" in capsys.readouterr().err
    assert main([*argv, "--replace", "--filter", "number<3", "--json"]) == 0
    data = data_of(file)
    assert [one["title"] for one in data["documents"]] == ["Blue Engine", "Ada Lorne", "Milan"]
    assert not any("illers" in title for view in data["views"].values() for title in view["nodes"]["title"])
