"""The view Themes of the page in a real browser: what it shows, and where it leads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings, export_graph
from tests.support.browser import Browser
from tests.support.browser_fixtures import fits, problems, texts
from tests.support.chat import Chat
from tests.support.service import running
from tests.unit.query.themes.test_describe import SHIPS, library, text_about

pytestmark = pytest.mark.usefixtures("loopback")
HOSTILE = "<img src=x onerror=alert(1)>\u202eeman"
WHOLE = "Which things were repaired again and again?"
TOP = "#themes-list > details"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("themes") / "index"
    odd = Document("odd.md", text_about(SHIPS, 999), HOSTILE, {"subject": "ships", "date": "2026-01-03"})
    Index.build([*library(40, date=True), odd], folder, settings=Settings(threads=1)).close()
    return folder


def open_themes(page: Browser, url: str, query: str = "") -> None:
    page.go("about:blank")
    page.go(f"{url}#themes{query}")
    page.wait(f"document.querySelectorAll('{TOP}').length > 0")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)], ids=str)
def test_themes_by_keyboard(folder: Path, page: Browser, pictures: Path, width: int, dark: bool) -> None:
    with Index.open(folder) as index:
        found = index.themes()
    with running(folder) as service:
        page.look(width, 900, dark=dark, phone=width < 500)
        open_themes(page, service.url)
        about = page.value("document.getElementById('themes-about').textContent")
        assert about.startswith(f"{len(found.themes)} themes in {found.passages} passages of 121 documents")
        shown = texts(page, f"{TOP} > summary .terms")
        assert shown == [f"{theme.id} {theme.label}" for theme in found.themes]
        assert page.value("document.querySelectorAll('.quote').length") == 0, "filled when it is unfolded"
        page.value(f"document.querySelector('{TOP} > summary').focus()")
        page.press("Enter", 13, "\r")
        page.wait("document.querySelector('.quote') !== null")
        first = found.themes[0]
        assert texts(page, "#theme-1 > .inside > .quote > p:first-child") == [
            one.text for one in first.quotes
        ]
        assert len(texts(page, "#theme-1 > .inside > figure .bar")) == len(first.over_time) == 12
        label = page.value("document.querySelector('.periods').getAttribute('aria-label')")
        assert label.startswith("share from 2026-01-03 to 2026-12-03: ")
        assert fits(page)
        page.picture(pictures / f"themes-{width}-{'dark' if dark else 'light'}.png")
        page.value("document.querySelector('.quote a').focus()")
        page.press("Enter", 13, "\r")
        page.wait("document.getElementById('reader').open")
        page.wait("document.querySelector('#reader-text .this mark') !== null")
        assert texts(page, "#reader-text .this mark")[0] == first.quotes[0].text
        page.press("Escape", 27)
        assert problems(page) == []
        assert all(url.startswith((service.url, "about:", "data:")) for url in page.requests)


def test_the_summary_of_a_theme_comes_before_its_quotes(tmp_path: Path, page: Browser) -> None:
    folder = tmp_path / "index"
    Index.build(library(10), folder, settings=Settings(threads=1)).close()
    said = json.dumps({"title": HOSTILE, "summary": "They were repaired in spring."})
    with running(folder) as service:
        open_themes(page, service.url, "?theme=1")
        page.wait("document.querySelector('#theme-1 .quote') !== null")
        assert texts(page, "#theme-1 .theme-summary") == [], "no language model has read the themes"
    with Chat(lambda _: said, listed=None) as chat:
        settings = Settings(answer_llm=f"openai:mini@{chat.url}", threads=1)
        with Index.open(folder, settings=settings) as index:
            assert index.summarise_themes().written > 0
    with running(folder) as service:
        open_themes(page, service.url, "?theme=1")
        page.wait("document.querySelector('#theme-1 .theme-summary') !== null")
        assert texts(page, "#theme-1 > .inside > .theme-summary") == ["They were repaired in spring."]
        first = "document.querySelector('#theme-1 > .inside').firstElementChild"
        with Index.open(folder) as index:
            summary = index.themes().themes[0].summary
        assert summary is not None
        shown = summary.title.replace("\u202e", "\\u202e")  # the page escapes marks of direction
        assert page.value(f"{first}.textContent") == shown
        assert page.value(f"{first}.nextElementSibling.className") == "theme-summary"
        assert page.value(f"{first}.nextElementSibling.nextElementSibling.className") == "quote"
        assert page.value("document.querySelectorAll('main img, main script').length") == 0
        assert problems(page) == []


def test_a_theme_leads_to_its_documents_and_back(folder: Path, page: Browser) -> None:
    with Index.open(folder) as index:
        theme = next(one for one in index.themes().themes if "odd.md" in documents_of(index, one.id))
    with running(folder) as service:
        open_themes(page, service.url, f"?theme={theme.id}")
        page.wait("document.querySelector('.inside > p a') !== null")
        page.value(f"document.querySelector('#theme-{theme.id} > .inside > p a').click()")
        page.wait("document.getElementById('documents-about').textContent.includes('of this theme')")
        about = page.value("document.getElementById('documents-about').textContent")
        assert about == f"{theme.document_count} documents of this theme"
        page.value("document.querySelector('#documents-table td a').click()")
        page.wait("document.getElementById('reader').open")
        page.press("Escape", 27)
        page.wait(f"location.hash === '#documents?theme={theme.id}'")
        page.value("document.getElementById('containing').value = 'eman'")
        page.value("document.getElementById('containing-form').requestSubmit()")
        page.wait("document.querySelectorAll('#documents-table tbody tr').length === 1")
        assert texts(page, "#documents-table td a") == [HOSTILE.replace("\u202e", "\\u202e")]
        page.value("document.querySelector('#documents-theme a').click()")
        page.wait("!document.getElementById('view-themes').hidden")
        page.value("document.getElementById('to-documents').click()")  # the view keeps its state
        page.wait("document.querySelectorAll('#documents-table tbody tr').length === 1")
        page.value("document.querySelector('#documents-theme a:last-child').click()")
        page.wait("document.getElementById('documents-about').textContent === '1 to 50 of 121 documents'")
        assert page.value("document.getElementById('documents-theme').hidden")
        assert page.value("document.querySelectorAll('main img, main script').length") == 0
        assert problems(page) == []


def documents_of(index: Index, theme: str) -> list[str]:
    return [one.document for one in index.inspect.documents(theme=theme)]


def test_a_filter_is_kept_in_the_address_and_in_the_links(folder: Path, page: Browser) -> None:
    with running(folder) as service:
        open_themes(page, service.url)
        page.value("document.getElementById('themes-filter').value = 'subject=bread'")
        page.value("document.getElementById('themes-filter').dispatchEvent(new Event('change'))")
        page.wait("document.getElementById('themes-about').textContent.includes('of 40 documents')")
        assert page.value("location.hash") == "#themes?filter=subject%3Dbread"
        page.value(f"document.querySelector('{TOP} > summary').click()")
        page.wait("document.querySelector('.inside > p a') !== null")
        page.value("document.querySelector('.inside > p a').click()")
        page.wait("document.getElementById('documents-about').textContent.includes('of this theme')")
        assert all(text.startswith("bread") for text in texts(page, "#documents-table td:first-child a"))
        page.go(f"{service.url}#themes?filter=colour%3Dred")
        page.wait("document.getElementById('themes-about').textContent.includes('colour')")
        assert texts(page, TOP) == []
        unknown = service.client().get("/v1/documents", params={"theme": "9.9"})
        assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_name")


def test_questions_about_the_whole_lead_to_a_survey(folder: Path, page: Browser, pictures: Path) -> None:
    with running(folder) as service:
        open_themes(page, service.url, "?filter=subject!=stars")
        page.value("document.getElementById('whole-question').focus()")
        page.type(WHOLE)
        page.press("Enter", 13, "\r")
        page.wait("document.querySelector('#columns h3')?.title.startsWith('survey: ')")
        assert page.value("location.hash").startswith("#ask?q=")
        assert texts(page, "#columns .theme-of"), "labels of themes are headings"
        assert page.value("document.getElementById('ask-filter').value") == "subject!=stars"
        page.picture(pictures / "survey.png")
        page.value("document.getElementById('ask-filter').value = document.getElementById('mode').value = ''")
        page.value(f"document.getElementById('question').value = {WHOLE!r}")
        page.value("document.getElementById('ask').requestSubmit()")
        page.wait("document.querySelector('#columns .small') !== null")
        assert page.value("document.querySelector('#columns h3').title").startswith("walk: ")
        page.value("document.querySelector('#columns .small').click()")
        page.wait("document.querySelector('#columns h3')?.title.startsWith('survey: ')")
        assert texts(page, "#columns .small") == []
        assert problems(page) == []


def test_an_index_without_themes_says_what_adds_them(tmp_path: Path, page: Browser) -> None:
    folder = tmp_path / "index"
    Index.build(library(2), folder, settings=Settings(threads=1, modes="text")).close()
    with running(folder) as service:
        page.go(f"{service.url}#themes")
        page.wait("document.getElementById('themes-about').textContent.includes('--modes auto,walk')")
        assert page.value("document.getElementById('whole').hidden")


def test_themes_without_a_server(folder: Path, page: Browser, tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.html", tmp_path / "part.html"
    with Index.open(folder) as index:
        export_graph(index, "html", whole)
        export_graph(index, "html", part, query=WHOLE)
        theme = index.themes().themes[0]
    page.go(f"{whole.as_uri()}#themes?theme=1")
    page.wait("document.querySelector('#theme-1 .quote') !== null")
    assert page.value("document.getElementById('whole').hidden")
    page.value("document.querySelector('.quote a').click()")
    page.wait("document.getElementById('reader').open")
    page.press("Escape", 27)
    page.wait("!document.getElementById('reader').open && !location.hash.includes('document=')")
    page.value("document.querySelector('.inside > p a').click()")
    page.wait("document.getElementById('documents-about').textContent.includes('of this theme')")
    assert len(texts(page, "#documents-table tbody tr")) == theme.document_count
    page.go("about:blank")
    page.go(part.as_uri())
    page.wait("document.getElementById('about').textContent.includes('in this file')")
    assert page.value("document.getElementById('to-themes').hidden"), "a part of an index has no themes"
    assert problems(page) == []
