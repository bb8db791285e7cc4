"""Do the tour of the page in a real browser, and write docs/how-to/page.md with its pictures.

    python tools/make_tour.py

Needs Chromium. What the page says in the transcript is read from the page; `tests/docs/test_tour.py` does
the tour again and compares what it does.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.support.browser import Browser

ROOT = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "how-to" / "page.md"
PICTURES: Final = ROOT / "docs" / "pictures"
TOKEN: Final = "a-token-for-the-tour-of-the-page"  # noqa: S105 - of a service that ends with the tour
IDLE: Final = "running === null && !document.getElementById('follow').hidden"
STATES: Final = "[...document.querySelectorAll('#uploads tr')].map((row) => row.dataset.state)"
SENT: Final = f"{STATES}.length > 0 && {STATES}.every((state) => !['waiting', 'reading'].includes(state))"
HEAD: Final = """<!-- Written by `python tools/make_tour.py`. -->
# A tour of the page

`ketrag serve` shows a page at its address. This tour starts with an empty index, which the command creates.
Each line that begins with *The page* was read from the page.

    openssl rand -hex 16 > token && chmod 600 token
    ketrag serve -i tour --allow-write --token-file token      # http://127.0.0.1:8765

"""


class Tour:
    """Steps on the page, and their transcript."""

    def __init__(self, page: Browser, url: str, pictures: Path | None) -> None:
        self.page, self.url, self.pictures = page, url, pictures
        self.lines: list[str] = []

    def title(self, text: str) -> None:
        """Begin a part of the tour."""
        self.lines += ["", f"## {text}", ""]

    def do(self, text: str) -> None:
        """Write what somebody does."""
        self.lines.append(f"* {text}")

    def said(self, what: str, selector: str, most: int = 1) -> None:
        """Write what the page says at a selector."""
        texts = self.page.value(
            f"[...document.querySelectorAll({selector!r})].filter((own) => own.checkVisibility())"
            f".slice(0, {most}).map((own) => own.innerText.replace(/\\s+/g, ' ').trim())"
        )
        if not texts:
            raise LookupError(f"nothing is shown at {selector}")
        self.lines += [f"    * The page {what}: {text}" for text in texts]

    def look(self, width: int, *, dark: bool = False) -> None:
        """Go to a desk or to a phone, by day or by night."""
        self.page.look(width, 844 if width < 500 else 800, dark=dark, phone=width < 500)

    def picture(self, name: str, text: str) -> None:
        """Take a picture."""
        self.page.value("new Promise((done) => setTimeout(done, 400))")
        if self.pictures is not None:
            self.page.picture(self.pictures / f"tour-{name}.png")
        self.lines += ["", f"![{text}](../pictures/tour-{name}.png)", ""]

    def ask(self, question: str, box: str = "question") -> None:
        """Type a question and press Enter."""
        self.page.value(
            f"document.getElementById({box!r}).focus(); document.getElementById({box!r}).select()"
        )
        self.page.type(question)
        self.page.press("Enter", 13, "\r")
        self.page.wait(f"document.title.startsWith({question!r}) && {IDLE}")
        self.do(f"Type *{question}* and press Enter.")

    def click(self, selector: str) -> None:
        """Press a button or a link."""
        self.page.value(f"document.querySelector({selector!r}).click()")


def sign_in(tour: Tour) -> None:
    """Use the token."""
    tour.title("Sign in")
    tour.look(390)
    tour.page.go(tour.url)
    tour.page.wait("document.activeElement.id === 'token'")
    tour.do("Open the address.")
    tour.said("says", "#sign-in > p:first-of-type")
    tour.picture("sign-in", "The page that asks for a token, on a phone")
    tour.page.type(TOKEN)
    tour.page.press("Enter", 13, "\r")
    tour.page.wait("!document.getElementById('empty').hidden")
    tour.do("Paste the content of the file `token`, and press Enter.")
    tour.said("says", "#empty")


def add(tour: Tour, folder: Path) -> None:
    """Drop twenty files, then a folder, then files that cannot be added."""
    from tests.support.many_formats import FILES

    page = tour.page
    tour.title("Add files")
    tour.look(1280)
    tour.click("#empty a")
    page.wait("!document.getElementById('documents-write').hidden")
    paths = []
    for name, content in FILES.items():
        paths.append(folder / name)
        paths[-1].write_bytes(content)
    page.drop(".drop", *paths)
    page.wait(f"{SENT} && {STATES}.length === 20", 180)
    tour.do(
        "Press *Add files*, and drop twenty files: PDF, Excel, Word, mail, Markdown, web pages, a book, "
        "tables, calendars."
    )
    tour.said("says", "#uploads-about")
    tour.said("has a row for each", "#uploads tr", 4)
    tour.picture("files", "A row for each file")
    page.drop(".drop", ROOT / "examples" / "polar" / "articles")
    page.wait(f"{SENT} && {STATES}.length === 56", 300)
    tour.do("Drop the folder `examples/polar/articles`.")
    tour.said("says", "#uploads-about")
    (folder / "cut.pdf").write_bytes(b"%PDF-1.7 cut")
    page.drop(".drop", folder / "garden.md", folder / "cut.pdf")
    page.wait(f"{SENT} && {STATES}.length === 2", 60)
    tour.do("Drop a file again, and one that is broken.")
    tour.said("says", "#uploads tr", 2)


def ask(tour: Tour) -> None:
    """Ask, go on asking, and open a document."""
    page = tour.page
    tour.title("Ask")
    tour.look(1280, dark=True)
    tour.click("#to-ask")
    tour.ask("What is the price of the astrolabe?")
    tour.said("quotes", "#quotes blockquote")
    tour.ask("Who built the Fram?")
    tour.said("quotes", "#quotes blockquote")
    tour.said("says", "#columns h3")
    tour.said("folds", ".weaker > summary")
    tour.picture("answer", "Quotes first, then the passages")
    tour.title("Go on asking")
    tour.look(390, dark=True)
    tour.ask("And where was he born?", "follow-question")
    tour.said("says", "#taken")
    tour.said("quotes", "#quotes blockquote", 2)
    tour.picture("conversation", "A follow-up question on a phone, in dark mode")
    tour.title("Open, share, go back")
    tour.look(1280)
    tour.click("article h4 a")
    page.wait("document.querySelector('#reader-text .this') !== null")
    tour.do("Press the title of the first passage. The document opens there.")
    tour.picture("document", "A document, opened at a passage")
    link = page.value("location.href")
    tour.do(
        f"Copy the address: `{link.removeprefix(tour.url)}`. It shows the same to everybody with access to "
        "the index."
    )
    page.value("setTimeout(() => history.back())")
    page.wait("!document.getElementById('reader').open")
    page.value("setTimeout(() => history.back())")
    page.wait(f"document.title.startsWith('Who built the Fram?') && {IDLE}")
    tour.do("Press Back twice: the document is closed, then the first question is shown again.")
    tour.said("quotes", "#quotes blockquote")


def remove(tour: Tour) -> None:
    """Remove a document, and think again."""
    page = tour.page
    tour.title("Remove, and think again")
    page.value("location.hash = '#documents?containing=garden'")
    page.wait("document.querySelectorAll('#documents-table td.actions button').length === 1")
    tour.click("#documents-table td.actions button")
    page.wait("document.getElementById('confirm').open")
    tour.do("In *Documents*, find `garden`, and press *Remove*.")
    tour.said("asks", "#confirm-title")
    tour.said("says", "#confirm-text")
    tour.picture("remove", "The page asks before it removes a document")
    tour.click("#confirm .danger")
    page.wait("document.querySelector('#documents-status button') !== null")
    tour.do("Press *Remove*.")
    tour.said("says", "#documents-status")
    tour.click("#documents-status button")
    tour.do("Press *Undo*.")
    tour.said("says", "#documents-status")


def look_around(tour: Tour) -> None:
    """Themes, the graph and the index; then log out."""
    page = tour.page
    tour.title("Look around")
    tour.look(390)
    page.value("location.hash = '#themes'")
    page.wait("document.querySelectorAll('.theme').length > 1")
    tour.do("Open *Themes*: what the documents are about.")
    tour.said("says", "#themes-about")
    tour.picture("themes", "Themes on a phone")
    tour.look(1280, dark=True)
    page.value("location.hash = '#graph?graph=walk&around=roald+amundsen'")
    page.wait("!!(panel && panel.view && panel.view.nodes.seed.length)")
    page.wait("document.querySelector('.graph-text article') !== null")
    tour.do("Open *Graph*, and explore from *Roald Amundsen*.")
    tour.said("says", ".graph-side .about")
    tour.picture("graph", "The graph around a name")
    tour.click("#log-out")
    page.wait("document.readyState === 'complete' && document.activeElement.id === 'token'")
    tour.do("Press *Log out*: no text of a document stays in the page.")


@contextmanager
def service() -> Iterator[tuple[str, Path]]:
    """Serve an empty index that may be changed, and yield its address and a folder for files."""
    from tests.support.service import running

    from ketrag_fast import Index, Settings

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "files").mkdir()
        Index.build([], folder / "index", settings=Settings(threads=1)).close()
        with running(folder / "index", writable=True, token=TOKEN) as found:
            yield found.url, folder / "files"


def take(page: Browser, pictures: Path | None) -> str:
    """Do the tour and return the text of its page in the documentation."""
    with service() as (url, folder):
        tour = Tour(page, url, pictures)
        sign_in(tour)
        add(tour, folder)
        ask(tour)
        remove(tour)
        look_around(tour)
    lines = "\n".join(tour.lines).strip()
    while "\n\n\n" in lines:
        lines = lines.replace("\n\n\n", "\n\n")
    return f"{HEAD}{lines}\n"


def main() -> int:
    """Write the page and its pictures."""
    sys.path.insert(0, str(ROOT))
    from tests.support.browser import browser

    with tempfile.TemporaryDirectory() as name, browser(Path(name) / "profile") as page:
        PAGE.write_text(take(page, PICTURES), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
