"""The page at `/`, in a real browser: asked by keyboard, on a desk and on a phone."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.server.page import FILES
from tests.support.browser import Browser
from tests.support.chat import Chat
from tests.support.service import running
from tests.unit.apps.server.conftest import QUESTION

pytestmark = pytest.mark.usefixtures("loopback")
SAID = "Fridtjof Nansen [1]. <img src=x onerror=alert(1)> Built by Archer [1]."
SHOWN = SAID.replace("Archer [1]", "Archer [?]")
"""No passage says what the second sentence says."""
TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: `KETRAG_PICTURES` keeps them for people to look at."""
    kept = os.environ.get("KETRAG_PICTURES")
    return Path(kept) if kept else tmp_path_factory.mktemp("pictures")


@pytest.fixture
def page(window: Browser) -> Browser:
    window.problems.clear()
    window.requests.clear()
    window.look(1200, 900)
    return window


def ask(page: Browser, question: str) -> None:
    page.value("document.activeElement.blur()")
    page.press("/", 191, "/")  # the key that leads to the question
    assert page.value("document.activeElement.id") == "question"
    page.type(question)
    page.press("Enter", 13, "\r")


def texts(page: Browser, selector: str) -> list[str]:
    found: list[str] = page.value(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)")
    return found


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (1200, True), (390, False), (390, True)], ids=str)
def test_an_answer_streams_and_its_numbers_lead_to_passages(
    folder: Path, page: Browser, pictures: Path, width: int, dark: bool
) -> None:
    with (
        Chat(lambda _: SAID, pause=0.01) as chat,
        running(folder, settings={"answer_llm": f"openai:mini@{chat.url}"}) as service,
    ):
        page.look(width, 844 if width < 500 else 900, dark=dark, phone=width < 500)
        page.go(service.url)
        page.wait("document.getElementById('about').textContent.includes('4 documents')")
        assert page.value("document.activeElement.id") == "question"
        ask(page, QUESTION)
        page.wait("document.getElementById('answer').textContent.includes('Archer [?].')")
        page.wait("document.getElementById('stop').hidden")
        assert page.value("document.getElementById('answer').textContent").strip() == SHOWN
        assert "no passage supports" in page.value("document.querySelector('#answer abbr').title")
        assert page.value("document.querySelectorAll('#answer img').length") == 0
        assert texts(page, "article h4")[0] == "[1] Fram"
        assert texts(page, "article details.metadata li")[0] == "letters: 4"
        assert {"Fram", "polar", "basin"} <= set(texts(page, "article mark"))
        page.picture(pictures / f"answer-{width}-{'dark' if dark else 'light'}.png")
        page.value("document.querySelector('.cite').click()")
        assert page.value("document.activeElement.id") == "p0-1"
        wide = "document.documentElement.scrollWidth <= window.innerWidth"
        assert page.value(wide), "nothing is wider than the window"
        assert page.problems == []
        assert all(url.startswith(service.url) for url in page.requests if not url.startswith("about:"))


def test_modes_side_by_side_a_passage_read_on_and_a_name(served: Any, page: Browser, pictures: Path) -> None:
    page.go(served.url)
    page.wait("document.querySelectorAll('#modes input').length > 3")
    page.value("document.getElementById('compare').open = true")
    for mode in ("bm25", "walk"):
        page.value(f"document.querySelector('#modes input[value={mode}]').click()")
    ask(page, "Who is Colin Archer?")
    page.wait("document.querySelectorAll('#columns > div').length === 2")
    heads = texts(page, "#columns h3")
    assert heads[0].startswith("bm25:")
    assert heads[1].startswith("walk:")
    odd = next(text for text in texts(page, "article p.text") if "odd" in text)
    assert "<script>alert(1)</script> ␛[31mred␛[0m \\u202eturned\\u202c \\u009b2J" in odd
    assert page.value("document.querySelectorAll('article script').length") == 0
    page.picture(pictures / "modes.png")
    page.value("document.querySelector('article .row button').click()")
    page.wait("document.getElementById('reader').open")
    assert page.value("document.querySelectorAll('#reader-text p.this').length") == 1
    page.picture(pictures / "reader.png")
    page.press("Escape", 27)
    page.wait("!document.getElementById('reader').open")
    page.value("document.getElementById('entity').focus()")
    page.type("colin archer")
    page.press("Enter", 13, "\r")
    page.wait("document.querySelector('#entity-view h3')?.textContent.startsWith('COLIN ARCHER')")
    # Names keep their order in text from right to left.
    assert page.value("document.querySelectorAll('#entity-view h4 bdi').length") >= 2
    page.value("document.getElementById('entity-part').scrollIntoView()")
    page.picture(pictures / "entity.png")
    page.look(390, 844, phone=True)
    assert page.value("document.documentElement.scrollWidth <= window.innerWidth")
    page.picture(pictures / "entity-phone.png")
    assert page.problems == []


ARABIC = "القاهرة عاصمة مصر، وبيوتها القديمة من الحجر. يمر النيل في المدينة."
HEBREW = "ירושלים היא עיר ישנה, והבתים שלה בנויים מאבן."
CHINESE = "北京市是中国的首都。故宫位于北京市中心。"
THAI = "แม่น้ำเจ้าพระยาไหลผ่านเมืองหลวงของประเทศไทย"
GERMAN = "Die alten Häuser der Stadt sind aus Holz und nicht groß."


def test_passages_from_right_to_left_and_the_words_as_they_are_spelled(tmp_path: Path, page: Browser) -> None:
    documents = [
        Document("ar", ARABIC, "القاهرة"),
        Document("he", HEBREW, "ירושלים"),
        Document("zh", CHINESE, "北京"),
        Document("th", THAI, "เจ้าพระยา"),
        Document("de", GERMAN, "Holz"),
    ]
    Index.build(documents, tmp_path / "index", settings=Settings(threads=1)).close()
    with running(tmp_path / "index") as service:
        page.go(service.url)
        page.wait("document.getElementById('about').textContent.includes('5 documents')")
        for question, direction, marked, text in (
            ("بيوت المدينة", "rtl", {"وبيوتها", "المدينة"}, ARABIC),
            ("Welches Haus?", "ltr", {"Häuser"}, GERMAN),
            ("北京的故宫", "ltr", {"北京", "故宫"}, CHINESE),
            ("แม่น้ำ", "ltr", {"แม่น้ำ"}, THAI),
        ):
            page.value(f"document.getElementById('question').value = {question!r}")
            page.value("document.getElementById('question').form.requestSubmit()")
            page.wait(f"document.querySelector('article p.text')?.textContent.includes({text[:12]!r})")
            first = "document.querySelector('article p.text')"
            assert page.value(f"getComputedStyle({first}).direction") == direction
            assert page.value(f"{first}.textContent") == text
            assert set(texts(page, "article:first-of-type mark")) == marked
            assert page.value("getComputedStyle(document.getElementById('question')).direction") == direction
            where = page.value("document.querySelector('article .place').textContent")
            start, end = (int(part) for part in re.findall(r":(\d+)-(\d+)", where)[0])
            assert text[start:end] == text
    assert not page.problems


def test_it_wants_the_token_once(folder: Path, page: Browser) -> None:
    with running(folder, token=TOKEN) as service:
        page.go(service.url)
        page.wait("!document.getElementById('token-form').hidden")
        page.value("document.getElementById('token').focus()")
        page.type(TOKEN)
        page.press("Enter", 13, "\r")
        page.wait("document.getElementById('about').textContent.includes('4 documents')")
        assert page.value("document.getElementById('token-form').hidden")


def test_what_it_may_do(client: Any) -> None:
    for path in FILES:
        reply = client.get(path)
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "http://" not in reply.text
        assert "https://" not in reply.text
    for path in FILES:
        assert "innerHTML" not in client.get(path).text
