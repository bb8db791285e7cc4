"""Main text of saved web pages by the hand-made truth of two public collections, next to other tools.

The pages are read from the folder KETRAG_DATA/web-pages. They are in public repositories:

    https://github.com/scrapinghub/article-extraction-benchmark   to article-extraction-benchmark
    https://github.com/adbar/trafilatura   the folder tests, to trafilatura

The first collection has the text of each article. Precision and recall are those of its script: of runs of four words,
the mean over the pages. The second names up to six parts of each page that belong to the text and up to six that do not;
parts are counted over all pages. trafilatura was developed on it.
"""

from __future__ import annotations

import gzip
import json
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from common import DATA, arguments, publish
from common import result_table as table
from ketrag_fast.eval.metrics import bootstrap_interval

FOLDER = DATA / "web-pages"
Reader = Callable[[bytes], str]
Counts = tuple[float, float, float]
"""True positives, false positives, false negatives."""


def by_us(data: bytes) -> str:
    from ketrag_fast.readers.html import page_of

    return page_of(data).text


def by_resiliparse(data: bytes) -> str:
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    html = bytes_to_str(data, detect_encoding(data))
    return str(extract_plain_text(html, main_content=True, preserve_formatting=True))


def by_trafilatura(data: bytes) -> str:
    import trafilatura

    return trafilatura.extract(data, include_comments=False, include_tables=True) or ""


READERS: dict[str, Reader] = {
    "ketrag": by_us,
    "resiliparse": by_resiliparse,
    "trafilatura": by_trafilatura,
}


def shingles(text: str) -> Counter[tuple[str, ...]]:
    """Return the runs of four words, as the collection's script counts them."""
    words = re.findall(r"\w+", text, re.UNICODE)
    if not words:
        return Counter()
    return Counter(tuple(words[at : at + 4]) for at in range(max(1, len(words) - 3)))


def article_counts(found: str, true: str) -> Counts:
    """Return the counts of an article as shares of all its runs of words."""
    a, b = shingles(found), shingles(true)
    both = (a & b).total()
    counts = (both, a.total() - both, b.total() - both)
    total = sum(counts) or 1
    return counts[0] / total, counts[1] / total, counts[2] / total


def article_scores(counts: list[Counts]) -> tuple[float, float, float]:
    """Return mean precision and mean recall in percent, and their F1."""
    precision = statistics.mean(right / (right + wrong) for right, wrong, _ in counts if right + wrong)
    recall = statistics.mean(right / (right + left) for right, _, left in counts if right + left)
    return 100 * precision, 100 * recall, 200 * precision * recall / ((precision + recall) or 1)


def plain(text: str) -> str:
    """Return a text whose blanks are single."""
    return re.sub(r"\s+", " ", text).strip()


def part_counts(found: str, item: Mapping[str, Any]) -> Counts:
    """Return how many named parts were found rightly, found wrongly, and not found."""
    text = plain(found)
    right = sum(plain(part) in text for part in item["with"])
    return right, sum(plain(part) in text for part in item["without"]), len(item["with"]) - right


def part_scores(counts: list[Counts]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of the parts in percent."""
    right, wrong, left = (sum(column) for column in zip(*counts, strict=True))
    precision, recall = right / ((right + wrong) or 1), right / ((right + left) or 1)
    return 100 * precision, 100 * recall, 200 * right / ((2 * right + wrong + left) or 1)


def page_f1(counts: Counts) -> float:
    """Return the F1 of one page."""
    right, wrong, left = counts
    return 2 * right / ((2 * right + wrong + left) or 1)


def compared(
    title: str,
    pages: list[tuple[bytes, Any]],
    count: Callable[[str, Any], Counts],
    scores: Callable[[list[Counts]], tuple[float, float, float]],
) -> list[dict[str, Any]]:
    """Return the table of a collection, and the paired differences of the F1 of its pages."""
    rows, own_rows = [], []
    found: dict[str, list[Counts]] = {}
    for name, read in READERS.items():
        texts, begun = [], time.process_time()
        for data, _ in pages:
            texts.append(read(data))
        took = 1000 * (time.process_time() - begun) / len(pages)
        found[name] = [count(text, true) for text, (_, true) in zip(texts, pages, strict=True)]
        rows.append([name, *scores(found[name]), took])
    best = max(row[3] for row in rows[1:])
    for row in rows:
        row.append(("ahead" if row[3] > best else "ahead: missed") if row[0] == "ketrag" else "")
    for name in list(READERS)[1:]:
        pairs = zip(found["ketrag"], found[name], strict=True)
        apart = [100 * (page_f1(own) - page_f1(other)) for own, other in pairs]
        interval = bootstrap_interval(apart)
        assert interval is not None
        own_rows.append([f"ketrag less {name}", (statistics.mean(apart), *interval)])
    return [
        table(
            f"{title}, {len(pages)} pages",
            ["reader", "precision", "recall", "F1", "ms a page", "target"],
            rows,
        ),
        table(f"{title}: difference of the F1 of a page", ["readers", "points"], own_rows),
    ]


def articles() -> list[tuple[bytes, str]]:
    """Return the pages of the first collection with their texts."""
    folder = FOLDER / "article-extraction-benchmark"
    truth = json.loads((folder / "ground-truth.json").read_text("utf-8"))
    return [
        (gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes()), own.get("articleBody", ""))
        for name, own in sorted(truth.items())
    ]


def marked() -> list[tuple[bytes, dict[str, Any]]]:
    """Return the pages of the second collection with their parts."""
    folder = FOLDER / "trafilatura"
    truth = json.loads((folder / "evaldata.json").read_text("utf-8"))
    pages = []
    for _, item in sorted(truth.items()):
        path = folder / "cache" / item["file"]
        pages.append(((path if path.is_file() else folder / "eval" / item["file"]).read_bytes(), item))
    return pages


def main() -> None:
    """Print the tables of both collections."""
    args = arguments(__doc__).parse_args()
    if not FOLDER.is_dir():
        sys.exit(f"{FOLDER} does not exist; the docstring of this script has the sources")
    most = 20 if args.smoke else None
    tables = compared("Articles, runs of four words", articles()[:most], article_counts, article_scores)
    tables += compared("Parts of the page", marked()[:most], part_counts, part_scores)
    publish(tables, "Two public collections of saved pages; `benches/web_pages.py` names the sources.")


if __name__ == "__main__":
    main()
