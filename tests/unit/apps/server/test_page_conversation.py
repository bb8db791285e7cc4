"""Follow-up questions on the page: the thread, what was taken from it, links to it, and a new question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index, Settings
from tests.support.browser import Browser
from tests.support.browser_fixtures import fits, problems, texts
from tests.support.chat import Chat
from tests.support.service import running

pytestmark = pytest.mark.usefixtures("loopback")
ARTICLES = Path(__file__).resolve().parents[4] / "examples" / "polar" / "articles"
FIRST, SECOND, THIRD = "Who built the Fram?", "And where was he born?", "When did he die?"
SECOND_LINK = "#ask?q=Who+built+the+Fram%3F&q=And+where+was+he+born%3F"


@pytest.fixture(scope="module")
def polar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("polar") / "index"
    Index.build(ARTICLES, folder, settings=Settings(threads=1)).close()
    return folder


@pytest.fixture
def service(polar: Path) -> Iterator[Any]:
    with running(polar) as found:
        yield found


def open_page(page: Browser, url: str) -> None:
    page.go("about:blank")
    page.go(url)
    page.wait("document.getElementById('about').textContent.includes('56 documents')")


def answered(page: Browser, question: str) -> None:
    page.wait(f"document.title.startsWith({question!r}) && running === null")
    page.wait("!document.getElementById('follow').hidden")


def ask_first(page: Browser) -> None:
    page.value("document.getElementById('question').focus()")
    page.type(FIRST)
    page.press("Enter", 13, "\r")
    answered(page, FIRST)


def follow(page: Browser, question: str) -> None:
    page.value("document.getElementById('follow-question').focus()")
    page.type(question)
    page.press("Enter", 13, "\r")
    answered(page, question)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)], ids=str)
def test_follow_up_questions_and_a_new_one(
    service: Any, page: Browser, pictures: Path, width: int, dark: bool
) -> None:
    page.look(width, 844, dark=dark, phone=width < 500)
    open_page(page, service.url)
    ask_first(page)
    assert page.value("document.getElementById('taken').hidden")
    assert page.value("document.getElementById('thread').hidden")
    follow(page, SECOND)
    assert page.value("location.hash") == SECOND_LINK
    assert "Colin Archer" in texts(page, "#taken strong")[0]
    assert "Colin Archer was born in 1832 at Larvik" in " ".join(texts(page, "#quotes blockquote"))
    assert texts(page, "#thread a") == [FIRST]
    assert texts(page, "#thread h2") == [SECOND]
    assert page.value("document.getElementById('follow-question').value") == ""
    follow(page, THIRD)
    assert "1921" in " ".join(texts(page, "#quotes blockquote"))
    assert texts(page, "#thread a") == [FIRST, SECOND]
    assert fits(page)
    page.picture(pictures / f"conversation-{width}.png")
    page.value("document.querySelectorAll('#thread a')[1].click()")
    answered(page, SECOND)
    assert page.value("location.hash") == SECOND_LINK
    page.value("document.querySelector('#taken button').click()")
    answered(page, SECOND)
    assert page.value("location.hash") == "#ask?q=And+where+was+he+born%3F"
    assert page.value("document.getElementById('taken').hidden")
    page.value("document.getElementById('anew').click()")
    page.wait("location.hash === '#ask' && !document.getElementById('start').hidden")
    assert page.value("document.activeElement.id") == "question"
    assert page.value("document.getElementById('follow').hidden")
    assert problems(page) == []


def test_a_conversation_can_be_reloaded_and_shared(service: Any, page: Browser) -> None:
    open_page(page, service.url)
    ask_first(page)
    follow(page, SECOND)
    shown = page.value("document.getElementById('view-ask').textContent")
    page.value("location.reload()")
    page.wait("document.readyState === 'complete' && !!document.getElementById('taken')")
    answered(page, SECOND)
    assert page.value("document.getElementById('view-ask').textContent") == shown
    page.go("about:blank")
    page.go(f"{service.url}{SECOND_LINK}")  # as somebody else, who has the questions alone
    answered(page, SECOND)
    assert page.value("document.getElementById('view-ask').textContent") == shown
    follow(page, THIRD)
    page.value("history.back()")
    answered(page, SECOND)
    assert page.value("document.getElementById('view-ask').textContent") == shown
    assert problems(page) == []


def test_a_link_with_500_questions_reads_the_last_few(service: Any, page: Browser) -> None:
    link = "&".join(f"q=Who+built+the+ship+number+{k}%3F" for k in range(499))
    open_page(page, f"{service.url}#ask?{link}&q=Who+built+the+Fram%3F")
    answered(page, FIRST)
    assert len(texts(page, "#thread a")) == 10
    assert sum(url.endswith("/v1/ask") for url in page.requests) == 11


def test_what_was_answered_before_logging_out_is_not_in_the_history(polar: Path, page: Browser) -> None:
    token = "0123456789abcdef0123456789abcdef"
    with running(polar, token=token) as service:
        page.go("about:blank")
        page.go(service.url)
        for number in range(2):  # two users, one after the other, at the same browser
            page.wait("document.readyState === 'complete' && document.activeElement?.id === 'token'")
            page.type(token)
            page.press("Enter", 13, "\r")
            page.wait("document.getElementById('about').textContent.includes('56 documents')")
            if (
                number == 0
            ):  # the second user's page asks the questions of the address again, and keeps their turns
                assert page.value("keptTurns()") is None
            ask_first(page)
            follow(page, SECOND)
            follow(page, THIRD)
            assert page.value("keptTurns().length") == 2
            page.value("setTimeout(() => document.getElementById('log-out').click())")
            page.wait("document.readyState === 'complete' && document.activeElement?.id === 'token'")
            page.value("setTimeout(() => history.back())")
            page.wait("location.hash.includes('q=')")
            assert page.value("keptTurns()") is None
            page.value("document.body.dataset.old = 'yes'; setTimeout(() => location.reload())")
            page.wait("document.readyState === 'complete' && !document.body.dataset.old")


def test_a_question_that_stands_alone_takes_nothing(service: Any, page: Browser) -> None:
    open_page(page, service.url)
    ask_first(page)
    follow(page, "Who led the Belgica expedition?")
    assert page.value("document.getElementById('taken').hidden")
    assert "Gerlache" in " ".join(texts(page, "#quotes blockquote, article h4"))


def test_with_a_model_the_rewritten_question_is_shown(polar: Path, page: Browser) -> None:
    rewritten = "Where was Colin Archer born?"
    with (
        Chat(lambda said: rewritten if "rewrit" in str(said).lower() else "In Larvik [1].") as chat,
        running(polar, settings={"answer_llm": f"openai:mini@{chat.url}"}) as service,
    ):
        open_page(page, service.url)
        ask_first(page)
        follow(page, SECOND)
        assert f"Read as: “{rewritten}”" in page.value("document.getElementById('taken').textContent")
        calls = len(chat.requests)
        page.value("history.back()")
        answered(page, FIRST)
        assert len(chat.requests) == calls, "Back asks no model again"
        assert problems(page) == []
