"""Readers of documents: speed and order of PDF, main text of web pages, memory, compared with other tools."""

from __future__ import annotations

import argparse
import io
import multiprocessing
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from common import ROOT, header, median, table

sys.path.insert(0, str(ROOT))

from tests.support import web_pages
from tests.support.office_files import text_row, xlsx
from tests.support.papers import (
    WAYS,
    Sheet,
    Words,
    document,
    form,
    paper,
    plain,
    right_order,
    with_heads,
)

ARTICLES = sorted((ROOT / "examples" / "polar" / "articles").glob("*.md"))
PAGES = 60


def articles() -> list[tuple[str, str]]:
    found = []
    for path in ARTICLES:
        title, _, text = path.read_text("utf-8").partition("\n")
        found.append((title.lstrip("# "), text.strip()))
    return found


def words() -> Words:
    text = " ".join(text for _, text in articles())
    return Words(text.encode("cp1252", "ignore").decode("cp1252").replace("#", ""))


def sets() -> dict[str, list[Sheet]]:
    """Pages by layout and way of drawing."""
    source, chance = words(), random.Random(1)
    made: dict[str, list[Sheet]] = {}
    for way in WAYS:
        made[f"two columns, {way}"] = [paper(source, way, chance, side=n % 6 == 0) for n in range(PAGES)]
    made["three columns, by row"] = [paper(source, "by row", chance, columns=3) for n in range(PAGES)]
    made["one column"] = [plain(source, "by column", chance) for n in range(PAGES)]
    made["forms and tables, by column"] = [form(source, "by column", chance) for n in range(PAGES)]
    made["forms and tables, by row"] = [form(source, "by row", chance) for n in range(PAGES)]
    for sheets in made.values():
        with_heads(sheets, "On the Voyage South")
    return made


def by_pdfium(data: bytes) -> str:
    import pypdfium2

    pdf = pypdfium2.PdfDocument(data)
    parts = []
    for number in range(len(pdf)):
        page = pdf[number]
        text = page.get_textpage()
        parts.append(text.get_text_range())
        text.close()
        page.close()
    pdf.close()
    return "\n".join(parts)


def by_pypdf(data: bytes) -> str:
    import pypdf

    return "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages)


def by_pdfminer(data: bytes) -> str:
    from pdfminer.high_level import extract_text

    return extract_text(io.BytesIO(data))


def by_us(data: bytes) -> str:
    from ketrag_fast.readers import SourceFile, items_of

    return "\n".join(item.text for item in items_of(SourceFile(Path("a.pdf"), "a.pdf", data=data), "pdf"))  # type: ignore[union-attr]


PEERS: dict[str, Callable[[bytes], str]] = {
    "ketrag": by_us,
    "pypdfium2 plain": by_pdfium,
    "pypdf": by_pypdf,
    "pdfminer.six": by_pdfminer,
}


def order() -> None:
    rows = []
    total: dict[str, list[int]] = {name: [0, 0, 0] for name in PEERS}
    for name, sheets in sets().items():
        data = document(sheets)
        truth = [word for sheet in sheets for word in sheet.words]
        cells = [name]
        for peer, read in PEERS.items():
            # PDFium's own mark of a word that a line's end cuts is taken away: it is not asked to join lines.
            found = read(data).replace("￾", "").split()
            counts = right_order(found, truth)
            total[peer] = [a + b for a, b in zip(total[peer], counts, strict=True)]
            cells.append(f1(*counts))
        rows.append(cells)
    rows += totals(total)
    print(
        f"## Words in the right order: F1 of the longest common subsequence in percent, {PAGES} pages of each\n"
    )
    table(["layout", *PEERS], rows)


def f1(hits: int, found: int, true: int) -> str:
    return f"{200 * hits / max(found + true, 1):.1f}"


def totals(total: dict[str, list[int]]) -> list[list[str]]:
    """Over all forms, and how far the first is ahead of the best of the others."""
    every = [f1(*counts) for counts in total.values()]
    ahead = float(every[0]) - max(map(float, every[1:]))
    return [["**all**", *every], ["ahead of the best peer", f"{ahead:.1f}", *[""] * (len(every) - 1)]]


def in_processes(paths: list[Path], processes: int) -> float:
    from ketrag_fast.readers import SourceFile
    from ketrag_fast.readers.sandbox import Apart

    with Apart(processes, None, 1500, 1 << 30) as apart:
        warm = [(SourceFile(path, path.name), "pdf") for path in paths[:processes]]
        for _, items in apart.read(warm):
            list(items)
        begin = time.perf_counter()
        for _, items in apart.read((SourceFile(path, path.name), "pdf") for path in paths):
            list(items)
        return time.perf_counter() - begin


def _plain(path: Path) -> int:
    return len(by_pdfium(path.read_bytes()))


def speed(runs: int) -> None:
    files = 12
    made = [sheets for name, sheets in sets().items() if "column" in name]
    sheets = [sheet for own in made for sheet in own]
    random.Random(3).shuffle(sheets)
    each = len(sheets) // files
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number in range(files):
            path = Path(folder) / f"{number}.pdf"
            path.write_bytes(document(sheets[number * each : (number + 1) * each]))
            paths.append(path)
        pages = files * each
        datas = [path.read_bytes() for path in paths]
        times: dict[str, list[float]] = {name: [] for name in ("plain", "plain2", "us", "us1", "us2")}
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            pool.map(_plain, paths[:2])
            for _ in range(runs):
                for name, work in (
                    ("plain", lambda: [by_pdfium(data) for data in datas]),
                    ("plain2", lambda: pool.map(_plain, paths, chunksize=1)),
                    ("us", lambda: [by_us(data) for data in datas]),
                ):
                    begin = time.perf_counter()
                    work()
                    times[name].append(time.perf_counter() - begin)
                times["us1"].append(in_processes(paths, 1))
                times["us2"].append(in_processes(paths, 2))
    base = {1: median(times["plain"]), 2: median(times["plain2"])}
    rows = []
    for name, shown in (
        ("plain", "pypdfium2, text alone, one process"),
        ("plain2", "pypdfium2, text alone, two processes"),
        ("us", "ketrag, in this process"),
        ("us1", "ketrag, one process apart"),
        ("us2", "ketrag, two processes apart"),
    ):
        took = median(times[name])
        peer = base[2 if name.endswith("2") else 1]
        rows.append([shown, f"{pages / took:,.0f}", f"{peer / took:.2f}"])
    print(f"## Pages a second: {pages:,} pages in {files} files, medians of {runs}\n")
    table(["what", "pages a second", "x pypdfium2 with as many processes"], rows)


def bag(found: str, true: str) -> tuple[int, int, int]:
    a, b = Counter(found.split()), Counter(true.split())
    return sum((a & b).values()), a.total(), b.total()


def web(runs: int) -> None:
    import trafilatura
    from resiliparse.extract.html2text import extract_plain_text

    from ketrag_fast.readers.html import page_of

    peers: dict[str, Callable[[str], str]] = {
        "ketrag": lambda html: page_of(html.encode()).text,
        "resiliparse plain": lambda html: extract_plain_text(
            html, main_content=True, preserve_formatting=True
        ),
        "trafilatura": lambda html: (
            trafilatura.extract(html, include_comments=False, include_tables=True) or ""
        ),
    }
    rows = []
    total = {peer: [0, 0, 0] for peer in peers}
    spent = dict.fromkeys(peers, 0.0)
    count = 0
    for name in web_pages.FORMS:
        made = web_pages.pages(articles(), name)
        count += len(made)
        cells = [name]
        for peer, read in peers.items():
            sums = [0, 0, 0]
            for html, true in made:
                sums = [a + b for a, b in zip(sums, bag(read(html), true), strict=True)]
            total[peer] = [a + b for a, b in zip(total[peer], sums, strict=True)]
            cells.append(f1(*sums))
            takes = []
            for _ in range(runs):
                begin = time.perf_counter()
                for html, _ in made:
                    read(html)
                takes.append(time.perf_counter() - begin)
            spent[peer] += median(takes)
        rows.append(cells)
    rows += totals(total)
    rows.append(["ms a page", *(f"{1000 * spent[peer] / count:.2f}" for peer in peers)])
    theirs = spent["trafilatura"]
    rows.append(["x trafilatura's ms", *(f"{spent[peer] / theirs:.2f}" for peer in peers)])
    print(f"## Main text of web pages: F1 of words in percent, {len(ARTICLES)} pages of each form\n")
    table(["form", *peers], rows)


_READ = """
import sys
from pathlib import Path
from ketrag_fast.readers import SourceFile, items_of
count = size = 0
for item in items_of(SourceFile(Path(sys.argv[1]), "x"), sys.argv[2]):
    count += 1
    size += len(getattr(item, "text", ""))
# The system's own count: that of getrusage begins with what the process had that started this one.
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(count, size, peak.split()[1])
"""


def memory(megabytes: int) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        source, chance = words(), random.Random(2)
        sheets = [paper(source, WAYS[n % 3], chance) for n in range(2000)]
        pdf = Path(folder) / "a.pdf"
        pdf.write_bytes(document(sheets))
        sheet = Path(folder) / "a.xlsx"
        write_xlsx(sheet, megabytes)
        for name, path, kind in (("PDF of 2,000 pages", pdf, "pdf"), ("XLSX", sheet, "xlsx")):
            begin = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", _READ, str(path), kind], capture_output=True, text=True, check=True
            )
            took = time.perf_counter() - begin
            count, size, peak = map(int, done.stdout.split())
            rows.append(
                [
                    name,
                    f"{path.stat().st_size / 1e6:.0f}",
                    f"{count:,}",
                    f"{size / 1e6:.0f}",
                    f"{peak / 1000:.0f}",
                    f"{took:.1f}",
                ]
            )
    print("## Memory of one reading process\n")
    table(["file", "MB", "documents", "MB of text", "peak MB", "seconds"], rows)


def write_xlsx(path: Path, megabytes: int) -> None:
    """Rows of random texts until the file is so large; half of the cells share their texts."""
    import zipfile

    chance = random.Random(4)
    empty = xlsx({"S": []}, [])
    shared = [f"text {n} {chance.randbytes(30).hex()}" for n in range(200_000)]
    with zipfile.ZipFile(io.BytesIO(empty)) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if "sheet1" not in name and "sharedStrings" not in name:
                new.writestr(name, old.read(name))
        with new.open("xl/sharedStrings.xml", "w") as out:
            out.write(b"<sst>" + "".join(f"<si><t>{s}</t></si>" for s in shared).encode() + b"</sst>")
        with new.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as out:
            out.write(b"<worksheet><sheetData>" + text_row(1, "Name", "Text", "Number").encode())
            number = 1
            while path.stat().st_size < megabytes * 1_000_000:
                rows = []
                for _ in range(1000):
                    number += 1
                    rows.append(
                        f'<row r="{number}"><c r="A{number}" t="s"><v>{chance.randrange(len(shared))}</v></c>'
                        f'<c r="B{number}" t="inlineStr"><is><t>{chance.randbytes(60).hex()}</t></is></c>'
                        f'<c r="C{number}"><v>{chance.random()}</v></c></row>'
                    )
                out.write("".join(rows).encode())
            out.write(b"</sheetData></worksheet>")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="order,speed,web,memory")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=200, help="of the XLSX file")
    args = parser.parse_args()
    header(
        "Documents",
        [
            "Pages are made by the tests' code from the demo's articles, so that their true words are known: papers in columns drawn by column, by row, with each word by itself, in any order; footnotes, running heads, page numbers, notes along the margin, hyphens at line ends.",
            "Running heads and page numbers are no part of the truth; the peers do not claim to remove them, which costs them about a percent. None of the peers joins hyphens but pypdfium2's own mark, which is taken away.",
            "PDFium is not safe in threads: one process computes one page at a time.",
        ],
    )
    for name in args.parts.split(","):
        if name == "order":
            order()
        elif name == "speed":
            speed(args.runs)
        elif name == "web":
            web(max(args.runs // 2, 1))
        elif name == "memory":
            memory(args.megabytes)


if __name__ == "__main__":
    main()
