"""The address of the page has the view, question, filters and document; quotes, weaker passages and notes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from tests.support.browser import Browser
from tests.support.browser_fixtures import fits, problems, texts
from tests.support.service import running

pytestmark = pytest.mark.usefixtures("loopback")
SHIPS = [
    ("Fram", "The Fram was built by Colin Archer in Larvik. She drifted across the polar basin."),
    ("Maud", "The Maud was designed by Christian Jensen and built at Vollen."),
    ("Gjøa", "The Gjøa was built in Rosendal and sailed the Northwest Passage."),
]
FILLERS = [(f"Ship {k}", f"Ship number{k} was built of oak in the year {1800 + k}.") for k in range(60)]
LOG = "# Log\n\n" + "\n\n".join(
    f"## Day {day}\n\n" + f"Calm sea on day{day}, and a light wind. " * 30 for day in range(30)
)
ANSWER = "document.querySelectorAll('#quotes blockquote').length"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library") / "index"
    documents = [
        Document(f"{title}.md", text, title, {"number": k}) for k, (title, text) in enumerate(SHIPS + FILLERS)
    ]
    documents.append(Document("log.md", LOG, "Log", {"number": 1000}))
    Index.build(documents, folder, settings=Settings(threads=1)).close()
    return folder


@pytest.fixture
def service(library: Path) -> Iterator[Any]:
    with running(library) as found:
        yield found


def open_page(page: Browser, url: str) -> None:
    page.go("about:blank")
    page.go(url)
    page.wait("document.getElementById('about').textContent.includes('64 documents')")


def ask(page: Browser, question: str) -> None:
    page.wait("document.getElementById('about').textContent !== ''")
    page.value(f"document.getElementById('question').value = {question!r}")
    page.value("document.getElementById('ask').requestSubmit()")
    page.wait(f"location.hash.startsWith('#ask?q=') && {ANSWER} > 0")


def back(page: Browser) -> None:
    page.value("history.back()")


def heading(page: Browser) -> str:
    page.wait("document.querySelector('article h4') !== null")
    return texts(page, "article h4")[0]


def test_back_forward_and_reload_show_the_question_again(service: Any, page: Browser) -> None:
    open_page(page, service.url)
    ask(page, "Who built the Fram?")
    assert heading(page) == "[1] Fram"
    ask(page, "Who designed the Maud?")
    page.wait("document.querySelector('article h4').textContent === '[1] Maud'")
    before = page.value("document.getElementById('columns').textContent")
    asked = [url for url in page.requests if url.endswith("/v1/ask")]
    back(page)
    page.wait("document.querySelector('article h4').textContent === '[1] Fram'")
    assert page.value("document.getElementById('question').value") == "Who built the Fram?"
    assert page.value("document.title") == "Who built the Fram? · ketrag"
    page.value("history.forward()")
    page.wait("document.querySelector('article h4').textContent === '[1] Maud'")
    assert page.value("document.getElementById('columns').textContent") == before
    assert [url for url in page.requests if url.endswith("/v1/ask")] == asked, "replies are kept"
    page.value("location.reload()")
    page.wait("document.readyState === 'complete' && document.querySelector('article h4') !== null")
    assert heading(page) == "[1] Maud"
    back(page)
    back(page)
    page.wait("!document.getElementById('start').hidden")
    assert page.value("document.getElementById('question').value") == ""
    assert page.value("document.getElementById('passages-part').hidden")
    assert problems(page) == []


def test_a_link_has_question_filter_mode_and_document(service: Any, page: Browser) -> None:
    open_page(page, service.url)
    page.value("document.getElementById('ask-filter').value = 'number<2'")
    page.value("document.getElementById('mode').value = 'bm25'")
    page.value("document.getElementById('budget').value = '500'")
    ask(page, "Which ship was built in Larvik, or at Vollen?")
    page.wait("document.querySelectorAll('article').length === 2")
    page.value("document.querySelectorAll('article h4 a')[1].click()")
    page.wait("document.querySelector('#reader-text .this') !== null")
    link = page.value("location.href")
    title = page.value("document.getElementById('reader-title').textContent")
    assert title in ("Fram", "Maud")
    open_page(page, link)  # as somebody else who was sent the link
    page.wait("document.querySelector('#reader-text .this') !== null")
    assert page.value("document.getElementById('reader-title').textContent") == title
    page.press("Escape", 27)
    page.wait("!document.getElementById('reader').open && !location.hash.includes('document=')")
    page.wait("document.querySelectorAll('article').length === 2")
    values = {name: page.value(f"document.getElementById('{name}').value") for name in ("mode", "budget")}
    assert values == {"mode": "bm25", "budget": "500"}
    assert page.value("document.getElementById('ask-filter').value") == "number<2"
    assert problems(page) == []


def test_back_closes_the_document_and_forward_opens_it(service: Any, page: Browser) -> None:
    open_page(page, f"{service.url}#documents?containing=Log")
    page.wait("document.querySelectorAll('#documents-table td a').length === 1")
    page.value("document.querySelector('#documents-table td a').click()")
    page.wait("document.querySelectorAll('#reader-text > .text').length > 0")
    assert page.value("location.hash") == "#documents?containing=Log&document=log.md"
    back(page)
    page.wait("!document.getElementById('reader').open")
    assert page.value("location.hash") == "#documents?containing=Log"
    page.value("history.forward()")
    page.wait("document.querySelectorAll('#reader-text > .text').length > 0")
    page.value("document.getElementById('close').click()")
    page.wait("location.hash === '#documents?containing=Log'")
    assert problems(page) == []


def test_a_link_to_a_passage_holds_after_the_index_has_changed(tmp_path: Path, page: Browser) -> None:
    folder = tmp_path / "index"
    Index.build([Document("log.md", LOG, "Log")], folder, settings=Settings(threads=1)).close()
    with running(folder) as service:
        page.go(service.url)
        ask(page, "day17")
        page.value("document.querySelector('article h4 a').click()")
        page.wait("document.querySelector('#reader-text .this')?.textContent.includes('day17')")
        link = page.value("location.href")
        with Index.open(folder) as index:  # every passage gets another number
            index.update(add=[Document("a.md", "An earlier document about day17 at sea.", "A")])
        page.go("about:blank")
        page.go(link)
        page.wait("document.querySelector('#reader-text .this')?.textContent.includes('day17')")
        page.value("location.hash = '#documents?document=gone.md'")
        page.wait("document.getElementById('reader-place').textContent.includes('no document')")
        assert [line for line in problems(page) if "status of 404" not in line] == []


def test_views_keep_their_state_and_the_list_its_page_and_order(service: Any, page: Browser) -> None:
    open_page(page, f"{service.url}#documents?sort=-title&first=50")
    page.wait("document.querySelectorAll('#documents-table tbody tr').length === 14")
    page.value("document.getElementById('earlier').click()")
    page.wait("document.querySelectorAll('#documents-table tbody tr').length === 50")
    assert page.value("location.hash") == "#documents?sort=-title"
    page.value("document.getElementById('to-ask').click()")
    ask(page, "Who built the Fram?")
    page.value("document.getElementById('to-documents').click()")
    page.wait("location.hash === '#documents?sort=-title'")
    page.value("document.getElementById('to-ask').click()")
    page.wait("location.hash === '#ask?q=Who+built+the+Fram%3F'")
    assert heading(page) == "[1] Fram"
    page.value("document.querySelector('h1 a').click()")
    page.wait("location.hash === '#ask' && !document.getElementById('start').hidden")
    assert problems(page) == []


def test_pictures_of_the_graph_are_steps_back(service: Any, page: Browser) -> None:
    open_page(page, f"{service.url}#graph")
    page.wait("!!(panel && panel.view)")
    page.value("panel.search.value = 'colin archer'; panel.form.requestSubmit()")
    page.wait("location.hash.includes('around=colin+archer')")
    page.value("panel.expand(panel.neighbours(panel.selected)[0])")
    page.wait("location.hash.split('around=').length === 3")
    assert "%23" not in page.value("location.hash"), "names, since numbers change with the index"
    back(page)
    page.wait("panel.view.nodes.seed.length === 1")
    assert page.value("panel.view.nodes.title[panel.view.nodes.seed[0]]") == "colin archer"
    back(page)
    page.wait("location.hash === '#graph' && panel.view.nodes.seed.length === 0")
    assert problems(page) == []


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)], ids=str)
def test_quotes_are_first_and_weaker_passages_folded(
    service: Any, page: Browser, pictures: Path, width: int, dark: bool
) -> None:
    page.look(width, 844, dark=dark, phone=width < 500)
    open_page(page, service.url)
    ask(page, "Who built the Fram?")
    assert "Colin Archer" in texts(page, "#quotes blockquote p")[0]
    top = "document.querySelector('%s').getBoundingClientRect().top"
    assert page.value(f"{top % '#quotes'} < {top % '#columns'}")
    page.wait("document.querySelector('.weaker') !== null")
    assert not page.value("document.querySelector('.weaker').open")
    folded = page.value("document.querySelectorAll('.weaker article').length")
    assert texts(page, ".weaker > summary") == [f"{folded} weaker passages"]
    shown = page.value("document.querySelectorAll('#columns > div > article').length")
    places = texts(page, "article .copy")
    documents = len({place.split(":")[0] for place in places})
    assert texts(page, "#columns h3") == [f"{shown + folded} passages from {documents} documents"]
    assert shown >= 3
    page.picture(pictures / f"quotes-{width}.png")
    weak = page.value("+document.querySelector('.weaker article').id.split('-')[1]")
    page.value(f"goToPassage({weak})")
    assert page.value("document.querySelector('.weaker').open")
    assert page.value("document.activeElement.id") == f"p0-{weak}"
    page.value("document.querySelector('#quotes .cite').click()")
    assert page.value("document.activeElement.tagName") == "ARTICLE"
    assert fits(page)
    assert problems(page) == []


def test_what_was_not_found_is_said_in_words(service: Any, page: Browser) -> None:
    open_page(page, f"{service.url}#ask?q=zanzibarian+xylophones")
    page.wait("document.querySelector('#columns h3') !== null")
    assert texts(page, "#columns h3")[0].startswith("Nothing in the documents matches these words.")
    assert "“zanzibarian”" in texts(page, "#columns .note")[0]
    page.value("location.hash = '#ask?q=ship&filter=number%3E5000'")
    page.wait(
        "document.querySelector('#columns h3')?.textContent.startsWith('No document matches the filter')"
    )
    page.value("location.hash = '#ask?q=ship&filter=number%3E%3E5000'")
    page.wait("document.getElementById('status').className === 'bad'")
    assert page.value("document.getElementById('status').textContent").endswith(".")
    assert [line for line in problems(page) if "status of 400" not in line] == []


def test_an_empty_index_says_what_to_do_first(tmp_path: Path, page: Browser) -> None:
    Index.build([], tmp_path / "none", settings=Settings(threads=1)).close()
    for writable, said in ((False, "ketrag index FOLDER"), (True, "Add files")):
        with running(tmp_path / "none", writable=writable) as service:
            page.go("about:blank")
            page.go(service.url)
            page.wait(f"document.getElementById('empty').textContent.includes({said!r})")
            page.value("document.getElementById('to-documents').click()")
            page.wait("document.getElementById('documents-about').textContent.includes('no documents yet')")
            assert page.value("document.getElementById('documents-write').hidden") == (not writable)
            page.value("document.getElementById('to-themes').click()")
            page.wait("document.getElementById('themes-about').textContent.length > 20")
            assert problems(page) == []


def test_wiki_links_lead_from_note_to_note(tmp_path: Path, page: Browser) -> None:
    notes = tmp_path / "notes"
    (notes / "ships").mkdir(parents=True)
    (notes / "voyage.md").write_text(
        "# Voyage\n\nWe sailed on [[Fram|our ship]], past [[nowhere]].\n", "utf-8"
    )
    (notes / "ships" / "Fram.md").write_text("# The old ship\n\nBack to [[voyage#Start]].\n", "utf-8")
    Index.build(notes, tmp_path / "index", settings=Settings(threads=1)).close()
    title = "document.getElementById('reader-title').textContent"
    with running(tmp_path / "index") as service:
        page.go("about:blank")
        page.go(f"{service.url}#documents?document=voyage.md")
        page.wait("document.querySelectorAll('#reader-text a').length === 2")
        assert texts(page, "#reader-text a") == ["our ship", "nowhere"]
        page.value("document.querySelector('#reader-text a').click()")
        page.wait(f"{title} === 'The old ship'")
        page.wait("location.hash.includes('document=ships%2FFram.md')")
        page.value("document.querySelector('#reader-text a').click()")
        page.wait(f"{title} === 'Voyage'")
        back(page)
        page.wait(f"{title} === 'The old ship'")
        back(page)
        page.wait(f"{title} === 'Voyage'")
        page.value("document.querySelectorAll('#reader-text a')[1].click()")
        page.wait("location.hash === '#documents?containing=nowhere'")
        page.wait("!document.getElementById('reader').open")
        assert problems(page) == []


def test_the_address_names_the_index_if_there_are_several(
    library: Path, tmp_path: Path, page: Browser
) -> None:
    documents = [Document("other.md", "The Vega was built at Bremerhaven.", "Vega")]
    Index.build(documents, tmp_path / "index", settings=Settings(threads=1)).close()
    both = {"ships": str(library), "other": str(tmp_path / "index")}
    with running(library, indexes=both) as service:
        open_page(page, service.url)
        ask(page, "Who built the Fram?")
        assert "index=ships" in page.value("location.hash")
        page.value("document.getElementById('index').value = 'other'")
        page.value("document.getElementById('index').dispatchEvent(new Event('change'))")
        page.wait("location.hash.includes('index=other') && running === null")
        page.wait("document.getElementById('about').textContent === '1 document'")
        page.value("location.reload()")
        page.wait("document.readyState === 'complete' && document.getElementById('index')?.value === 'other'")
        back(page)
        page.wait("document.getElementById('index').value === 'ships'")
        page.wait("document.querySelector('article h4')?.textContent === '[1] Fram'")
        assert problems(page) == []
