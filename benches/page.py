"""Render benches/BENCHMARKS.md from the results in benches/results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sections import PREFACE, SECTIONS, Section

STALE = "Measured before the present code (stale)."


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


def section_lines(section: Section, results: Mapping[str, Mapping[str, Any]], stale: set[str]) -> list[str]:
    """Return a section; runs without a result are named."""
    lines = [f"## {section.title}", ""]
    if any(run.name in stale for run in section.runs):
        lines += [f"> {STALE}", ""]
    lines += [section.text, ""]
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
        lines += [f"Not measured yet: `python benches/all.py --only {','.join(missing)}`."]
    if lines[-1]:
        lines.append("")
    for table in tables.values():
        lines += [*table_lines(table), ""]
    origin = origin_lines(section, results)
    return [*lines, *origin, ""] if origin else lines


def origin_lines(section: Section, results: Mapping[str, Mapping[str, Any]]) -> list[str]:
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
        text = f"{result['data']} {result['machine']}; {result['date']}, code {result['code']}{busy}."
        runs.setdefault(text, []).append(f"`{run.name}`")
    return [f"Run {', '.join(names)}: {text}" for text, names in runs.items()]


def page(results: Mapping[str, Mapping[str, Any]], stale: set[str]) -> str:
    """Return the whole page."""
    lines = [PREFACE.strip(), ""]
    for section in SECTIONS:
        lines += section_lines(section, results, stale)
    return "\n".join(lines).rstrip() + "\n"
