"""The page for everybody: contrast, landmarks and names, the order of the focus, nothing cut on a phone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from tests.support.browser import Browser
from tests.support.browser_fixtures import fits, texts
from tests.support.service import running

pytestmark = pytest.mark.usefixtures("loopback")
LONG = "a-very-long-name-of-a-file-that-somebody-once-made-" * 3
TEXTS = {
    "fram.md": "# Fram\n\nThe Fram was built by Colin Archer.\n\n> A quote of [a link](https://example.org).",
    "maud.md": "# Maud\n\nThe Maud was built at Vollen by `Christian Jensen`.\n\n```\ncode = 1\n```",
    f"{LONG}.md": f"# {LONG}\n\nThe {LONG} was built by Colin Archer in Larvik.",
}
VIEWS = {
    "ask": "#ask",
    "answer": "#ask?q=Who+built+the+Fram%3F&q=And+where+is+he+from%3F",
    "themes": "#themes",
    "graph": "#graph",
    "documents": "#documents",
    "reader": "#documents?document=fram.md&at=0",
    "index": "#index",
}
READY = {
    "ask": "!document.getElementById('start').hidden",
    "answer": "document.querySelectorAll('#quotes blockquote').length > 0 && running === null",
    "themes": "document.getElementById('themes-about').textContent.includes('passage')",
    "graph": "!!(panel && panel.view)",
    "documents": "document.querySelectorAll('#documents-table tbody tr').length === 23",
    "reader": "document.querySelectorAll('#reader-text > .text').length > 0",
    "index": "document.querySelectorAll('#index-view table').length > 3",
}
UNFOLD = "document.querySelectorAll('details').forEach((own) => { own.open = true; })"
FAINT = """
(() => {
  const numbers = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number);
  const level = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * level(r) + 0.7152 * level(g) + 0.0722 * level(b);
  const behind = (node) => {
    for (let own = node; own; own = own.parentElement) {
      const colour = numbers(getComputedStyle(own).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  let measured = 0;
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !node.checkVisibility()) continue;
    if (node.closest('svg, script, noscript, :disabled')) continue;
    const style = getComputedStyle(node);
    const [a, b] = [light(numbers(style.color)), light(behind(node))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    measured += 1;
    if (ratio < 4.5) found.push([walk.currentNode.data.trim().slice(0, 40), node.className, ratio]);
  }
  return { measured, found };
})()
"""
CUT = """
[...document.querySelectorAll('body *')].filter((node) => {
  if (!node.checkVisibility() || !node.textContent.trim()) return false;
  if (node.closest('.unseen, .skip, svg, canvas, select, .graph-tools, .folded')) return false;
  const box = node.getBoundingClientRect();
  const style = getComputedStyle(node);
  const scrolls = (own) => own
    && (/(auto|scroll)/.test(getComputedStyle(own).overflowX) || scrolls(own.parentElement));
  const isOut = box.right > innerWidth + 1 && !scrolls(node.parentElement);
  const hides = /(hidden|clip)/.test(style.overflowX) && style.textOverflow !== 'ellipsis';
  const isCut = node.scrollWidth > node.clientWidth + 1 && hides;
  return isOut || isCut;
}).map((node) => node.outerHTML.slice(0, 160))
"""
FOCUSED = """
(() => {
  const own = document.activeElement;
  const name = own === document.body ? '' : own.id || own.textContent.slice(0, 20);
  return [name, own.getBoundingClientRect().top + scrollY, getComputedStyle(own).outlineStyle];
})()
"""
IDS = "[...document.querySelectorAll('[id]')].map((own) => own.id)"
NAMELESS = """
[...document.querySelectorAll('button, input, select, a[href], [tabindex], summary, dialog[open], section')]
  .filter((own) => own.checkVisibility() && own.tagName !== 'MAIN' && own.tagName !== 'ARTICLE')
  .filter((own) => !(own.textContent.trim() || own.getAttribute('aria-label') || own.labels?.length
    || own.getAttribute('aria-labelledby'))).map((own) => own.outerHTML.slice(0, 160))
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("accessible") / "index"
    documents = [Document(name, text, name.removesuffix(".md").title()) for name, text in TEXTS.items()]
    documents += [
        Document(f"{k}.md", f"Ship number{k} was built of oak in {1800 + k}.", f"Ship {k}") for k in range(20)
    ]
    Index.build(documents, folder, settings=Settings(threads=1, llm="heuristic")).close()
    with running(folder, writable=True) as found:
        yield found


def open_view(page: Browser, url: str, view: str) -> None:
    page.go("about:blank")
    page.go(f"{url}{VIEWS[view]}")
    page.wait("document.getElementById('about').textContent.includes('23 documents')")
    page.wait(READY[view])
    page.value(UNFOLD)
    page.value("new Promise((done) => setTimeout(done, 200))")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_text_has_contrast_and_none_is_cut_on_a_phone(
    service: Any, page: Browser, pictures: Path, view: str, dark: bool
) -> None:
    for width in (390, 1280):
        page.look(width, 844, dark=dark, phone=width < 500)
        open_view(page, service.url, view)
        measured = page.value(FAINT)
        assert measured["found"] == []
        assert measured["measured"] > 5
        assert page.value(CUT) == []
        assert fits(page)
        page.picture(pictures / f"view-{view}-{width}-{'dark' if dark else 'light'}.png")


@pytest.mark.parametrize("view", VIEWS)
def test_controls_and_regions_have_names(service: Any, page: Browser, view: str) -> None:
    open_view(page, service.url, view)
    assert page.value(NAMELESS) == []
    assert page.value("document.querySelectorAll('main, header > nav, header h1').length") == 3
    current = texts(page, "nav [aria-current=page]")
    assert current == [{"answer": "Ask", "reader": "Documents"}.get(view, view.title())]
    levels = page.value(
        "[...document.querySelectorAll('h1, h2, h3, h4')].filter((own) => own.checkVisibility())"
        ".map((own) => +own.tagName[1])"
    )
    assert levels[0] == 1 or view == "reader"
    ids = page.value(IDS)
    assert len(ids) == len(set(ids))


def start_at_the_top(page: Browser) -> None:
    page.value(
        "document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')"
    )


def test_the_keyboard_goes_through_an_answer_in_the_order_that_is_seen(service: Any, page: Browser) -> None:
    page.look(390, 844, phone=True)
    open_view(page, service.url, "answer")
    page.value("document.querySelectorAll('details').forEach((own) => { own.open = false; }); scrollTo(0, 0)")
    start_at_the_top(page)
    seen: list[str] = []
    tops: list[float] = []
    for _ in range(60):
        page.press("Tab", 9)
        name, top, outline = page.value(FOCUSED)
        if name == "" or (name == "skip" and seen):
            break
        assert outline == "solid", name
        if name != "skip":
            tops.append(top)
        seen.append(name)
    assert seen[0] == "skip"
    assert {"question", "go", "anew", "follow-question"} <= set(seen)
    back = [pair for pair in itertools.pairwise(tops) if pair[1] < pair[0] - 60]
    assert back == [], "the focus does not jump upwards"


def test_the_skip_link_leads_to_the_content(service: Any, page: Browser) -> None:
    open_view(page, service.url, "documents")
    start_at_the_top(page)
    page.press("Tab", 9)
    assert page.value("document.activeElement.id") == "skip"
    page.press("Enter", 13, "\r")
    assert page.value("document.activeElement.tagName") == "MAIN"
    assert page.value("location.hash") == "#documents"


def test_a_service_that_is_gone_is_said_in_words(tmp_path: Path, page: Browser) -> None:
    Index.build([Document("a", "The Fram sailed.")], tmp_path / "one", settings=Settings(threads=1)).close()
    with running(tmp_path / "one") as service:
        page.go("about:blank")
        page.go(service.url)
        page.wait("document.getElementById('about').textContent === '1 document'")
    page.value("askAnew('Who sailed?')")
    page.wait("document.getElementById('status').textContent.startsWith('The service does not answer.')")
    assert page.value("document.getElementById('status').className") == "bad"
