"""Take the pictures of the page in docs/pictures: `python tools/make_pictures.py`. Needs Chromium.

The page of a service over examples/polar is opened in a real browser, on a desk and on a phone.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ketrag_fast import Index, Settings

if TYPE_CHECKING:
    from tests.support.browser import Browser

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
QUESTION = "Who built the ship that Otto Sverdrup captained?"


def rest(page: Browser) -> None:
    """Wait until everything is drawn, with a picture of a graph in sight."""
    page.value("document.querySelector('.graph-parts')?.scrollIntoView({ block: 'end' })")
    page.value("new Promise((done) => setTimeout(done, 400))")


def take(page: Browser, url: str) -> None:
    """Take each picture."""
    page.look(900, 560)
    page.go(f"{url}#graph?graph=skeleton")
    page.wait("!!(panel && panel.view)")
    rest(page)
    page.picture(PICTURES / "overview.png")
    page.look(1000, 640)
    page.value("panel.go({ graph: 'walk', around: ['fram'] })")
    page.wait("panel.view.nodes.title[0] === 'fram'")
    page.wait("document.querySelector('.graph-text article') !== null")
    rest(page)
    page.picture(PICTURES / "graph.png")
    page.look(1000, 640, dark=True)
    page.value("panel.go({ graph: 'skeleton', around: ['louise boyd'], to: 'ernest shackleton' })")
    page.wait("panel.view.path.length > 1")
    rest(page)
    page.picture(PICTURES / "path-between-names.png")
    page.look(1000, 640)
    page.go("about:blank")
    page.go(url)
    page.wait("document.getElementById('about').textContent.includes('documents')")
    page.value(f"document.getElementById('question').value = {QUESTION!r}")
    page.value("document.getElementById('budget').value = '600'")
    page.value("document.getElementById('ask').requestSubmit()")
    page.wait("!document.getElementById('path-part').hidden && running === null")
    page.value("document.getElementById('passages-part').scrollIntoView()")
    rest(page)
    page.picture(PICTURES / "passages.png")
    page.value("document.getElementById('path-part').open = true")
    page.value("document.querySelector('#path g.bridge').focus()")
    page.value("document.getElementById('path-part').scrollIntoView({ block: 'end' })")
    rest(page)
    page.picture(PICTURES / "ask.png")
    page.go(f"{url}#themes?theme=1")
    page.wait("document.querySelector('.quote') !== null")
    page.value("document.activeElement.blur(); scrollTo(0, 0)")
    rest(page)
    page.picture(PICTURES / "themes.png")
    for view in ("documents", "index"):
        page.value(f"document.getElementById('to-{view}').click(); scrollTo(0, 0)")
        page.wait(f"document.querySelectorAll('#view-{view} td').length > 4")
        page.value("document.querySelectorAll('.figures').forEach((own) => { own.open = true; })")
        rest(page)
        page.picture(PICTURES / f"{view}.png")
    page.look(400, 800, dark=True, phone=True)
    page.go("about:blank")
    page.go(f"{url}#graph?graph=walk&around=fram")
    page.wait("document.querySelector('.graph-text article') !== null")
    rest(page)
    page.value("scrollTo(0, 0)")
    page.picture(PICTURES / "phone.png")


def main() -> int:
    """Build the index, serve it, and take the pictures; 1 if the page complained."""
    sys.path.insert(0, str(ROOT))
    from tests.support.browser import browser
    from tests.support.service import running

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "polar"
        settings = Settings(llm="heuristic", threads=1)
        Index.build(ROOT / "examples" / "polar" / "articles", folder, settings=settings).close()
        with running(folder) as service, browser(Path(name) / "profile") as page:
            take(page, service.url)
            sys.stderr.write("".join(f"{line}\n" for line in page.problems))
            return 1 if page.problems else 0


if __name__ == "__main__":
    sys.exit(main())
