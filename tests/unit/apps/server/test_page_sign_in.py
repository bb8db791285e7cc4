"""The page that asks for a token, what somebody may do, and logging out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.browser import Browser
from tests.support.browser_fixtures import fits, problems, texts
from tests.support.service import running
from tests.unit.apps.server.conftest import QUESTION

pytestmark = pytest.mark.usefixtures("loopback")
TOKEN = "0123456789abcdef0123456789abcdef"
LINK = "#ask?q=Who+sailed+the+Fram+across+the+polar+basin%3F"
SHOWN = "[...document.querySelectorAll('main, nav, #about')].filter((own) => own.offsetParent).length"
KEEP = "[...Object.values(localStorage), document.cookie, location.href, document.title].join()"


def sign_in(page: Browser, token: str) -> None:
    page.wait("document.activeElement.id === 'token'")
    page.type(token)
    page.press("Enter", 13, "\r")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)], ids=str)
def test_a_link_leads_through_the_token_to_its_answer(
    folder: Path, page: Browser, pictures: Path, width: int, dark: bool
) -> None:
    with running(folder, token=TOKEN) as service:
        page.look(width, 844, dark=dark, phone=width < 500)
        page.go("about:blank")
        page.go(service.url)
        page.value("sessionStorage.clear()")
        page.go("about:blank")
        page.go(f"{service.url}{LINK}")
        page.wait("!document.getElementById('sign-in').hidden")
        assert page.value(SHOWN) == 0, "nothing else is shown"
        assert fits(page)
        page.picture(pictures / f"sign-in-{width}.png")
        sign_in(page, "wrong")
        page.wait("document.getElementById('sign-in-problem').textContent.startsWith('This token is not')")
        assert page.value("sessionStorage.length") == 0
        sign_in(page, TOKEN)
        page.wait("document.querySelector('article h4')?.textContent === '[1] Fram'")
        assert page.value("document.getElementById('question').value") == QUESTION
        assert page.value("sessionStorage.getItem('token')") == TOKEN
        assert TOKEN not in page.value(KEEP)
        assert not any(TOKEN in url for url in page.requests)
        page.value("document.getElementById('log-out').click()")
        page.wait("document.readyState === 'complete' && document.activeElement.id === 'token'")
        assert page.value("sessionStorage.length") == 0
        assert "Nansen" not in page.value("document.body.textContent")
        assert [line for line in problems(page) if "status of 401" not in line] == []


def test_a_token_that_is_withdrawn_locks_the_page(folder: Path, page: Browser) -> None:
    with running(folder, token=TOKEN) as service:
        page.go("about:blank")
        page.go(service.url)
        page.wait("!document.getElementById('sign-in').hidden")
        page.value(f"sessionStorage.setItem('token', {TOKEN!r})")
        page.value("location.reload()")
        page.wait("document.getElementById('about')?.textContent.includes('4 documents')")
        page.value("sessionStorage.setItem('token', 'withdrawn')")
        page.value("document.getElementById('to-documents').click()")
        page.wait("!document.getElementById('sign-in').hidden")
        assert page.value(SHOWN) == 0
        sign_in(page, TOKEN)
        page.wait("document.querySelectorAll('#documents-table tbody tr').length === 4")
        assert page.value("location.hash") == "#documents"


HELD = """
(() => { const own = window.fetch; window.fetch = async (path, options) => {
  const reply = await own(path, options);
  await new Promise((done) => { window.release = done; });
  window.fetch = own;
  return reply;
}; window.late = call('/v1/indexes').then(() => 'read', (error) => error.message); })()
"""


@pytest.mark.parametrize("accepted", [True, False])
def test_a_late_reply_to_another_token_changes_nothing(folder: Path, page: Browser, accepted: bool) -> None:
    with running(folder, token=TOKEN) as service:
        page.go("about:blank")
        page.go(service.url)
        sign_in(page, TOKEN)
        page.wait("document.getElementById('about').textContent.includes('4 documents')")
        if not accepted:
            page.value("sessionStorage.setItem('token', 'withdrawn')")
        page.value(HELD)
        page.wait("window.release !== undefined")
        if accepted:
            page.value("showSignIn('')")
        else:
            page.value(f"sessionStorage.setItem('token', {TOKEN!r})")
        page.value("window.release()")
        page.wait("window.late.then((said) => { window.said = said; return true; })")
        assert (page.value("window.said") == "read") == accepted
        assert page.value("document.getElementById('sign-in').hidden") == (not accepted)
        assert page.value("document.body.classList.contains('locked')") == accepted


ABILITIES = """
(() => { const own = call; call = async (path, ...more) => {
  const reply = await own(path, ...more);
  if (path !== '/v1/indexes') return reply;
  const said = { ...JSON.parse(await reply.text()), user: 'ada', may: %s };
  return { text: async () => JSON.stringify(said) };
}; return begin(); })()
"""


@pytest.mark.parametrize(
    ("abilities", "adds", "removes"),
    [(["read"], False, False), (["read", "add"], True, False), (["read", "add", "remove"], True, True)],
)
def test_the_page_hides_what_a_user_may_not_do(
    folder: Path, page: Browser, abilities: list[str], adds: bool, removes: bool
) -> None:
    with running(folder, writable=True) as service:
        page.go("about:blank")
        page.go(f"{service.url}#documents")
        page.wait("document.querySelectorAll('#documents-table tbody tr').length === 4")
        page.value(ABILITIES % json.dumps(abilities))
        page.value("delete loaded.documents; showView()")
        page.wait(f"document.querySelectorAll('#documents-table td button').length === {4 * removes}")
        assert page.value("document.getElementById('documents-write').hidden") == (not adds)
        assert texts(page, "#user") == ["ada"]
