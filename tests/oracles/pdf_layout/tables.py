"""Find tables among the rows of a page: which cells belong to one column, and which lines to one row.

Columns are separated by stripes that few rows cross. A cell that crosses a stripe spans columns and is put
into the first of them. An empty cell stays empty, so that each value can be counted off to its column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Final

from tests.oracles.pdf_layout.lines import Line

_SPLIT: Final = 0.5
"""Words further apart than this many letter heights may be cells."""
_WIDE: Final = 1.2
"""Words of letters of one width, as in program code, are this many letters apart at least."""
_GAP: Final = 0.75
"""Numbers closer than this many letters belong to one cell."""
_CELL: Final = 0.9
"""A row of a table has a gap of at least this many letter heights."""
_STRIPE: Final = 0.3
"""The minimum width of a stripe in letter heights."""
_CROSSED: Final = 0.25
"""The maximum share of rows that cross a stripe."""
_SINGLES: Final = 4
"""The maximum number of rows of one cell between two rows of a table."""
_FAR: Final = 4.0
"""A table ends at a vertical gap of this many letter heights."""
_PROSE: Final = 90
"""A row of one cell with more characters than this is running text."""
_MANY: Final = 4
_APART: Final = 1.5
"""Parts of a table may have other columns after a gap of this many distances of lines."""
_CLOSE: Final = 0.85
"""Lines closer than this share of the distance of rows belong to one row."""
_CURRENCY = re.compile(r"(?:US|C|A|HK|R)?[$€£¥]")
_NUMBER = re.compile(r"(?!\(0{3}s?\)$)[-+–—−()<>±~$€£¥\d.,/:%*†‡§]+|n/?a\.?|\([xX]\)")
"""A word that is a number or stands for one."""
_LEADER = re.compile(r"[.·…]|[.·…]{3,}")  # two dots stand for a missing value
_ARTICLES = re.compile(r"(?:[,(;–—-]|\b(?:and|or|of|the|for|to|in|by|with|from|at|on|a))$")
"""A label that ends like this goes on in the next line."""
_TRAILING: Final = frozenset((")", "%", ")%", "%)", "*", "**", "***", "pts"))


@dataclass(slots=True)
class Segment:
    """Words that belong to one cell. `number`: it is a number or stands for one."""

    left: float
    right: float
    words: list[tuple[float, float, str]]
    number: bool = False

    @property
    def text(self) -> str:
        """The text of the cell."""
        return " ".join(word[2] for word in self.words)


@dataclass(slots=True)
class TableRow:
    """A row of a table: the text of each column, and the lines that it consists of."""

    cells: list[str]
    members: list[int]
    numbers: set[int] = field(default_factory=set)
    spans: bool = False


def segments_of(group: list[Line]) -> list[Segment]:
    """Return the cells of lines at one height, from left to right."""
    found: list[Segment] = []
    pending: list[tuple[float, float, str]] = []
    leaders = sum(
        1 for line in group for word in line.words if word[4][0] in ".·…" and _LEADER.fullmatch(word[4])
    )
    has_leaders = leaders > 2
    for line in group:
        if not line.words:
            words = [(line.left, line.right, line.text)]
            letters = (line.right - line.left) / len(line.text)
        else:
            words = [(word[0], word[2], word[4]) for word in line.words]
            letters = sum([word[1] - word[0] for word in words]) / sum([len(word[2]) for word in words])
        limit = max(_SPLIT * max(line.size, 1.0), _WIDE * letters)
        begins = True
        for word in words:
            left, right, text = word
            if has_leaders and _LEADER.fullmatch(text):
                begins = True
                continue
            if text[-1] in "$€£¥" and _CURRENCY.fullmatch(text):
                pending.append(word)
                begins = True
                continue
            if pending:
                sign, first = "".join(one[2] for one in pending), pending[0]
                if text[0].isdigit() or text[0] in "(-–—−.":
                    found.append(Segment(first[0], right, [(first[0], right, sign + text)]))
                else:
                    found.append(Segment(first[0], right, [(first[0], pending[-1][1], sign), word]))
                pending.clear()
                begins = False
                continue
            if found and text in _TRAILING and found[-1].words[-1][2][-1:].isdigit():
                last = found[-1]
                old = last.words[-1]
                last.words[-1] = (old[0], old[1], old[2] + text)
                continue
            if not begins and left - found[-1].right <= limit:
                last = found[-1]
                last.words.append(word)
                if right > last.right:
                    last.right = right
                continue
            found.append(Segment(left, right, [word]))
            begins = False
    if pending:
        found.append(Segment(pending[0][0], pending[-1][1], pending))
    for one in found:
        one.number = _is_number(one)
    return found


def _is_number(one: Segment) -> bool:
    """Return whether all words of a cell are numbers or stand for them."""
    return len(one.words) < 5 and all(_NUMBER.fullmatch(word[2]) for word in one.words)


def tables_of(groups: list[list[Line]]) -> list[tuple[int, int, list[TableRow]]]:
    """Return (first group, end, rows) of each table. `groups` are the lines at each height, top down."""
    found: list[tuple[int, int, list[TableRow]]] = []
    if sum(1 for group in groups if len(group) > 1 or group[0].words) < 2:
        return found
    rows = [segments_of(group) for group in groups]
    sizes = [max(line.size for line in group) for group in groups]
    tops = [min(line.top for line in group) for group in groups]
    middles = [_middle(group) for group in groups]
    for begin, end, stripes in _parts(_blocks(groups, rows, sizes, tops), rows, sizes, middles):
        first = begin
        while first > 0 and _is_head(rows[first - 1], stripes, tops[first] - tops[first - 1], sizes[first]):
            if found and first - 1 < found[-1][1]:
                break
            first -= 1
        cells = [_cells(row, stripes, number) for number, row in enumerate(rows[first:end], first)]
        found.append((first, end, _merge(cells, middles[first:end], median(sizes[first:end]))))
    return found


def _parts(
    blocks: list[tuple[int, int]], rows: list[list[Segment]], sizes: list[float], middles: list[float]
) -> list[tuple[int, int, list[tuple[float, float]]]]:
    """Return (first, end, stripes) of the tables in blocks; parts with the same columns are one table."""
    found: list[tuple[int, int, list[tuple[float, float]]]] = []
    for first, end in blocks:
        steps = [middles[at + 1] - middles[at] for at in range(first, end - 1)]
        limit = _APART * median(steps)
        cuts = [first]
        cuts += [
            at
            for at in range(first + 1, end)
            if (len(rows[at]) > 1) != (len(rows[at - 1]) > 1)
            or (len(rows[at]) == 2 and len(rows[at - 1]) >= _MANY)
            or middles[at] - middles[at - 1] > limit
        ]
        own: list[tuple[int, int, list[tuple[float, float]]]] = []
        for begin, stop in pairwise([*cuts, end]):
            stripes = _stripes(rows[begin:stop], median(sizes[begin:stop]))
            if own:
                last_begin, _, last_stripes = own[-1]
                both = _stripes(rows[last_begin:stop], median(sizes[last_begin:stop]))
                if len(both) >= max(len(last_stripes), len(stripes)):
                    own[-1] = last_begin, stop, both
                    continue
            own.append((begin, stop, stripes))
        for begin, stop, stripes in own:
            while begin < stop and len(rows[begin]) < 2:
                begin += 1
            while begin < stop and len(rows[stop - 1]) < 2:
                stop -= 1
            if stripes and begin < stop:
                found.append((begin, stop, stripes))
    return found


def _middle(group: list[Line]) -> float:
    return sum(line.top + line.bottom for line in group) / (2 * len(group))


def _is_head(row: list[Segment], stripes: list[tuple[float, float]], down: float, size: float) -> bool:
    """Return whether a row above a table is the head of some of its columns."""
    return len(row) == 1 and row[0].left > stripes[0][0] and len(row[0].text) < 60 and down < 2.5 * size


def _blocks(
    groups: list[list[Line]], rows: list[list[Segment]], sizes: list[float], tops: list[float]
) -> list[tuple[int, int]]:
    """Return runs of rows (first, end) that may be tables; they begin and end with rows of several cells."""
    found: list[tuple[int, int]] = []
    first, last, seeds = -1, -1, 0
    for at, row in enumerate(rows):
        limit = _CELL * max(sizes[at], 1.0)
        is_seed = len(row) > 1 and any(b.left - a.right >= limit for a, b in pairwise(row))
        if first >= 0:
            far = tops[at] - max(line.bottom for line in groups[at - 1]) > _FAR * max(
                sizes[at], sizes[at - 1]
            )
            singles = at - last - 1
            if far or (not is_seed and (singles >= _SINGLES or _is_prose(rows, at))):
                if seeds > 1:
                    found.append((first, last + 1))
                first, seeds = -1, 0
        if is_seed:
            first = at if first < 0 else first
            last = at
            seeds += 1
    if first >= 0 and seeds > 1:
        found.append((first, last + 1))
    return found


def _is_prose(rows: list[list[Segment]], at: int) -> bool:
    """Return whether a row is running text rather than a long label that goes on in the next row."""
    if sum(len(one.text) for one in rows[at]) <= _PROSE:
        return False
    after = rows[at + 1] if at + 1 < len(rows) else []
    return len(after) < 2 or not _continues(rows[at][-1].text, after[0].text)


def _continues(label: str, more: str) -> bool:
    """Return whether a label goes on in the next line."""
    is_open = label.count("(") > label.count(")") or _ARTICLES.search(label) is not None
    return more[:1].islower() or (is_open and not label.endswith(":"))


def _stripes(rows: list[list[Segment]], size: float) -> list[tuple[float, float]]:
    """Return the stripes (left, right) between the columns of rows that have several cells."""
    edges: list[
        tuple[float, int, int]
    ] = []  # x, change of the rows that cross, change of those on both sides
    counted = [row for row in rows if len(row) > 1 and any(one.number for one in row[1:])]
    if len(counted) < 2:
        counted = [row for row in rows if len(row) > 1]
    for row in counted:  # without heads, which span columns
        edges += [(one.left, 1, 0) for one in row] + [(one.right, -1, 0) for one in row]
        edges += [(row[0].right, 0, 1), (row[-1].left, 0, -1)]
    edges.sort()
    free: list[tuple[float, float]] = []
    crossing = inside = 0
    begun: float | None = None
    for number, (x, cross, both) in enumerate(edges):
        crossing += cross
        inside += both
        if number + 1 < len(edges) and edges[number + 1][0] == x:
            continue
        clear = inside - crossing  # the rows with cells on both sides that do not cross
        is_free = clear >= 2 and crossing <= _CROSSED * clear
        if is_free and begun is None:
            begun = x
        elif not is_free and begun is not None:
            free.append((begun, x))
            begun = None
    least = _STRIPE * size
    found: list[tuple[float, float]] = []
    for left, right in free:
        own = [one for row in counted for one in row if one.left >= left - 0.01 and one.right <= right + 0.01]
        at = left
        for start, end in _clusters(own):  # cells of a column that is empty in most rows
            if start - at >= least:
                found.append((at, start))
            at = max(at, end)
        if right - at >= least:
            found.append((at, right))
    return found


def _clusters(cells: list[Segment]) -> list[tuple[float, float]]:
    """Return the extents of the groups of overlapping cells that have a number or at least three cells."""
    found: list[tuple[float, float]] = []
    group: list[Segment] = []
    end = 0.0
    for one in [*sorted(cells, key=lambda one: one.left), None]:
        if group and (one is None or one.left > end):
            if len(group) > 2 or any(part.number for part in group):
                found.append((group[0].left, end))
            group = []
        if one is not None:
            end = max(end, one.right) if group else one.right
            group.append(one)
    return found


def _is_after(part: Segment, stripe: tuple[float, float]) -> bool:
    """Return whether a cell begins after a stripe; one inside it belongs to the nearer column."""
    left, right = stripe
    if part.left >= left and part.right <= right:
        return part.left - left > right - part.right
    return part.left >= (left + right) / 2


def _cells(row: list[Segment], stripes: list[tuple[float, float]], number: int) -> TableRow:
    """Return a row with each cell in its column."""
    found = TableRow([""] * (len(stripes) + 1), [number])
    for segment in row:
        for part in _split(segment, stripes):
            first = sum(1 for stripe in stripes if _is_after(part, stripe))
            last = max(sum(1 for stripe in stripes if stripe[1] < part.right), first)
            column = first
            if last > first:
                if part.number:
                    column = last
                else:
                    found.spans = True
            text = part.text
            found.cells[column] = f"{found.cells[column]} {text}" if found.cells[column] else text
            if part.number:
                found.numbers.add(column)
    return found


def _split(segment: Segment, stripes: list[tuple[float, float]]) -> list[Segment]:
    """Split a segment at the stripes where a number begins or ends."""
    if len(segment.words) < 2:
        return [segment]
    wide = (
        _GAP * sum(word[1] - word[0] for word in segment.words) / sum(len(word[2]) for word in segment.words)
    )
    found: list[list[tuple[float, float, str]]] = [[segment.words[0]]]
    for before, word in pairwise(segment.words):
        crosses = any(before[1] <= stripe[1] and word[0] >= stripe[0] for stripe in stripes)
        is_number = _NUMBER.fullmatch(word[2]) is not None or _NUMBER.fullmatch(before[2]) is not None
        if crosses and is_number and word[0] - before[1] > wide:
            found.append([word])
        else:
            found[-1].append(word)
    if len(found) == 1:
        return [segment]
    parts = [Segment(words[0][0], max(word[1] for word in words), words) for words in found]
    for part in parts:
        part.number = _is_number(part)
    return parts


def _merge(rows: list[TableRow], middles: list[float], size: float) -> list[TableRow]:
    """Merge lines that belong to one row of the table."""
    steps = [after - before for before, after in pairwise(middles)]
    apart = [
        step
        for step, (before, after) in zip(steps, pairwise(rows), strict=True)
        if before.numbers & after.numbers
    ]
    if not apart:
        full = [
            step
            for step, (before, after) in zip(steps, pairwise(rows), strict=True)
            if before.cells[0] and after.cells[0] and _common(before, after) > 1
        ]
        apart = full if 2 * len(full) >= len(steps) else []
    close = _CLOSE * median(apart) if apart else _valley(steps, size)
    found = [rows[0]]
    headed = bool(rows[0].numbers - {0})
    counted = any(row.numbers - {0} for row in rows)
    for row, step in zip(rows[1:], steps, strict=True):
        last = found[-1]
        both = last.numbers & row.numbers
        is_same = False
        if not both:
            is_same = step <= close or _goes_on(last, row, step, size)
            is_head = not headed and (counted or not (last.cells[0] and row.cells[0]))
            if not is_same and is_head and not (row.numbers - {0}) and not last.spans:
                is_same = step <= 1.35 * size and not row.spans and sum(map(bool, row.cells)) > 1
        headed = headed or bool(row.numbers - {0} and row.cells[0])
        if not is_same or (last.spans and not headed):
            found.append(row)
            continue
        last.cells = [f"{a} {b}" if a and b else a or b for a, b in zip(last.cells, row.cells, strict=True)]
        last.members += row.members
        last.numbers |= row.numbers
        last.spans = last.spans or row.spans
    return found


def _common(before: TableRow, after: TableRow) -> int:
    return sum(1 for a, b in zip(before.cells, after.cells, strict=True) if a and b)


def _valley(steps: list[float], size: float) -> float:
    """Return the distance that separates lines of a row from rows, if there are two kinds of distances."""
    ordered = sorted(steps)
    for before, after in pairwise(ordered):
        if after >= 1.25 * before and before <= 1.5 * size and before > 0:
            return (before + after) / 2
    return 0.0


def _goes_on(last: TableRow, row: TableRow, step: float, size: float) -> bool:
    """Return whether a row continues the label of the row before it."""
    if step > 1.6 * size or not last.cells[0] or not row.cells[0]:
        return False
    if not _continues(last.cells[0], row.cells[0]):
        return False
    return not any(last.cells[1:]) or not any(row.cells[1:])
