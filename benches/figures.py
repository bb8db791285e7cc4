"""Write docs/figures.md from benches/results: one table of recall and all gold with intervals for every mode and set, next to
published figures where the pool is the same.

    python benches/figures.py            # print the page
    python benches/figures.py --write    # write docs/figures.md
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from page import cells
from stamps import read_results

OUT = Path(__file__).resolve().parent.parent / "docs" / "figures.md"
COLUMNS = ("recall@2", "recall@5", "all gold in 5", "all gold in 10")
SETS = {
    "musique-dev": ("MuSiQue", "own"),
    "2wiki-dev": ("2WikiMultihopQA", "own"),
    "hotpotqa-dev": ("HotpotQA", "own"),
    "2wiki-101": ("2Wiki's published pool", "published"),
}
SUFFIXES = ("", "-minilm", "-rules")
PAPERS = (("2wiki-101", "HippoRAG 2, 1,000 questions", "NV-Embed-v2, LLM", {"recall@5": 90.4}),)
"""Published figures over the same passages: set, method, vectors or reader, values by column."""
HEAD = """# Scores of all modes

Recall and all gold of every measured mode, with half of the 95 % interval (±, percent, a bootstrap over the questions).
`python benches/figures.py --write` makes this page from the stored results of [the benchmarks](../benches/BENCHMARKS.md), which
have dates, commands and the other columns.

* **A pool decides how hard a set is.** Figures of papers are next to ours only if the passages are the same: the 6,119
  passages of 2Wiki that HippoRAG published. Even there the questions differ, because ours are the 101 of fast-graphrag.
  HippoRAG 2: Gutiérrez et al., From RAG to Memory, [arXiv:2502.14802](https://arxiv.org/abs/2502.14802), retrieval, recall@5.
  Everything marked `own` has another pool than any paper: do not compare it with theirs.
* **MuSiQue's pool here is easier than the original one.** Its questions were chosen by whether their supporting passages could
  be found in public copies, and the pool was made from these copies.
* The weights of `walk` and of the vectors without a model were chosen on the three sets with the pool `own`.
* `vectors or reader` is `none` for vectors fitted on the corpus, `MiniLM` for all-MiniLM-L6-v2, and `rules` for modes that
  need entities and relations, which the built-in rules extracted.
"""


def lines_of(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the rows of the table, sets in the order of `SETS`, our modes by recall@5."""
    heads = [head for column in COLUMNS for head in (column, "±")]
    lines = [
        "| set | pool | mode | vectors or reader | " + " | ".join(heads) + " |",
        "|" + "---|" * (4 + len(heads)),
    ]
    for name, (title, pool) in SETS.items():
        own: list[tuple[float, str]] = []
        for suffix in SUFFIXES:
            found = results.get(f"{name}{suffix}")
            if found is None:
                continue
            ranked = found["tables"][0]
            at = [ranked["columns"].index(column) for column in COLUMNS]
            for row in ranked["rows"]:
                values = cells([row[i] for i in at], [True] * len(at))
                line = f"| {title} | {pool} | {row[0]} | {row[1]} | " + " | ".join(values) + " |"
                own.append((-row[at[1]][0], line))
        lines += [line for _, line in sorted(own)]
        for of, method, reader, values in PAPERS:
            if of == name:
                parts = [f"{values[column]} | " if column in values else " | " for column in COLUMNS]
                lines.append(f"| {title} | {pool} | {method} | {reader} | " + " | ".join(parts) + " |")
    return lines


def hops_of(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the section on hops, if it was measured."""
    runs = [results[name] for name in ("hops", "hops-minilm") if name in results]
    if not runs:
        return []
    columns = runs[0]["tables"][0]["columns"]
    heads = [head for at, column in enumerate(columns) for head in ([column] if at < 4 else [column, "±"])]
    lines = [
        "## By number of hops",
        "",
        "MuSiQue, by the hops that its questions name.",
        "",
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
    ]
    for run in runs:
        rows = [cells(row, [False] * 4 + [True] * (len(row) - 4)) for row in run["tables"][0]["rows"]]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
    return [*lines, ""]


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *lines_of(results), "", *hops_of(results)]).rstrip() + "\n"


def write() -> None:
    """Write the page."""
    OUT.write_text(page(read_results()), "utf-8")


def main() -> None:
    """Print or write the page."""
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        print(page(read_results()), end="")


if __name__ == "__main__":
    main()
