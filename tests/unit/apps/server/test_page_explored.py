"""The graph view: paths, collapsing, filters, saved pictures, large nodes, changed indexes, and keys."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.page.assets import SCRIPTS, graph_page, text
from ketrag_fast.types import GraphEdge, GraphNode, GraphView
from tests.support.browser import Browser, browser
from tests.support.browser_fixtures import fits, problems, texts
from tests.support.service import running
from tests.unit.apps.server.test_page_views import HOSTILE, ink, paint

pytestmark = pytest.mark.usefixtures("loopback")
SHIPS = [
    Document("fram", "The Fram was built by Colin Archer. Fridtjof Nansen sailed the Fram.", "Fram"),
    Document("maud", "The Maud was a ship of Roald Amundsen. Roald Amundsen met Fridtjof Nansen.", "Maud"),
    Document("gjoa", "Roald Amundsen sailed the Gjøa to Nome.", "Gjøa"),
    Document("bad", "Fridtjof Nansen never saw this.", HOSTILE),
]


NAMELESS = """
[...document.querySelectorAll('button, input, select, a[href], [tabindex], canvas:not([aria-hidden])')]
  .filter((own) => own.offsetParent && !own.closest('[hidden]'))
  .filter((own) => !(own.textContent.trim() || own.getAttribute('aria-label') || own.labels?.length
    || own.getAttribute('aria-labelledby'))).map((own) => own.outerHTML)
"""


@pytest.fixture
def ships(tmp_path: Path) -> Path:
    Index.build(SHIPS, tmp_path / "ships", settings=Settings(threads=1)).close()
    return tmp_path / "ships"


def open_graph(page: Browser, url: str) -> None:
    page.go(f"{url}#graph?graph=walk")
    page.wait("!!(panel && panel.view)")


def star(leaves: int, title: str = "leaf") -> GraphView:
    """A node with many edges."""
    angles = np.linspace(0, 6.28, leaves)
    places = [(0.0, 0.0), *zip(np.cos(angles).tolist(), np.sin(angles).tolist(), strict=True)]
    nodes = tuple(
        GraphNode(k, "name", f"{title} {k}", leaves if k == 0 else 1, 0, *xy) for k, xy in enumerate(places)
    )
    edges = tuple(GraphEdge(0, k + 1, "names", 1.0 + k % 5) for k in range(leaves))
    return GraphView("walk", nodes, edges, leaves + 1, leaves, {"name": leaves + 1}, 1)


def test_the_page_loads_the_scripts_of_the_list() -> None:
    assert tuple(re.findall(r'<script src="/([^"]+)" defer>', text("page.html"))) == SCRIPTS


def test_a_shortest_path_between_two_names(ships: Path, page: Browser) -> None:
    with running(ships) as service:
        open_graph(page, service.url)
        page.value("panel.search.value = 'Colin Archer'; panel.end.focus()")
        page.type("Gjøa")
        page.press("Enter", 13, "\r")
        page.wait("panel.view.path?.length > 1")
        titles = page.value("panel.view.path.map((node) => panel.view.nodes.title[node])")
        assert (titles[0], titles[-1]) == ("colin archer", "Gjøa")
        step = "(node, at) => panel.neighbours(node).includes(panel.view.path[at])"
        assert page.value(f"panel.view.path.slice(1).every({step})")
        assert f"the shortest path has {len(titles) - 1} edges" in page.value("panel.counts.textContent")
        page.value("panel.go({ graph: 'walk', around: ['nobody'], to: 'Maud' })")
        page.wait("panel.counts.textContent.includes(\"no node 'nobody'\")")
        page.press("Escape", 27)
        page.value("panel.back()")
        page.wait("!panel.view.path?.length")
        page.go("about:blank")
        page.go(f"{service.url}#graph?graph=walk&around=Maud&to=Fram")
        page.wait("!!(panel && panel.view && panel.view.path.length)")
        assert page.value("panel.view.nodes.title[panel.view.path.at(-1)]") == "Fram"
        errors = [line for line in problems(page) if "status of 400" not in line]
        assert errors == []


def test_collapse_hide_and_the_lightest_edges(page: Browser, tmp_path: Path) -> None:
    file = tmp_path / "star.html"
    file.write_text(graph_page(star(50), "star"), "utf-8")
    page.go(file.as_uri())
    page.wait("!!panel.view")
    page.value("panel.select(0); panel.canvas.focus()")
    paint(page)
    before = ink(page)
    page.press("c", 67, "c")
    paint(page)
    assert page.value("panel.hidden.size") == 50
    assert page.value("panel.unhide.textContent") == "Show 50 hidden"
    assert ink(page) < before
    page.value("panel.unhide.click()")
    assert page.value("panel.hidden.size") == 0
    page.value("panel.select(3); panel.canvas.focus()")
    page.press("h", 72, "h")
    assert page.value("[...panel.hidden]") == [3]
    page.value("panel.weight.value = '18'; panel.weight.dispatchEvent(new Event('input'))")
    assert page.value("panel.least") == 5
    assert page.value("panel.neighbours(0).length") == 10
    page.value("panel.size.value = 'pagerank'; panel.size.dispatchEvent(new Event('change'))")
    assert page.value("panel.ranks.reduce((sum, own) => sum + own, 0)") == pytest.approx(1)
    assert page.value("panel.ranks.indexOf(Math.max(...panel.ranks))") == 0
    page.value("panel.colour.value = 'community'; panel.colour.dispatchEvent(new Event('change'))")
    assert "Leaf 0 51" in texts(page, ".legend li")[1]
    assert problems(page) == []


def test_saved_pictures_have_the_counts_and_stay_well_formed(page: Browser, tmp_path: Path) -> None:
    file = tmp_path / "star.html"
    file.write_text(graph_page(star(20, HOSTILE), "star"), "utf-8")
    page.go(file.as_uri())
    page.wait("!!panel.view")
    tree = ElementTree.fromstring(page.value("panel.svg()"))
    names = [child.tag.rpartition("}")[2] for child in tree.iter()]
    assert (names.count("circle"), names.count("line")) == (21, 20)
    assert "script" not in names
    assert "walk: 21 of 21 nodes · 20 of 20 edges" in "".join(tree.itertext())
    assert "\u202e" not in "".join(tree.itertext())
    size = page.value(
        "(() => { const own = panel.png(); return [own.width, own.height - panel.canvas.height]; })()"
    )
    assert size == [page.value("panel.canvas.width"), 30]
    assert problems(page) == []


def test_a_node_with_100_000_edges(page: Browser, tmp_path: Path) -> None:
    file = tmp_path / "star.html"
    file.write_text(graph_page(star(100_000), "star"), "utf-8")
    page.go(file.as_uri())
    page.wait("!!(panel && panel.view)", 60)
    page.value("panel.select(0)")
    page.wait("document.querySelectorAll('.graph-side .names li').length === 40")
    assert "40 of 100,000 drawn neighbours" in page.value("panel.side.textContent")
    page.value("panel.pan(50, 20); panel.zoom(1.5)")
    page.wait("!panel.moving")
    paint(page)
    assert ink(page) > 500
    assert problems(page) == []


def test_a_browser_without_webgl_draws_on_the_canvas(page: Browser, tmp_path: Path) -> None:
    file = tmp_path / "star.html"
    text_ = graph_page(star(6000), "star")
    file.write_text(text_.replace('getContext("webgl2"', 'getContext("no-webgl"'), "utf-8")
    digest = re.search(r"'(sha256-[^']+)'", text_)
    assert digest is not None
    script = re.findall(r"<script>(.*?)</script>", file.read_text("utf-8"), re.DOTALL)[0]
    own = "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    file.write_text(file.read_text("utf-8").replace(digest[1], own), "utf-8")
    page.go(file.as_uri())
    page.wait("!!(panel && panel.view)")
    paint(page)
    assert page.value("panel.fast") is None
    assert ink(page) > 5000
    assert problems(page) == []


def test_a_generation_that_is_replaced_while_one_looks(ships: Path, page: Browser) -> None:
    with running(ships, writable=True) as service:
        open_graph(page, service.url)
        page.value("panel.go({ graph: 'walk', around: ['fridtjof nansen'] })")
        page.wait("panel.view.nodes.title[0] === 'fridtjof nansen'")
        before = page.value("panel.view.generation")
        with Index.open(ships) as index:  # another program: every number of a passage changes
            index.update(add=[Document("aaa", "Aage Berg came first.", "Aage")], remove=["fram"])
        fetched = "fetch('/v1/indexes').then((reply) => reply.json())"
        page.wait(f"{fetched}.then((found) => found.indexes[0].generation > {before})", 30)
        passage = page.value("panel.view.nodes.unit.findIndex((unit) => unit !== null)")
        page.value(f"panel.select({passage})")
        page.wait("panel.side.textContent.includes('numbers of nodes and passages have changed')")
        page.value("panel.select(0); panel.expand(0)")
        page.wait(f"panel.view.generation > {before}")
        assert page.value("panel.view.nodes.title.includes('fridtjof nansen')")
        page.wait(f"chosen().generation > {before}")
        errors = [line for line in problems(page) if "status of 409" not in line]
        assert errors == []


def test_two_tabs_see_each_other_s_changes(ships: Path, page: Browser, tmp_path: Path) -> None:
    with running(ships, writable=True) as service, browser(tmp_path / "second") as other:
        for tab in (page, other):
            tab.go(f"{service.url}#documents")
            tab.wait("document.querySelectorAll('#documents-table tbody tr').length === 4")
        other.value("addFiles([new File(['Oscar Wisting sailed the Maud.'], 'wisting.txt')])")
        other.wait("document.querySelectorAll('#documents-table tbody tr').length === 5")
        page.value("window.dispatchEvent(new Event('focus'))")
        page.wait("document.querySelectorAll('#documents-table tbody tr').length === 5")
        assert page.value("chosen().generation") == other.value("chosen().generation")
        assert page.value("document.getElementById('about').textContent").startswith("5 documents")
        assert problems(page) == problems(other) == []


def test_every_control_has_a_name_and_the_keyboard_reaches_it(ships: Path, page: Browser) -> None:
    with running(ships, writable=True) as service:
        for view in ("ask", "graph", "documents", "index"):
            page.go(f"{service.url}#{view}")
            page.wait("document.getElementById('about').textContent.includes('documents')")
            page.wait(f"!document.getElementById('view-{view}').hidden")
            assert page.value(NAMELESS) == []
            page.value("document.activeElement.blur()")
            seen = []
            for _ in range(6):
                page.press("Tab", 9)
                seen.append(page.value("document.activeElement.outerHTML.slice(0, 200)"))
                outline = page.value("getComputedStyle(document.activeElement).outlineStyle")
                assert outline == "solid" or seen[-1].startswith("<body"), seen[-1]  # the end of the page
            assert len(set(seen)) >= 5


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_and_nodes_can_be_told_from_what_is_behind_them(page: Browser, ships: Path, dark: bool) -> None:
    with running(ships) as service:
        page.look(1280, 900, dark=dark)
        page.go(service.url)
        names = ["paper", "ink", "soft", "card", "accent", "mark", "bad", *(f"g{n}" for n in range(10))]
        style = "getComputedStyle(document.body).getPropertyValue('--%s').trim()"
        found = {name: str(page.value(style % name)) for name in names}
        full = {name: c if len(c) == 7 else "#" + "".join(x * 2 for x in c[1:]) for name, c in found.items()}
        for behind in ("paper", "card"):
            for name in ("ink", "soft", "accent", "bad"):
                assert contrast(full[name], full[behind]) >= 4.5, (name, behind)
            for number in range(10):
                assert contrast(full[f"g{number}"], full[behind]) >= 3, (number, behind)
        assert contrast(full["ink"], full["mark"]) >= 4.5


def test_a_filter_is_built_from_the_fields_of_the_documents(page: Browser, tmp_path: Path) -> None:
    documents = [
        Document(
            f"d{year}", f"The ship of {year} sailed north.", f"Ship {year}", {"year": year, "lang": "en"}
        )
        for year in (1890, 1900, 1910)
    ]
    Index.build(documents, tmp_path / "years", settings=Settings(threads=1)).close()
    with running(tmp_path / "years") as service:
        page.go(service.url)
        page.wait("document.getElementById('about').textContent.includes('3 documents')")
        page.value("document.getElementById('options').open = true")
        page.wait("document.querySelectorAll('#ask-builder option').length >= 2")
        assert texts(page, "#ask-builder select:first-child option") == ["lang", "year"]
        page.value(
            """(() => { const [field, sign] = document.querySelectorAll('#ask-builder select');
            field.value = 'year'; sign.value = 'at least';
            document.querySelector('#ask-builder input').value = '1900';
            document.querySelector('#ask-builder button').click(); })()"""
        )
        assert page.value("document.getElementById('ask-filter').value") == "year>=1900"
        page.value("document.getElementById('question').value = 'Which ship sailed north?'")
        page.value("document.getElementById('ask').requestSubmit()")
        page.wait("document.querySelectorAll('#columns article').length === 2")
        assert fits(page)
        assert problems(page) == []
