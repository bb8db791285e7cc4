"""Render benches/BENCHMARKS.md and docs/reference/figures.md from the results in benches/results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sections import PREFACE, SECTIONS, Section

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "benches" / "BENCHMARKS.md"
RESULTS: Final = ROOT / "benches" / "results"
SCORES: Final = ROOT / "docs" / "reference" / "figures.md"

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
`make figures` makes this page from the stored results of [the benchmarks](../../benches/BENCHMARKS.md), which have versions, dates,
machines and the other columns.

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


Results = Mapping[str, Mapping[str, Any]]
"""Stored results by the name of their run."""


def read_results(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """Return the stored results by the name of their run."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}


def cells(row: Sequence[Any], intervals: Sequence[bool]) -> list[str]:
    """Return the cells of a row; a value with an interval has a second cell, half of the interval's width."""
    out = []
    for value, has_interval in zip(row, intervals, strict=True):
        if isinstance(value, list | tuple):
            mean, low, high = value
            out += [f"{mean:.1f}", f"{(high - low) / 2:.1f}"]
        else:
            out += [number(value), ""] if has_interval else [number(value)]
    return out


def number(value: object) -> str:
    """Return a cell: text as it is, whole numbers with separators, others with three digits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value)
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2 if abs(value) >= 0.9995 else 3
    return f"{value:,.{digits}f}"


def table_lines(table: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table below its title."""
    columns, rows = table["columns"], table["rows"]
    intervals = [any(isinstance(row[at], list | tuple) for row in rows) for at in range(len(columns))]
    heads = [
        head
        for column, has in zip(columns, intervals, strict=True)
        for head in ([column, "±"] if has else [column])
    ]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cells(row, intervals)) + " |" for row in rows]
    return ([f"{table['title']}:", ""] if table["title"] else []) + lines


def section_lines(section: Section, results: Results) -> list[str]:
    """Return a section; runs without a result are named."""
    lines = [f"## {section.title}", "", section.text, ""]
    tables: dict[tuple[str, ...], dict[str, Any]] = {}
    for run in section.runs:
        result = results.get(run.name)
        if result is None:
            continue
        for note in result["notes"]:
            lines += [f"- {note}"] if f"- {note}" not in lines else []
        for table in result["tables"]:
            key = (table["title"], *table["columns"])
            same = tables.setdefault(key, {**table, "rows": []})
            same["rows"] = [*same["rows"], *table["rows"]]
    missing = [run.name for run in section.runs if run.name not in results]
    if missing:
        lines += [""] * bool(lines[-1])
        lines += [f"Not measured yet: {', '.join(missing)} (`make figures ONLY={section.name}`)."]
    if lines[-1]:
        lines.append("")
    for table in tables.values():
        lines += [*table_lines(table), ""]
    origin = origin_lines(section, results)
    return [*lines, *origin, ""] if origin else lines


def origin_lines(section: Section, results: Results) -> list[str]:
    """Return where, when and on what the runs of a section were measured; equal ones share a line."""
    runs: dict[str, list[str]] = {}
    for run in section.runs:
        result = results.get(run.name)
        if result is None:
            continue
        busy = (
            f", **loaded machine** (load {result['load']:g} at the start)"
            if section.is_time and result["load"] > 0.7
            else ""
        )
        origin = f"ketrag-fast {result['version']} at {result['commit']}, {result['date']}"
        text = f"{result['data']} {result['machine']}; {origin}{busy}."
        runs.setdefault(text, []).append(f"`{run.name}`")
    return [f"Run {', '.join(names)}: {text}" for text, names in runs.items()]


def benchmarks_page(results: Results) -> str:
    """Return the text of benches/BENCHMARKS.md."""
    lines = [PREFACE.strip(), ""]
    for section in SECTIONS:
        lines += section_lines(section, results)
    return "\n".join(lines).rstrip() + "\n"


def score_lines(results: Results) -> list[str]:
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


def hop_lines(results: Results) -> list[str]:
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


def default_lines(results: Results) -> list[str]:
    """Return the section on the default mode next to the others, if it was measured."""
    runs = [results[name] for name in ("ranking", "ranking-minilm") if name in results]
    if not runs:
        return []
    lines = [
        "## The default on every kind of collection",
        "",
        "`auto`, which is `walk`, next to the other modes on the sets that its rule was chosen on. *Ahead* is the difference to the",
        "best other mode, paired by question. [The walk](../concepts/walk.md#when-there-is-no-second-hop) has the rule,",
        "[ranking](../internals/ranking.md) what did not help.",
        "",
    ]
    for run in runs:
        lines += [f"* {note}" for note in run["notes"]]
    for at, first in enumerate(runs[0]["tables"]):
        rows = [row for run in runs for row in run["tables"][at]["rows"]]
        order = list(dict.fromkeys(row[0] for row in rows))
        rows.sort(key=lambda row: order.index(row[0]))
        lines += ["", *table_lines({**first, "rows": rows})]
    return [*lines, ""]


def scores_page(results: Results) -> str:
    """Return the text of docs/reference/figures.md: recall and all gold with intervals for every mode and set."""
    lines = [HEAD, *score_lines(results), "", *hop_lines(results), *default_lines(results)]
    return "\n".join(lines).rstrip() + "\n"
