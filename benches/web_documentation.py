"""Web pages of real documentation: time of reading, unchanged files, and links between pages that become citations.

    python benches/web_documentation.py --fetch     # first download and unpack the packages with apt-get and dpkg
    python benches/web_documentation.py

The pages are those of Debian's packages of the documentation of Python and Git, of Debian's policy, reference and
developer's reference. The true links are read by `html.parser` of Python: all that lead from one page to another and are
not in the navigation that the generators of these pages (Sphinx, AsciiDoc, DocBook) put around the text.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import numpy as np

from common import ROOT, WORK, arguments, median, publish, target
from common import result_table as table
from ketrag_fast import Index
from ketrag_fast.kernels.text import unpack
from ketrag_fast.systems.shared.rows import documents_of, strings
from technical import fetch

DOCS = ROOT / "target" / "benches" / "web-documentation"
_ANY = ("**/*.html",)
PACKAGES: list[dict[str, Any]] = [
    {"name": name, "version": version, "folder": folder, "files": files, "leave_out": []}
    for name, version, folder, files in (
        ("python3.11-doc", "3.11.2-6+deb12u9", "usr/share/doc/python3.11/html", _ANY),
        ("git-doc", "1:2.39.5-0+deb12u3", "usr/share/doc/git-doc", _ANY),
        ("debian-policy", "4.6.2.0", "usr/share/doc/debian-policy", _ANY),
        ("debian-reference-en", "2.100", "usr/share/debian-reference", _ANY),
        ("developers-reference", "12.18", "usr/share/developers-reference", _ANY),
    )
]
_AROUND = frozenset(("related", "sphinxsidebar", "navheader", "navfooter", "footer", "mobile-nav"))
_ELEMENTS = frozenset(("nav", "header", "footer"))
_EMPTY = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source")
)
Pairs = set[tuple[str, str]]


class PageLinks(HTMLParser):
    """The targets of a page's links outside of the navigation."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self._skipped, self._depth = "", 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Enter an element."""
        own = dict(attrs)
        if self._skipped:
            self._depth += tag == self._skipped
        elif tag in _ELEMENTS or not _AROUND.isdisjoint((own.get("class") or "").split()):
            if tag not in _EMPTY:
                self._skipped, self._depth = tag, 1
        elif tag == "a" and own.get("href"):
            self.targets.add(str(own["href"]).strip())

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        if tag == self._skipped:
            self._depth -= 1
            self._skipped = self._skipped if self._depth else ""


def resolved(page: str, link: str) -> str | None:
    """Return the path below the source that a link leads to; None if it leaves the site or the source."""
    path = unquote(link.partition("#")[0].partition("?")[0])
    if not path or ":" in path.partition("/")[0] or path.startswith("/"):
        return None
    parts: list[str] = list(PurePosixPath(page).parent.parts)
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def true_links(folder: Path, pages: list[str]) -> tuple[Pairs, Pairs]:
    """Return the pairs of different pages that are linked, and the links of pages to files that are missing."""
    known, pairs, lost = set(pages), set[tuple[str, str]](), set[tuple[str, str]]()
    for page in pages:
        links = PageLinks()
        links.feed((folder / page).read_text("utf-8", "replace"))
        for link in links.targets:
            found = resolved(page, link)
            if found is None or found == page:
                continue
            if found in known:
                pairs.add((page, found))
            elif found.endswith((".html", ".htm")):
                lost.add((page, found))
    return pairs, lost


def citations(folder: Path, pages: list[str]) -> dict[str, Any]:
    """Return a table of the links that became citations of mode cg-rag."""
    truth, lost = true_links(folder, pages)
    with Index.open(WORK / "web-documentation-index") as index:
        arrays = index.inspect.arrays()
        rows = unpack(*strings(arrays["units"], "document_ids"))
        names = [rows[at] for at in documents_of(arrays["units"])[1]]
        ends = arrays["citations"]["cites_indptr"].tolist()
        ids = arrays["citations"]["cites_indices"].tolist()
        found = {
            (names[at], names[other]) for at in range(len(names)) for other in ids[ends[at] : ends[at + 1]]
        }
        kept = index.stats()["systems"]["cg-rag"]["unresolved_citations"]
    share = 100 * len(truth & found) / max(len(truth), 1)
    rows = [
        ["links between pages", len(truth), len(truth & found), share, target(share, least=95)],
        ["links to missing pages, reported", len(lost), kept, None, ""],
        ["citations that are not such links", None, len(found - truth), None, ""],
    ]
    return table(
        f"Links of {len(pages):,} pages", ["what", "true", "found", "percent", "target, percent"], rows
    )


def by_resiliparse(html: str) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    return str(extract_plain_text(html, main_content=True, preserve_formatting=True))


def many_links(count: int) -> bytes:
    """Return a page that is a list of `count` links."""
    lines = "".join(f'<li><a href="p{n}.html">The page with the number {n}</a></li>\n' for n in range(count))
    return f"<html><head><title>All pages</title></head><body><ul>{lines}</ul></body></html>".encode()


def seconds_of(pages: list[bytes], runs: int) -> tuple[float, float]:
    """Return the processor seconds of reading pages by this package and by resiliparse, medians."""
    from ketrag_fast.readers.html import page_of

    own, other = [], []
    for _ in range(runs):
        begin = time.process_time()
        for data in pages:
            page_of(data)
        own.append(time.process_time() - begin)
        begin = time.process_time()
        for data in pages:
            by_resiliparse(data.decode("utf-8", "replace"))
        other.append(time.process_time() - begin)
    return median(own), median(other)


def reading(folder: Path, pages: list[str], runs: int) -> dict[str, Any]:
    """Return a table of the time of reading pages."""
    datas = [(folder / page).read_bytes() for page in pages]
    largest = max(datas, key=len)
    rows: list[list[Any]] = []
    for name, group, most in (
        ("a list of 4,000 links", [many_links(4_000)], 300),
        (f"a table of contents of {len(largest) / 1e6:.1f} MB", [largest], 1_000),
        ("mean of all pages", datas, 6),
    ):
        own, other = (1000 * took / len(group) for took in seconds_of(group, runs))
        rows.append([name, own, other, target(own, most=most)])
    return table("Reading, ms of processor time", ["page", "ketrag", "resiliparse alone", "target"], rows)


def spent(command: list[str]) -> tuple[float, float]:
    """Run a command; return the seconds and the processor seconds that it and its children took."""
    before, begin = os.times(), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - begin, used


def indexing(folder: Path, runs: int) -> dict[str, Any]:
    """Return a table of `ketrag index` of these pages, at first and again."""
    place = WORK / "web-documentation-index"
    shutil.rmtree(place, ignore_errors=True)
    command = [sys.executable, "-m", "ketrag_fast.apps.cli.main", "index", str(folder), "-i", str(place)]
    command += ["--modes", "auto,cg-rag"]
    first = spent(command)
    again = [spent(command) for _ in range(runs)]
    best = (median([x for x, _ in again]), median([x for _, x in again]))
    rows = [["new", *first, ""], ["nothing has changed", *best, target(best[1], most=1)]]
    return table("`ketrag index`", ["files", "s", "s of processor time", "target, processor"], rows)


def pages_of(folder: Path) -> Iterator[str]:
    """Yield the paths of all pages below a folder."""
    for path in sorted(folder.rglob("*.html")):
        if path.is_file():  # some folders have such names
            yield path.relative_to(folder).as_posix()


def main() -> None:
    """Print all tables."""
    parser = arguments(__doc__)
    parser.add_argument("--fetch", action="store_true", help="download the packages first")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the unpacked packages")
    args = parser.parse_args()
    if args.fetch:
        fetch(PACKAGES, args.docs)
    if not args.docs.is_dir():
        sys.exit(f"{args.docs} does not exist: run `python benches/web_documentation.py --fetch`")
    folder = args.docs / "debian-policy" if args.smoke else args.docs
    pages, runs = list(pages_of(folder)), 1 if args.smoke else 3
    tables = [reading(folder, pages, runs), indexing(folder, runs), citations(folder, pages)]
    versions = "; ".join(f"`{one['name']}` {one['version']}" for one in PACKAGES)
    size = np.sum([(folder / page).stat().st_size for page in pages]) / 1e6
    publish(tables, f"{len(pages)} pages, {size:.0f} MB.", [f"Packages of Debian 12: {versions}."])


if __name__ == "__main__":
    main()
