"""The page at `/`, in a real browser: asked by keyboard, on a desk and on a phone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.page.assets import FILES
from tests.support.browser import Browser
from tests.support.browser_fixtures import texts
from tests.support.chat import Chat
from tests.support.service import running
from tests.unit.apps.server.conftest import QUESTION

pytestmark = pytest.mark.usefixtures("loopback")
SAID = "Fridtjof Nansen [1]. <img src=x onerror=alert(1)> Built by Archer [1]."
SHOWN = SAID.replace("Archer [1]", "Archer [?]")
"""No passage says what the second sentence says."""
TOKEN = "0123456789abcdef0123456789abcdef"


def ask(page: Browser, question: str) -> None:
    page.value("document.activeElement.blur()")
    page.press("/", 191, "/")  # the key that leads to the question
    assert page.value("document.activeElement.id") == "question"
    page.type(question)
    page.press("Enter", 13, "\r")


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
        top = page.value("document.querySelector('article').getBoundingClientRect().top")
        assert top < 450, "the first passage is in sight"
        assert re.fullmatch(r"relevance \d+ %", texts(page, "article .relevance")[0])
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
    page.value("document.getElementById('options').open = true")
    for mode in ("bm25", "walk"):
        page.value(f"document.querySelector('#modes input[value={mode}]').click()")
    ask(page, "Who is Colin Archer?")
    page.wait("document.querySelectorAll('#columns > div').length === 2")
    heads = texts(page, "#columns h3")
    assert heads[0].startswith("bm25:")
    assert heads[1].startswith("walk:")
    odd = next(text for text in texts(page, "article .text") if "odd" in text)
    assert "<script>alert(1)</script> ␛[31mred␛[0m \\u202eturned\\u202c \\u009b2J" in odd
    assert page.value("document.querySelectorAll('article script').length") == 0
    page.picture(pictures / "modes.png")
    page.value("document.querySelector('article h4 a').click()")
    page.wait("document.querySelectorAll('#reader-text .this').length === 1")
    page.picture(pictures / "reader.png")
    page.press("Escape", 27)
    page.wait("!document.getElementById('reader').open")
    page.value("document.getElementById('entity-part').open = true")
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
            page.wait(f"document.querySelector('article .text')?.textContent.includes({text[:12]!r})")
            first = "document.querySelector('article .text')"
            assert page.value(f"getComputedStyle({first}).direction") == direction
            assert page.value(f"{first}.textContent") == text
            assert set(texts(page, "article:first-of-type mark")) == marked
            assert page.value("getComputedStyle(document.getElementById('question')).direction") == direction
    assert not page.problems


NOTES = """# Tides

A **spring tide** is `higher` than [others](https://example.org/tides), see [[Moon|the moon]].

| port | range |
|------|------:|
| Brest | 6.1 m |

- first
  1. nested
- second

```python
# not a heading
tide = "<b>high</b>"
```

    indented

> quoted *words*

Title
-----
![a chart](chart.png) snake_case_name 2*3*4 \\# plain
"""


def test_passages_are_rendered_and_never_become_markup(tmp_path: Path, page: Browser) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "tides.md").write_text(NOTES, "utf-8")
    (tmp_path / "notes" / "tide.py").write_text("# A tide in code\ntide = 1\n", "utf-8")
    (tmp_path / "notes" / "tide.txt").write_text("# A tide\n  in plain   text\n", "utf-8")
    Index.build(tmp_path / "notes", tmp_path / "index", settings=Settings(threads=1)).close()
    with running(tmp_path / "index") as service:
        page.go(service.url)
        page.wait("document.getElementById('about').textContent.includes('3 documents')")
        ask(page, "spring tide port Brest")
        page.wait("document.querySelectorAll('article').length === 3")
        place = "own.querySelector('.copy').textContent"
        card = f"[...document.querySelectorAll('article')].find((own) => {place}.startsWith('%s'))"
        notes, code, plain = (card % name for name in ("tides.md", "tide.py", "tide.txt"))
        shown = page.value(f"{notes}.querySelector('.text').textContent")
        assert not {"##", "**", "|", "```", "[[", "]("} & {
            shown[at : at + n] for n in (1, 2, 3) for at in range(len(shown))
        }
        for part in ("snake_case_name 2*3*4 # plain", "the moon", "a chart", 'tide = "<b>high</b>"'):
            assert part in shown
        selectors = (
            "strong",
            "p code",
            "th",
            "td",
            "ul > li > ol > li",
            "pre",
            "blockquote em",
            "h5",
            "a",
            "img",
            "b",
        )
        counts = [page.value(f"{notes}.querySelectorAll('.text {own}').length") for own in selectors]
        assert counts == [1, 1, 2, 2, 1, 2, 1, 1, 2, 0, 0]  # the wiki link is a link
        assert {"spring", "tide", "Brest"} <= set(
            page.value(f"[...{notes}.querySelectorAll('mark')].map((own) => own.textContent)")
        )
        assert page.value(f"{code}.querySelector('.text pre').textContent") == "# A tide in code\ntide = 1"
        assert page.value(f"{plain}.querySelector('.text').textContent") == "# A tide\n  in plain   text"
        assert page.problems == []


def test_a_long_passage_is_folded_and_its_place_is_copied(tmp_path: Path, page: Browser) -> None:
    (tmp_path / "notes").mkdir()
    file = tmp_path / "notes" / "log.md"
    file.write_text(
        "# Log\n\n" + "\n\n".join(f"Day {day} at sea." for day in range(40)) + "\n\nLand ahoy.\n", "utf-8"
    )
    Index.build(tmp_path / "notes", tmp_path / "index", settings=Settings(threads=1)).close()
    with running(tmp_path / "index") as service:
        page.go(service.url)
        page.wait("document.getElementById('about').textContent.includes('1 document')")
        ask(page, "ahoy")
        page.wait("document.querySelector('.unfold') !== null")
        box = "document.querySelector('article .text')"
        assert page.value(f"{box}.clientHeight") < 220
        mark = page.value("document.querySelector('mark').getBoundingClientRect().bottom")
        assert mark < page.value(f"{box}.getBoundingClientRect().bottom"), "the marked word is in sight"
        page.value("document.querySelector('.unfold').click()")
        assert page.value(f"{box}.clientHeight") > 800
        page.value("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
        place = page.value("document.querySelector('article .copy').textContent")
        assert place.startswith("log.md:")
        page.value("document.querySelector('article .copy').click()")
        page.wait("!!window.copied")
        assert page.value("window.copied") == f"{file}:{place.rpartition(':')[2]}"
        assert page.problems == []


def test_a_document_opens_at_the_passage_and_can_be_read_on(tmp_path: Path, page: Browser) -> None:
    days = [
        f"## Day {day}\n\n" + f"Calm sea, wind from the north at noon of day{day}. " * 40 for day in range(60)
    ]
    text = "# Log\n\n" + "\n\n".join(days)
    Index.build([Document("log.md", text, "Log")], tmp_path / "index", settings=Settings(threads=1)).close()
    with running(tmp_path / "index") as service:
        page.go(service.url)
        page.wait("document.getElementById('about').textContent.includes('1 document')")
        ask(page, "day30")
        page.wait("document.querySelector('article')?.textContent.includes('day30')")
        page.value("document.querySelector('article h4 a').click()")
        page.wait("document.getElementById('reader').open")
        parts = "document.querySelectorAll('#reader-text > .text').length"
        page.wait(f"{parts} === 13")
        box = "document.querySelector('#reader-text .this').getBoundingClientRect()"
        assert page.value(f"{box}.top < innerHeight && {box}.bottom > 0"), "the passage is in sight"
        for button, expected in (("after", 33), ("before", 53)):
            page.value(f"document.getElementById('{button}').click()")
            page.wait(f"{parts} === {expected}")
        units = page.value(
            "[...document.querySelectorAll('#reader-text > .text')].map((own) => +own.dataset.unit)"
        )
        assert units == list(range(units[0], units[0] + 53))
        assert page.problems == []


def test_keyword_matches_while_one_types_and_late_replies_are_dropped(served: Any, page: Browser) -> None:
    page.go(served.url)
    page.wait("document.getElementById('about').textContent.includes('4 documents')")
    page.value(
        """(() => { const own = call; window.sent = [];
        window.call = call = async (path, body, ...more) => {
          if (body?.question) window.sent.push(body.question);
          const reply = await own(path, body, ...more);
          if (body?.question === 'Maud') await new Promise((done) => setTimeout(done, 800));
          return reply;
        }; })()"""
    )
    page.value("document.getElementById('question').focus()")
    page.type("Maud")
    page.wait("window.sent.includes('Maud')")
    page.value("document.getElementById('question').value = ''")
    page.type("Northwest Passage")
    page.wait("document.querySelector('article h4')?.textContent === '[1] Gjoa'")
    assert page.value("document.querySelector('#columns h3').title").startswith("bm25:")
    assert "Enter" in page.value("document.getElementById('status').textContent")
    page.value("new Promise((done) => setTimeout(done, 1000))")
    assert texts(page, "article h4")[0] == "[1] Gjoa", "the late reply for Maud is dropped"
    page.press("Enter", 13, "\r")
    page.wait("!document.querySelector('#columns h3').title.startsWith('bm25:')")
    assert page.problems == []


def test_it_wants_the_token_once(folder: Path, page: Browser) -> None:
    with running(folder, token=TOKEN) as service:
        page.go(service.url)
        page.wait("!document.getElementById('sign-in').hidden")
        page.value("document.getElementById('token').focus()")
        page.type(TOKEN)
        page.press("Enter", 13, "\r")
        page.wait("document.getElementById('about').textContent.includes('4 documents')")
        assert page.value("document.getElementById('sign-in').hidden")


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
