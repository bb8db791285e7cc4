"""Readers of documents: order and speed of PDF next to other tools, and memory."""

from __future__ import annotations

import io
import multiprocessing
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import ROOT, arguments, median, publish, target
from common import result_table as table

sys.path.insert(0, str(ROOT))

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


def articles() -> list[tuple[str, str]]:
    found = []
    for path in ARTICLES:
        title, _, text = path.read_text("utf-8").partition("\n")
        found.append((title.lstrip("# "), text.strip()))
    return found


def words() -> Words:
    text = " ".join(text for _, text in articles())
    return Words(text.encode("cp1252", "ignore").decode("cp1252").replace("#", ""))


def sets(count: int) -> dict[str, list[Sheet]]:
    """Return `count` pages of each layout and way of drawing."""
    source, chance = words(), random.Random(1)
    made: dict[str, list[Sheet]] = {}
    for way in WAYS:
        made[f"two columns, {way}"] = [paper(source, way, chance, side=n % 6 == 0) for n in range(count)]
    made["three columns, by row"] = [paper(source, "by row", chance, columns=3) for n in range(count)]
    made["one column"] = [plain(source, "by column", chance) for n in range(count)]
    made["forms and tables, by column"] = [form(source, "by column", chance) for n in range(count)]
    made["forms and tables, by row"] = [form(source, "by row", chance) for n in range(count)]
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


def order(count: int) -> dict[str, Any]:
    """Return a table of the F1 of the longest common subsequence of words, by layout and peer."""
    rows: list[list[Any]] = []
    total: dict[str, list[int]] = {name: [0, 0, 0] for name in PEERS}
    for name, sheets in sets(count).items():
        data = document(sheets)
        truth = [word for sheet in sheets for word in sheet.words]
        cells: list[Any] = [name]
        for peer, read in PEERS.items():
            # PDFium's own mark of a word that a line's end cuts is removed: it is not expected to join lines.
            counts = right_order(read(data).replace("\ufffe", "").split(), truth)
            total[peer] = [a + b for a, b in zip(total[peer], counts, strict=True)]
            cells.append(f1(*counts))
        rows.append(cells)
    rows.append(["all", *(f1(*counts) for counts in total.values())])
    return table(
        f"PDF: words in the right order, F1 in percent, {count} pages of each layout",
        ["layout", *PEERS],
        rows,
    )


def f1(hits: int, found: int, true: int) -> float:
    """Return F1 in percent."""
    return 200 * hits / max(found + true, 1)


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


def speed(runs: int, count: int) -> dict[str, Any]:
    """Return a table of pages a second, with peers in as many processes."""
    files = 12
    sheets = [sheet for name, own in sets(count).items() if "column" in name for sheet in own]
    random.Random(3).shuffle(sheets)
    each = len(sheets) // files
    times: dict[str, list[float]] = {name: [] for name in ("plain", "plain2", "us", "us1", "us2")}
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number in range(files):
            path = Path(folder) / f"{number}.pdf"
            path.write_bytes(document(sheets[number * each : (number + 1) * each]))
            paths.append(path)
        datas = [path.read_bytes() for path in paths]
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
    rows: list[list[Any]] = []
    for name, shown, processes in (
        ("plain", "pypdfium2, text alone", 1),
        ("plain2", "pypdfium2, text alone", 2),
        ("us", "ketrag, in the calling process", 1),
        ("us1", "ketrag, sandboxed", 1),
        ("us2", "ketrag, sandboxed", 2),
    ):
        took, peer = median(times[name]), median(times["plain" if processes == 1 else "plain2"])
        bound = target(peer / took, least=0.8) if name == "us2" else ""
        rows.append([shown, processes, files * each / took, peer / took, bound])
    columns = ["reader", "processes", "pages a second", "times pypdfium2 with as many processes", "target"]
    return table(f"PDF: speed, {files * each:,} pages in {files} files, medians of {runs}", columns, rows)


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


def memory(pages: int, megabytes: int) -> dict[str, Any]:
    """Return a table of the peak memory of a process that reads a large file."""
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        source, chance = words(), random.Random(2)
        pdf = Path(folder) / "a.pdf"
        pdf.write_bytes(document([paper(source, WAYS[n % 3], chance) for n in range(pages)]))
        sheet = Path(folder) / "a.xlsx"
        write_xlsx(sheet, megabytes)
        for name, path, kind in ((f"PDF of {pages:,} pages", pdf, "pdf"), ("XLSX", sheet, "xlsx")):
            begin = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", _READ, str(path), kind], capture_output=True, text=True, check=True
            )
            took = time.perf_counter() - begin
            _, size, peak = map(int, done.stdout.split())
            row = [name, path.stat().st_size / 1e6, size / 1e6, peak / 1000, took]
            rows.append([*row, target(peak / 1000, most=500)])
    return table(
        "Memory of one reading process", ["file", "MB", "MB of text", "peak MB", "s", "target, MB"], rows
    )


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
    """Measure all tables."""
    args = arguments(__doc__).parse_args()
    tables = [order(3 if args.smoke else 30), speed(1 if args.smoke else 3, 6 if args.smoke else 60)]
    tables.append(memory(20 if args.smoke else 1000, 10 if args.smoke else 40))
    publish(
        tables,
        "Pages made by the tests' code from the demo's articles.",
        [
            "Running heads and page numbers do not belong to the text; the other tools keep them, which costs about a percent.",
        ],
    )


if __name__ == "__main__":
    main()
