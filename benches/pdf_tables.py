"""Tables and page numbers of real PDFs: cells in the right row and column, next to other tools.

`truth/pdf_tables.json` has facts only: 32 tables (seven of quarterly filings, checked on the pictures of the
pages, and 25 of the ICDAR 2013 table competition, whose truth was made by hand), and the lines with page numbers
of ten filings. The PDFs are read from the folder KETRAG_DATA/pdf-tables. They are in public repositories:

    https://github.com/docugami/KG-RAG-datasets    sec-10-q/data/v1/docs/*.pdf
    https://github.com/camelot-dev/camelot         tests/files/tabula/icdar2013-dataset/*/*.pdf

pymupdf4llm is a part of the package pymupdf from version 2 on (its own package 2.0 is empty); it takes a model of layout.

The rows of a tool are all lines and table rows of the page. They are aligned with the true rows in order, then the
columns; a cell is right if its text is in the row and the column that its own were aligned with.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

from common import DATA, arguments, median, publish, result_table, target

TRUTH = Path(__file__).with_name("truth") / "pdf_tables.json"
Grid = list[list[str]]
_DASHES = re.compile(r"[\u2010-\u2015\u2212]")
_QUOTES = {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0xFB01: "fi", 0xFB02: "fl", 0xAD: None}


def plain(text: str) -> str:
    """Return a cell without blanks, the currency sign before and the percent sign after it."""
    found = "".join(_DASHES.sub("-", text.translate(_QUOTES)).split()).lower()
    return found.lstrip("$€£").rstrip("%") or found


def by_us(path: Path, page: int) -> Grid:
    return [line.split("\t") for line in _pages(path)[page].split("\n") if line.strip()]


@cache
def _pages(path: Path) -> dict[int, str]:
    from ketrag_fast.readers import SourceFile, items_of
    from ketrag_fast.types import Document

    (document,) = (
        item for item in items_of(SourceFile(path, path.name), "pdf") if isinstance(item, Document)
    )
    found = {one.value: document.text[one.start : one.end] for one in document.locators if one.kind == "page"}
    return dict.fromkeys(range(1, 1000), "") | found


def by_pdfplumber(path: Path, page: int, settings: dict[str, str] | None = None) -> Grid:
    import pdfplumber

    with pdfplumber.open(path) as pdf:
        tables = pdf.pages[page - 1].extract_tables(settings or {})
    return [[cell or "" for cell in row] for table in tables for row in table]


def by_pdfplumber_text(path: Path, page: int) -> Grid:
    return by_pdfplumber(path, page, {"vertical_strategy": "text", "horizontal_strategy": "text"})


def by_pymupdf4llm(path: Path, page: int) -> Grid:
    import pymupdf4llm

    rows: Grid = []
    for line in pymupdf4llm.to_markdown(str(path), pages=[page - 1]).split("\n"):
        text = re.sub(r"\*\*|__|~~|</?(?:sup|sub|u)>|`", "", line.strip())
        if not (text.startswith("|") and text.endswith("|")):
            rows += [[text]] if text else []
            continue
        cells = re.split(r"(?<!\\)\|", text[1:-1])
        if not all(re.fullmatch(r"\s*:?-+:?\s*", cell) for cell in cells):
            rows.append([re.sub(r"<br\s*/?>", " ", cell).replace("\\|", "|") for cell in cells])
    return rows


PEERS: dict[str, tuple[str, Callable[[Path, int], Grid]]] = {
    "ketrag": ("pypdfium2", by_us),
    "pdfplumber, lines": ("pdfplumber", by_pdfplumber),
    "pdfplumber, text": ("pdfplumber", by_pdfplumber_text),
    "pymupdf4llm": ("pymupdf4llm", by_pymupdf4llm),
}


def longest(count: int, other: int, value: Callable[[int, int], int]) -> list[tuple[int, int]]:
    """Return the pairs of an alignment in order whose values have the largest sum."""
    best = [[0] * (other + 1) for _ in range(count + 1)]
    for i in range(count - 1, -1, -1):
        for j in range(other - 1, -1, -1):
            own = value(i, j)
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + own if own else 0)
    pairs, i, j = [], 0, 0
    while i < count and j < other:
        own = value(i, j)
        if own and best[i][j] == best[i + 1][j + 1] + own:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def right_cells(cells: list[list[Any]], grid: Grid) -> int:
    """Return how many cells of a table are in the right row and column. A cell is row, column, text, and the last
    row and column if it covers several."""
    true: dict[int, dict[int, str]] = {}
    for row, column, text, *_ in cells:
        true.setdefault(row, {})[column] = plain(text)
    found = [{at: plain(cell) for at, cell in enumerate(row) if plain(cell)} for row in grid]
    height = max(true) + 1
    bags = [Counter(true.get(row, {}).values()) for row in range(height)]
    others = [Counter(row.values()) for row in found]
    sums = [[(bag & other).total() for other in others] for bag in bags]
    rows = dict(longest(height, len(found), lambda i, j: sums[i][j]))
    votes = Counter(
        (column, at)
        for row, line in rows.items()
        for column, text in true.get(row, {}).items()
        for at, other in found[line].items()
        if text == other
    )
    width, wide = (
        max(cell[1] for cell in cells) + 1,
        max((max(row, default=0) for row in found), default=0) + 1,
    )
    columns = dict(longest(width, wide, lambda i, j: votes[i, j]))
    return sum(_is_right(cell, rows, columns, found) for cell in cells)


def _is_right(
    cell: list[Any], rows: dict[int, int], columns: dict[int, int], found: list[dict[int, str]]
) -> bool:
    row, column, text = cell[:3]
    last_row, last_column = cell[3:] or (row, column)
    places = [columns[at] for at in range(column, last_column + 1) if at in columns]
    if last_column > column:  # a head over several columns may be in any place between their neighbours
        before = max((place for at, place in columns.items() if at < column), default=-1)
        after = min((place for at, place in columns.items() if at > last_column), default=10**6)
        places = list(range(before + 1, min(after, before + 200)))
    lines = [found[rows[at]] for at in range(row, last_row + 1) if at in rows]
    return any(line.get(place) == plain(text) for line in lines for place in places)


def numbers_left(path: Path, lines: dict[str, str]) -> int:
    """Return the number of pages whose page number is among the first or last two lines of their text."""
    left = 0
    for page, line in lines.items():
        text = [" ".join(own.split()) for own in _pages(path)[int(page)].split("\n") if own.strip()]
        left += " ".join(line.split()) in text[:2] + text[-2:] or line.split()[-1] in text[:2] + text[-2:]
    return left


def speeds(folder: Path, names: dict[str, list[str]], runs: int) -> dict[str, Any]:
    """Return a table of the processor time of a page next to PDFium's plain text, measured in alternation."""
    import pypdfium2

    rows: list[list[Any]] = []
    for kind, files in names.items():
        datas = [(folder / name).read_bytes() for name in files]
        pages = sum(len(pypdfium2.PdfDocument(data)) for data in datas)
        times: dict[Callable[[bytes], str], list[float]] = {plain_text: [], our_text: []}
        for _ in range(runs):
            for read, own in times.items():
                begin = time.process_time()
                for data in datas:
                    read(data)
                own.append(time.process_time() - begin)
        plain_time, own_time = (1000 * min(own) / pages for own in times.values())
        ratio = median([a / b for a, b in zip(*times.values(), strict=True)])
        rows.append([kind, pages, plain_time, own_time, ratio, target(ratio, least=0.7)])
    columns = [
        "files",
        "pages",
        "pypdfium2, ms a page",
        "ketrag, ms a page",
        "times pypdfium2's speed",
        "target",
    ]
    return result_table(f"PDF: processor time in one process, real files, {runs} runs", columns, rows)


def plain_text(data: bytes) -> str:
    """Return the text of a PDF as PDFium gives it."""
    import pypdfium2

    document = pypdfium2.PdfDocument(data)
    parts = []
    for page in document:
        text = page.get_textpage()
        parts.append(text.get_text_range())
        text.close()
        page.close()
    document.close()
    return "\n".join(parts)


def our_text(data: bytes) -> str:
    """Return the text of a PDF as the reader gives it."""
    from ketrag_fast.readers import SourceFile, items_of
    from ketrag_fast.types import Document

    items = items_of(SourceFile(Path("a.pdf"), "a.pdf", data=data), "pdf")
    return "\n".join(item.text for item in items if isinstance(item, Document))


def main() -> None:
    """Print all tables."""
    parser = arguments(__doc__)
    parser.add_argument("--only", action="append", help="a tool")
    args = parser.parse_args()
    folder = DATA / "pdf-tables"
    truth = json.loads(TRUTH.read_text("utf-8"))
    for entry in [*truth["tables"], *({"file": name, **own} for name, own in truth["pages"].items())]:
        path = folder / entry["file"]
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
            sys.exit(f"{path} is missing or another file; the docstring of this script has the sources")
    total = sum(len(table["cells"]) for table in truth["tables"])
    rows: list[list[Any]] = []
    for name, (package, read) in PEERS.items():
        if importlib.util.find_spec(package) is None or (args.only and name not in args.only):
            continue
        right, shares, begun = 0, [], time.process_time()
        with redirect_stdout(io.StringIO()):  # pymupdf4llm prints messages
            for table in truth["tables"]:
                own = right_cells(table["cells"], read(folder / table["file"], table["page"]))
                right += own
                shares.append(100 * own / len(table["cells"]))
        took = time.process_time() - begun
        bound = target(100 * right / total, least=95) if name == "ketrag" else ""
        rows.append([name, right, 100 * right / total, sum(shares) / len(shares), took, bound])
    pages = sum(own["pages"] for own in truth["pages"].values())
    numbered = sum(len(own["lines"]) for own in truth["pages"].values())
    left = sum(numbers_left(folder / name, own["lines"]) for name, own in truth["pages"].items())
    competition = sorted({own["file"] for own in truth["tables"]} - truth["pages"].keys())
    kinds = {
        "quarterly filings": list(truth["pages"]),
        "table competition": [name for name in competition if not name[:4].isdigit()],
    }
    columns = ["reader", "cells right", "percent", "mean of tables, percent", "s of processor time", "target"]
    title = f"Tables: {total:,} cells of {len(truth['tables'])} hand-checked tables"
    left_row = ["ketrag", pages, numbered, left, target(100 * left / pages, most=2)]
    publish(
        [
            result_table(title, columns, rows),
            result_table(
                "Page numbers left in the text",
                ["reader", "pages", "with a number", "left", "target, percent"],
                [left_row],
            ),
            speeds(folder, kinds, 1 if args.smoke else 3),
        ],
        "Public filings and the ICDAR 2013 table competition; `benches/pdf_tables.py` names the sources.",
        ["Processor time, the readers in alternation: the ratio holds on a loaded machine, too."],
    )


if __name__ == "__main__":
    main()
