"""The views Graph, Documents and Index of the page, and the path of a question, in a real browser."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ketrag_fast import Document, Event, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.page.assets import FILES, content, graph_page
from ketrag_fast.types import GraphEdge, GraphNode, GraphView
from tests.support.browser import Browser
from tests.support.browser_fixtures import fits, problems, texts
from tests.support.service import running

pytestmark = pytest.mark.usefixtures("loopback")
HOSTILE = "<script>alert(1)</script>\u202eeman"
FILM = "In which region lies the town where the maker of the film Blue Engine was born?"
TEXTS = [
    ("Blue Engine", "Blue Engine is a film of Ada Lorne."),
    ("Ada Lorne", "Ada Lorne was born in Milan."),
    ("Milan", "Milan lies in Lombardy."),
    (HOSTILE, "Ada Lorne never saw this text."),
    *((f"Filler {k}", f"Filler {k} speaks of matter{k % 7} here.") for k in range(60)),
]


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films") / "index"
    documents = [Document(f"{k}.md", text, title, {"number": k}) for k, (title, text) in enumerate(TEXTS)]
    Index.build(documents, folder, settings=Settings(threads=1, llm="heuristic", mode="walk")).close()
    return folder


def counts(page: Browser) -> str:
    return str(page.value("document.querySelector('.graph-counts').textContent"))


INK = """
(() => {
  const own = document.querySelector('%s');
  const pen = new OffscreenCanvas(own.width, own.height).getContext('2d');
  pen.drawImage(own, 0, 0);
  return pen.getImageData(0, 0, own.width, own.height).data.filter((v, i) => i %% 4 === 3 && v).length;
})()
"""
CLICK = """
(() => {
  const [x, y] = panel.place(%d);
  const box = panel.canvas.getBoundingClientRect();
  const about = { clientX: box.x + x, clientY: box.y + y, pointerId: 1, bubbles: true };
  for (const kind of ['pointerdown', 'pointerup']) panel.canvas.dispatchEvent(new PointerEvent(kind, about));
})()
"""


def ink(page: Browser, canvas: str = ".graph-canvas") -> int:
    """How many pixels of a canvas are painted."""
    return int(page.value(INK % canvas))


def paint(page: Browser) -> None:
    page.draw()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (400, False), (400, True)], ids=str)
def test_the_graph_from_a_name_by_keyboard(
    films: Path, page: Browser, pictures: Path, width: int, dark: bool
) -> None:
    with running(films) as service:
        page.look(width, 900, dark=dark, phone=width < 500)
        page.go(f"{service.url}#graph?graph=walk")
        page.wait("document.querySelector('.graph-counts')?.textContent.includes('nodes')")
        overview = counts(page)
        page.value("document.querySelector('#graph-root input[type=search]').focus()")
        page.type("ada lorne")
        page.press("Enter", 13, "\r")
        page.wait("document.querySelector('.graph-side h3')?.textContent === 'Ada Lorne'")
        assert counts(page) != overview
        page.value("document.querySelector('.graph-canvas').focus()")
        paint(page)
        assert ink(page) > 500
        page.picture(pictures / f"graph-{width}-{'dark' if dark else 'light'}.png")
        for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
            page.press(key)
        page.press("Enter", 13)
        page.wait("panel.view.nodes.seed.length > 1 || panel.view.nodes.seed[0] === panel.selected")
        page.press("Enter", 13)
        page.press("Escape", 27)
        page.value("new Promise((done) => setTimeout(done, 500))")
        assert page.value("panel.selected") == -1
        assert fits(page), "nothing is wider than the window"
        assert problems(page) == []
        assert all(url.startswith((service.url, "about:", "data:")) for url in page.requests)


def test_a_click_on_a_node_shows_its_sentence_and_kinds_can_be_hidden(films: Path, page: Browser) -> None:
    with running(films) as service:
        page.go(f"{service.url}#graph")
        page.wait("!!(panel && panel.view)")
        page.go("about:blank")
        page.go(f"{service.url}#graph?graph=walk&around=milan")
        page.wait("!!(panel && panel.view) && panel.view.nodes.title[0] === 'milan'")
        node = page.value("panel.view.nodes.unit.findIndex((unit) => unit !== null)")
        page.value(CLICK % node)
        page.wait("document.querySelector('.graph-text article') !== null")
        assert "Milan" in page.value("document.querySelector('.graph-text').textContent")
        paint(page)
        before = ink(page)
        page.value("document.querySelector('.legend input').click()")
        paint(page)
        assert ink(page) < before
        assert problems(page) == []


def test_the_path_of_a_question_leads_to_the_graph(films: Path, page: Browser, pictures: Path) -> None:
    with running(films) as service:
        page.go(service.url)
        page.wait("document.getElementById('about').textContent.includes('documents')")
        page.value("document.getElementById('question').focus()")
        page.type(FILM)
        page.press("Enter", 13, "\r")
        page.wait("!document.getElementById('path-part').hidden")
        page.value("document.getElementById('path-part').open = true")
        drawn = texts(page, "#path g.bridge text")
        assert {"Ada Lorne", "Milan"} <= set(drawn)
        passages = texts(page, "#path g.passage text")
        assert any("Milan" in text for text in passages)
        page.picture(pictures / "path-1280.png")
        page.look(400, 844, phone=True)
        assert fits(page)
        page.picture(pictures / "path-400.png")
        page.value("document.getElementById('explore-question').click()")
        page.wait("location.hash.startsWith('#graph?') && panel?.view?.nodes.seed.length > 0")
        assert problems(page) == []


def test_documents_and_index(films: Path, page: Browser, pictures: Path) -> None:
    with running(films) as service:
        page.go(f"{service.url}#documents")
        page.wait("document.querySelectorAll('#documents-table tbody tr').length === 50")
        assert page.value("document.querySelectorAll('#documents-table script').length") == 0
        assert "\\u202e" in page.value("document.getElementById('documents-table').textContent")
        page.value("document.getElementById('later').click()")
        page.wait("document.querySelectorAll('#documents-table tbody tr').length === 14")
        page.value("document.getElementById('containing').value = 'milan'")
        page.value("document.getElementById('containing-form').requestSubmit()")
        page.wait("document.querySelectorAll('#documents-table tbody tr').length === 1")
        page.value("document.querySelector('#documents-table td a').click()")
        page.wait("document.getElementById('reader').open")
        page.press("Escape", 27)
        address = page.value("document.querySelector('#documents-table td a').href")
        page.go("about:blank")
        page.go(address)  # as in a new tab
        page.wait("document.getElementById('reader-title').textContent === 'Milan'")
        page.press("Escape", 27)
        page.wait("location.hash === '#documents'")  # the address of a passage is that of the list again
        page.picture(pictures / "documents.png")
        page.value("document.getElementById('to-index').click()")
        page.wait("document.querySelectorAll('#index-view table').length >= 4")
        assert "ketrag index --modes auto,g2cons" in texts(page, "#index-view td")
        page.picture(pictures / "index.png")
        page.look(400, 844, phone=True)
        assert fits(page)
        page.value("document.getElementById('to-documents').click()")
        page.wait("!document.getElementById('view-documents').hidden")
        assert fits(page)
        cells = "[...document.querySelectorAll('#documents-table td')].filter((own) => own.textContent)"
        assert page.value(f"Math.max(...{cells}.map((own) => own.offsetHeight))") < 120
        page.picture(pictures / "documents-400.png")
        assert problems(page) == []


def test_documents_are_rows_that_sort_by_their_heads(films: Path, page: Browser) -> None:
    with running(films) as service:
        page.go(f"{service.url}#documents")
        page.wait("document.querySelectorAll('#documents-table tbody tr').length === 50")
        assert texts(page, "#documents-table .preview")[0] == TEXTS[0][1]
        height = page.value("document.querySelector('#documents-table tbody tr').offsetHeight")
        assert height < 90
        titles = sorted((title.replace("\u202e", "\\u202e") for title, _ in TEXTS), key=str.casefold)
        for order, expected in (("ascending", titles), ("descending", titles[::-1])):
            page.value("document.getElementById('sort-title').click()")
            page.wait(f"document.querySelector('#documents-table th')?.ariaSort === {order!r}")
            assert texts(page, "#documents-table td a") == expected[:50]
            assert page.value("document.activeElement.id") == "sort-title"
        page.value("document.getElementById('later').click()")
        page.wait("document.querySelectorAll('#documents-table tbody tr').length === 14")
        assert texts(page, "#documents-table td a") == titles[::-1][50:]
        assert problems(page) == []


def test_documents_are_added_and_removed_where_writing_is_allowed(page: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    Index.build([Document("a.md", "The Fram sailed.", "Fram")], folder, settings=Settings(threads=1)).close()
    with running(folder, writable=True) as service:
        page.go(f"{service.url}#documents")
        page.wait("!document.getElementById('documents-write').hidden")
        page.value("addFiles([new File(['The Maud sailed too.'], 'maud.txt')])")
        page.wait("document.querySelectorAll('#documents-table tbody tr').length === 2")
        remove = "document.querySelector('#documents-table td:last-child button').click()"
        page.value(remove)
        page.wait("document.getElementById('confirm').open")
        page.press("Escape", 27)
        page.wait("!document.getElementById('confirm').open")
        hidden = "document.querySelectorAll('#documents-table tbody tr[hidden]').length"
        assert page.value(hidden) == 0, "nothing is removed without a yes"
        page.value(f"{remove}; document.querySelector('#confirm .danger').click()")
        page.wait(f"{hidden} === 1")
        page.value("document.querySelector('#documents-status button').click()")
        page.wait(f"{hidden} === 0")
        page.value(f"{remove}; document.querySelector('#confirm .danger').click()")
        page.wait("document.querySelectorAll('#documents-table tbody tr').length === 1")
        errors = [line for line in problems(page) if "status of 409" not in line]  # it waits, and asks again
        assert errors == []


def test_a_dropped_file_is_read_by_its_format(page: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    Index.build([Document("a.md", "The Fram sailed.", "Fram")], folder, settings=Settings(threads=1)).close()
    with running(folder, writable=True) as service:
        page.go(f"{service.url}#documents")
        page.wait("!document.getElementById('documents-write').hidden")
        page.value(
            "addFiles([new File(['<p>The <b>Maud</b> sailed.</p>'], 'maud.html'), new File(['x'], 'a.md'),"
            " new File([new Uint8Array([0, 1, 2, 255])], 'junk.bin')])"
        )
        page.wait("document.querySelectorAll('#uploads tr[data-state=waiting]').length === 0")
        page.wait("document.querySelectorAll('#documents-table tbody tr').length === 2")
        states = page.value("[...document.querySelectorAll('#uploads tr')].map((row) => row.dataset.state)")
        assert states == ["read", "exists", "refused"]
        assert texts(page, "#uploads td span")[1] == "not added: a.md is in the index already"
        page.value("document.querySelector('#uploads button').click()")
        page.wait("document.querySelectorAll('#uploads tr[data-state=read]').length === 2")
        assert problems(page) == []


def test_the_questions_of_the_index_are_offered(page: Browser, tmp_path: Path) -> None:
    folder, asked = tmp_path / "index", ["Who sailed?", HOSTILE]
    Index.build([Document("a.md", "The Fram sailed.", "Fram")], folder, examples=asked).close()
    with running(folder) as service:
        page.go(service.url)
        page.wait("!document.getElementById('examples-part').hidden")
        assert texts(page, "#examples button") == [asked[0], asked[1].replace("\u202e", "\\u202e")]
        page.value("document.querySelector('#examples button').click()")
        page.wait("document.querySelectorAll('#columns article').length === 1")
        assert page.value("document.getElementById('start').hidden")
        assert problems(page) == []


def test_a_running_build_and_past_ones_are_shown(page: Browser, pictures: Path, tmp_path: Path) -> None:
    folder, go_on = tmp_path / "index", threading.Event()
    Index.build([Document("a.md", "The Fram sailed.", "Fram")], folder, settings=Settings(threads=1)).close()

    def slowly(_: Event) -> bool:
        go_on.wait(0.2)
        return True

    def build() -> None:
        with Index.open(folder) as other:
            other.update(add=[Document(f"{k}", f"Filler {k} sailed.") for k in range(300)], progress=slowly)

    with running(folder) as service:
        page.go(f"{service.url}#index")
        page.wait("document.querySelectorAll('#index-view .builds tbody tr').length === 1")
        assert page.value("document.querySelector('#index-view .running').hidden")
        thread = threading.Thread(target=build)
        thread.start()
        try:
            page.wait(
                "document.querySelector('#index-view .running')?.textContent.includes('A build is running')"
            )
            page.look(400, 844, phone=True)
            assert fits(page)
            page.picture(pictures / "index-building-400.png")
        finally:
            go_on.set()
            thread.join()
        page.wait("document.querySelectorAll('#index-view .builds tbody tr').length === 2")
        assert "300 added" in texts(page, "#index-view .builds tbody tr")[0]
        assert page.value("document.querySelector('#index-view .running').hidden")
        assert fits(page)
        page.picture(pictures / "index-400.png")
        assert problems(page) == []


def test_the_page_and_its_scripts_are_small() -> None:
    assert sum(len(content(name)) for name, _ in FILES.values()) <= 300_000


def picture_of(nodes: int, edges: int, title: str = "node") -> GraphView:
    random = np.random.default_rng(1)
    places = random.uniform(-1, 1, (nodes, 2)).tolist()
    ends = random.integers(0, max(nodes, 1), (edges, 2)).tolist()
    return GraphView(
        "walk",
        tuple(GraphNode(k, "name", f"{title} {k}", 3, k % 9, *xy) for k, xy in enumerate(places)),
        tuple(GraphEdge(a, b, "names", 1.0) for a, b in ends),
        nodes,
        edges,
        {"name": nodes},
        1,
    )


@pytest.mark.parametrize(
    ("nodes", "edges", "title"),
    [(0, 0, ""), (1, 0, "one"), (3, 2, HOSTILE), (3, 2, "x" * 10_000), (3000, 5000, "many")],
    ids=["empty", "one", "hostile", "long", "many"],
)
def test_a_file_without_a_server(page: Browser, tmp_path: Path, nodes: int, edges: int, title: str) -> None:
    file = tmp_path / "graph.html"
    text = graph_page(picture_of(nodes, edges, title), f"graph of {title[:50]}")
    file.write_text(text, encoding="utf-8")
    assert not re.search(r"(?:src|href)=|https?://", text)
    page.go(file.as_uri())
    page.wait("document.querySelector('.graph-counts')?.textContent.includes('nodes')")
    assert counts(page).startswith(f"{nodes:,} of {nodes:,} nodes")
    assert ("empty" in counts(page)) == (nodes == 0)
    paint(page)
    if nodes:
        assert ink(page) + ink(page, ".graph-box canvas") > 10
        page.value("panel.select(0)")
        page.wait("document.querySelector('.graph-side h3') !== null")
        assert page.value("panel.side.textContent").lower().startswith(title[:8].lower())
    assert problems(page) == []
    assert all(url.startswith(("file:", "about:", "data:")) for url in page.requests)


def test_without_webgl_the_canvas_draws_everything(page: Browser, tmp_path: Path) -> None:
    file = tmp_path / "graph.html"
    file.write_text(graph_page(picture_of(5000, 5000), "graph"), encoding="utf-8")
    page.go(file.as_uri())
    page.wait("!!panel.view")
    page.value("panel.layer = null; panel.recolour()")
    paint(page)
    assert page.value("panel.fast") is None
    assert ink(page) > 5000


def test_the_command_writes_the_file(
    films: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KETRAG_PICTURES", raising=False)  # the command reads every such variable
    file = tmp_path / "ada.html"
    assert main(["graph", "ada lorne", "-i", str(films), "--graph", "walk", "--html", str(file)]) == 0
    assert "of" in capsys.readouterr().err
    data = re.search(r'id="graph-data">(.*?)</script>', file.read_text("utf-8"), re.DOTALL)
    assert data is not None
    view: dict[str, Any] = json.loads(data[1])
    assert view["nodes"]["title"][0] == "ada lorne"
    assert any(HOSTILE in title for title in view["nodes"]["title"])
    assert main(["graph", "-i", str(films), "--graph", "concepts", "--html", str(file)]) == 4
    assert f"ketrag index -i {films} --modes +g2cons" in capsys.readouterr().err
    assert main(["graph", "Milan", "-i", str(films), "--limit", "3"]) == 2


def test_retrieve_writes_the_graph_around_its_passages(
    films: Path, page: Browser, tmp_path: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KETRAG_PICTURES", raising=False)
    file = tmp_path / "context.html"
    assert main(["retrieve", FILM, "-i", str(films), "--budget", "150", "--html", str(file), "-q"]) == 0
    assert not re.search(r"src=|https?://", file.read_text("utf-8"))
    page.go(file.as_uri())
    page.wait("document.querySelector('.graph-counts')?.textContent.includes('nodes')")
    assert "blue engine" in page.value("panel.view.nodes.title.join()").lower()
    page.value("document.getElementById('graph-root').scrollIntoView()")
    paint(page)
    assert ink(page) > 500
    page.picture(pictures / "retrieve-html.png")
    assert fits(page)
    page.look(400, 900, phone=True)
    assert fits(page)
    assert problems(page) == []
