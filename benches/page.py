"""The page of benchmarks as sections: sections that were run again are replaced, the rest keeps its date and machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from common import markdown
from targets import with_targets

_MARK = re.compile(r"^<!-- (python benches/.+) -->$", re.MULTILINE)


def sections_of(text: str) -> dict[str, str]:
    """Return the section of each command, in the page's order."""
    marks = list(_MARK.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return {mark[1]: text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)}


def merged(old: Mapping[str, str], new: Mapping[str, str], order: Sequence[str]) -> dict[str, str]:
    """Return the sections of `order`, new ones first choice, then the remaining old ones."""
    found = {command: new.get(command, old.get(command)) for command in [*order, *old]}
    return {command: text for command, text in found.items() if text is not None}


def page(preface: str, sections: Mapping[str, str]) -> str:
    """Return the whole page, with today's targets in every table."""
    parts = [preface.strip()]
    parts += [f"<!-- {command} -->\n{_with_targets(command, text)}" for command, text in sections.items()]
    return "\n\n".join(parts) + "\n"


def _with_targets(command: str, text: str) -> str:
    script = command.split()[1].removeprefix("benches/")
    top = re.split(r"^(?:###|\|)", text, maxsplit=1, flags=re.MULTILINE)[0]
    lines: list[str] = []
    above: list[str] = []
    for is_table, group in groupby(text.splitlines(), lambda line: line.startswith("|")):
        block = list(group)
        if is_table:
            lines += _annotated(script, "\n".join([top, *above]), block)
            above = []
        else:
            lines += block
            last = max((i for i, line in enumerate(block) if line.startswith("#")), default=None)
            above = block if last is None else block[last:]
    return "\n".join(lines)


def _annotated(script: str, about: str, block: Iterable[str]) -> list[str]:
    columns, _, *rows = map(list, map(_cells, block))
    return markdown(*with_targets(script, about, columns, rows))


def _cells(line: str) -> Iterator[str]:
    return (cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|"))
