"""Compare the text of public PDFs with that of `pdftotext`: words found, words in its order, pages without text.

    python benches/public_pdfs.py FOLDER        # fetches Debian packages into FOLDER with apt-get, and reads their PDFs

Two kinds of words of `pdftotext` are not counted: running heads and page numbers, which a reader of the text does
not need; and words with a control character, which are ligatures that it cannot read (`^\\gure` for figure). Words that
are hyphenated at the end of a line are joined first. `pdftotext` reads the cells of a table column by column, and
row by row with `-layout`: "in order" compares with the first, "by row" takes for each page the better one of both, and
"drawn" compares with `-raw`, the order in which the page is drawn. "outside tables" leaves out the rows of our tables.

The packages are papers and manuals made with LaTeX, DocBook and Sphinx, those of r-cran-strucchange with bitmap fonts.
Needs `apt-get`, `dpkg-deb` and `pdftotext` (poppler-utils); prints a table in Markdown.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from pathlib import Path

from ketrag_fast.readers import SourceFile, items_of
from ketrag_fast.types import Document

PACKAGES = (
    "r-cran-coin=1.4-2-1+b1",
    "r-cran-lmtest=0.9.40-1",
    "r-cran-multcomp=1.4-22-1",
    "r-cran-mvtnorm=1.1-3-1+b1",
    "r-cran-party=1.3-11-1",
    "r-cran-sandwich=3.0-2-1",
    "r-cran-strucchange=1.5-3-1",
    "r-cran-survival=3.5-3-1",
    "r-cran-zoo=1.8-11-1",
    "developers-reference=12.18",
    "maint-guide=1.2.53",
)
LARGEST = 1_500_000
WORD = re.compile(r"[^\W_]+")


def fetch(folder: Path) -> list[Path]:
    """Return the PDFs of the packages, which are downloaded once."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [one for one in PACKAGES if not list(folder.glob(f"{one.partition('=')[0]}_*.deb"))]
    if missing:
        subprocess.run(["apt-get", "download", "-q", *missing], cwd=folder, check=True, stdout=sys.stderr)
    for package in sorted(folder.glob("*.deb")):
        target = folder / package.stem
        if not target.exists():
            subprocess.run(["dpkg-deb", "-x", package, target], check=True)
    names = tuple(one.partition("=")[0] + "_" for one in PACKAGES)
    files = (path for path in folder.rglob("*.pdf") if path.relative_to(folder).parts[0].startswith(names))
    return sorted(path for path in files if path.is_file() and path.stat().st_size <= LARGEST)


UNREAD = re.compile(r"\S*(?:[\x00-\x08\x0b\x0e-\x1f]|(?<=[a-z])\f(?=[a-z]))\S*")
"""Words of `pdftotext` with ligatures that it cannot read."""
EDGE = 2
"""Lines at the top and bottom of a page that may be running heads."""


def without_heads(text: str) -> str:
    """Return the text of `pdftotext` without running heads and page numbers.

    These are lines near the edge of a page that are on three pages or more, but for their numbers.
    """
    pages = [page.split("\n") for page in text.split("\f")]
    counts: Counter[str] = Counter()
    for lines in pages:
        counts.update({number_free(lines[place]) for place in edges(lines)})
    for lines in pages:
        for place in edges(lines):
            if counts[number_free(lines[place])] > EDGE:
                lines[place] = ""
    return "\f".join("\n".join(lines) for lines in pages)


def edges(lines: list[str]) -> list[int]:
    """Return the numbers of the first and last lines with text of a page."""
    full = [number for number, line in enumerate(lines) if line.strip()]
    return sorted({*full[:EDGE], *full[-EDGE:]})


def number_free(line: str) -> str:
    """Return a line with its numbers replaced."""
    return re.sub(r"\d+", "#", line.strip())


def words(text: str) -> list[str]:
    """Return the words of a text in lower case.

    Words that are hyphenated at the end of a line are joined. The marks of exponents, indices and notes are dropped,
    because `pdftotext` writes 106 for 10^6.
    """
    text = unicodedata.normalize("NFKC", re.sub(r"[\^_\[\]]", "", text))
    return WORD.findall(re.sub(r"(?<=\w)-\s*\n\s*(?=[a-z])", "", text).lower())


def shares(own: list[str], other: list[str]) -> tuple[int, int]:
    """Return how many words of `other` are in `own`, and how many in the same order."""
    left: dict[str, int] = {}
    for word in own:
        left[word] = left.get(word, 0) + 1
    found = 0
    for word in other:
        if left.get(word, 0):
            left[word] -= 1
            found += 1
    return found, in_order(own, other)


def in_order(own: list[str], other: list[str]) -> int:
    """Return the length of the longest common subsequence, by bits of large integers (Hyyrö 2004)."""
    places: dict[str, int] = {}
    for place, word in enumerate(own):
        places[word] = places.get(word, 0) | 1 << place
    every = (1 << len(own)) - 1
    state = every
    for word in other:
        common = state & places.get(word, 0)
        state = (state + common | state - common) & every
    return len(own) - state.bit_count()


def printed(path: Path, *options: str) -> str:
    """Return the text of `pdftotext` without what it cannot read."""
    done = subprocess.run(["pdftotext", *options, path, "-"], capture_output=True, check=False)
    return UNREAD.sub(" ", done.stdout.decode("utf-8", "replace"))


def by_row(document: Document, path: Path) -> int:
    """Return how many words are in the order of `pdftotext` or `pdftotext -layout`, page by page."""
    pages = {one.value: document.text[one.start : one.end] for one in document.locators if one.kind == "page"}
    texts = (without_heads(printed(path)), without_heads(printed(path, "-layout")))
    total = 0
    for number, forms in enumerate(zip(*(text.split("\f") for text in texts), strict=False), 1):
        own = words(pages.get(number, "" if pages else document.text))
        total += max(shares(own, words(form))[1] for form in forms)
    return total


def main() -> None:
    """Print the table."""
    limit = float(sys.argv[2]) if len(sys.argv) > 2 else float("inf")
    begin, rows, left_out = time.monotonic(), [], 0
    for path in fetch(Path(sys.argv[1])):
        if time.monotonic() - begin > limit:
            break
        raw = printed(path)
        other = words(without_heads(raw))
        left_out += len(words(raw)) - len(other)
        started = time.process_time()
        items = list(items_of(SourceFile(path, path.name, alone=True), "pdf"))
        seconds = time.process_time() - started
        documents = [item for item in items if isinstance(item, Document)]
        if not other or len(other) > 12_000:
            continue  # the comparison of the order is quadratic, and manuals would outweigh the papers
        found, ordered = shares(words(documents[0].text if documents else ""), other)
        pages = documents[0].metadata.get("pages", 0) if documents else 0
        rows_too = by_row(documents[0], path) if documents else 0
        reports = len(items) - len(documents)
        lines = documents[0].text.split("\n") if documents else []
        drawn = in_order(words("\n".join(lines)), words(without_heads(printed(path, "-raw"))))
        plain = words("\n".join(line for line in lines if "\t" not in line))
        tables = len(words("\n".join(lines))) - len(plain)
        outside = in_order(plain, other)
        rows.append(
            (path.name, len(other), found, ordered, pages, seconds, reports, rows_too, drawn, outside, tables)
        )
    print(
        "| file | words | found | in order | drawn | by row | pages | seconds | reports |\n|---|---|---|---|---|---|---|---|---|"
    )
    for name, count, found, ordered, pages, seconds, reports, rows_too, drawn, *_ in rows:
        print(
            f"| {name} | {count} | {found / count:.1%} | {ordered / count:.1%} | {drawn / count:.1%} | {rows_too / count:.1%} | {pages} | {seconds:.2f} | {reports} |"
        )
    total = max(sum(row[1] for row in rows), 1)
    print(
        f"\n{len(rows)} files, {total:,} words: {sum(row[2] for row in rows) / total:.1%} found, "
        f"{sum(row[3] for row in rows) / total:.1%} in order, {sum(row[8] for row in rows) / total:.1%} drawn, "
        f"{sum(row[9] for row in rows) / max(total - sum(row[10] for row in rows), 1):.1%} outside tables, "
        f"{sum(row[7] for row in rows) / total:.1%} by row, {sum(row[5] for row in rows):.1f} s of processor "
        f"time for {sum(row[4] for row in rows):,} pages; {left_out:,} words of running heads are not counted"
    )


if __name__ == "__main__":
    main()
