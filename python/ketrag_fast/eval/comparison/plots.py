"""Plots as inline SVG, without scripts, fonts or links. Colours come from the page's style, light or dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 760
_CHAR: Final = 7.5  # of the 12 px sans-serif that the style asks for, on the generous side
_ROW: Final = 26
SERIES: Final = 8
"""Number of colours in the style; further series reuse them."""


@dataclass(frozen=True, slots=True)
class Point:
    """A value with its optional interval. `label` is printed next to it, `tip` is shown on hover."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    label: str = ""
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one colour; `joined` draws a line through them in order of x."""

    name: str
    points: Sequence[Point]
    joined: bool = False


@dataclass(frozen=True, slots=True)
class StackedBar:
    """One row of stacked parts."""

    label: str
    parts: Sequence[tuple[str, float]]
    total: str


def intervals(rows: Sequence[tuple[str, Sequence[tuple[str, float, float | None, float | None]]]]) -> str:
    """Plot shares in percent with whiskers: for each row some (series, value, low, high)."""
    names = list(dict.fromkeys(series for _, values in rows for series, *_ in values))
    left = _gutter([name for name, _ in rows])
    ends = [
        x for _, values in rows for _, value, low, high in values for x in (value, low, high) if x is not None
    ]
    low, high = _frame(min(ends, default=0.0), max(ends, default=100.0), floor=0.0, roof=100.0)
    ticks = _ticks(low, high)
    step = 12
    out: list[str] = []
    top = y = 8.0
    for name, values in rows:
        height = max(_ROW, step * len(values) + 10)
        out.append(_text(left - 8, y + height / 2 + 4, _short(name), "end", title=name))
        first = y + height / 2 - step * (len(values) - 1) / 2
        for place, (series, value, lower, upper) in enumerate(values):
            at, row = _scale(value, low, high, left, WIDTH - 56), first + step * place
            colour = names.index(series) % SERIES
            if lower is not None and upper is not None:
                a, b = (_scale(v, low, high, left, WIDTH - 56) for v in (lower, upper))
                out.append(
                    f'<line class="w s{colour}" x1="{a:.1f}" x2="{b:.1f}" y1="{row:.1f}" y2="{row:.1f}"/>'
                )
            tip = f"{name}, {series}: {value:.1f} %"
            if lower is not None and upper is not None:
                tip += f" ({lower:.1f} to {upper:.1f})"
            out.append(f'<circle class="p s{colour}" cx="{at:.1f}" cy="{row:.1f}" r="4">{_tip(tip)}</circle>')
        y += height
    grid = [_vertical(_scale(t, low, high, left, WIDTH - 56), top, y, f"{t:g} %") for t in ticks]
    return _svg(y + 26, [*grid, *out]) + legend(names)


def bars(rows: Sequence[StackedBar], unit: str) -> str:
    """Plot stacked horizontal bars with their totals."""
    names = list(dict.fromkeys(part for row in rows for part, _ in row.parts))
    left = _gutter([row.label for row in rows])
    right = WIDTH - 16 - _CHAR * max((len(row.total) for row in rows), default=0)
    top = 8.0
    most = max((sum(value for _, value in row.parts) for row in rows), default=0.0) or 1.0
    high = _frame(0.0, most)[1]
    out: list[str] = []
    y = top
    for row in rows:
        out.append(_text(left - 8, y + _ROW / 2 + 4, _short(row.label), "end", title=row.label))
        x = float(left)
        for part, value in row.parts:
            width = value / high * (right - left)
            colour = names.index(part) % SERIES
            tip = f"{row.label}, {part}: {value:,.4g} {unit}"
            if width > 0:
                out.append(
                    f'<rect class="b s{colour}" x="{x:.1f}" y="{y + 4:.1f}" width="{max(width, 0.5):.1f}" '
                    f'height="{_ROW - 8}">{_tip(tip)}</rect>'
                )
            x += width
        out.append(_text(x + 6, y + _ROW / 2 + 4, row.total, "start"))
        y += _ROW
    grid = [_vertical(_scale(t, 0.0, high, left, right), top, y, f"{t:,g}") for t in _ticks(0.0, high)]
    return _svg(y + 26, [*grid, *out]) + legend(names)


def scatter(series: Sequence[Series], x_label: str, y_label: str) -> str:
    """Plot points with whiskers; y is a percentage."""
    points = [point for one in series for point in one.points]
    height, left, top = 320.0, 64, 30.0
    right, bottom = WIDTH - 24.0, height - 46.0
    x_low, x_high = (
        _frame(min(p.x for p in points), max(p.x for p in points), floor=0.0) if points else (0.0, 1.0)
    )
    ends = [v for p in points for v in (p.y, p.low, p.high) if v is not None]
    y_low, y_high = _frame(min(ends), max(ends), floor=0.0, roof=100.0) if ends else (0.0, 100.0)
    out = [
        _vertical(_scale(t, x_low, x_high, left, right), top, bottom, f"{t:,g}")
        for t in _ticks(x_low, x_high)
    ]
    for tick in _ticks(y_low, y_high):
        y = _scale(tick, y_low, y_high, bottom, top)
        out.append(f'<line class="g" x1="{left}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(_text(left - 8, y + 4, f"{tick:,g}", "end", kind="t"))
    out.append(_text((left + right) / 2, height - 6, x_label, "middle", kind="t"))
    out.append(_text(4, 14, y_label, "start", kind="t"))
    taken: list[tuple[float, float, float]] = []
    labels: list[str] = []
    for number, one in enumerate(series):
        colour = number % SERIES
        placed = [
            (_scale(p.x, x_low, x_high, left, right), _scale(p.y, y_low, y_high, bottom, top), p)
            for p in one.points
        ]
        if one.joined and len(placed) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in sorted(placed, key=lambda entry: entry[0]))
            out.append(f'<polyline class="l s{colour}" points="{path}"/>')
        for x, y, point in placed:
            if point.low is not None and point.high is not None:
                a, b = (_scale(v, y_low, y_high, bottom, top) for v in (point.low, point.high))
                out.append(f'<line class="w s{colour}" x1="{x:.1f}" x2="{x:.1f}" y1="{a:.1f}" y2="{b:.1f}"/>')
            out.append(
                f'<circle class="p s{colour}" cx="{x:.1f}" cy="{y:.1f}" r="4">{_tip(point.tip)}</circle>'
            )
            labels += _label(point.label, x, y, right, taken)
    return _svg(height, [*out, *labels]) + legend([one.name for one in series])


def legend(names: Sequence[str]) -> str:
    """Return the legend of the colours; empty for a single unnamed series."""
    if not any(names) or len(names) < 2:
        return ""
    keys = [
        f'<span class="k"><i class="s{n % SERIES}"></i>{escape(name)}</span>' for n, name in enumerate(names)
    ]
    return f'<p class="legend">{"".join(keys)}</p>'


def _label(
    label: str, x: float, y: float, right: float, taken: list[tuple[float, float, float]]
) -> list[str]:
    """Return the label of a point, unless another label occupies its position."""
    if not label:
        return []
    shown = _short(label)
    width = _CHAR * len(shown)
    for anchor, start in (("start", x + 8), ("end", x - 8 - width)):
        for shift in (4.0, -9.0, 17.0):
            line = y + shift
            free = all(
                abs(line - other) > 12 or start > end or start + width < begin for other, begin, end in taken
            )
            if free and start > 64 and start + width < right + 20:
                taken.append((line, start, start + width))
                return [_text(x + 8 if anchor == "start" else x - 8, line, shown, anchor, title=label)]
    return []


def _gutter(names: Sequence[str]) -> int:
    return round(16 + _CHAR * max((len(_short(name)) for name in names), default=4))


def _short(name: str) -> str:
    return name if len(name) <= 36 else name[:35] + "…"


def _scale(value: float, low: float, high: float, start: float, end: float) -> float:
    return start + (value - low) / ((high - low) or 1.0) * (end - start)


def _frame(
    low: float, high: float, *, floor: float | None = None, roof: float | None = None
) -> tuple[float, float]:
    """Return round numbers around the values, starting at zero if that costs little space; `floor` and `roof`
    bound the frame unless a value is beyond them.
    """
    first, last = low, high
    if low > 0 and low < 0.4 * high:
        low = 0.0
    if high <= low:
        low, high = low - (abs(low) or 1.0) * 0.5, high + (abs(high) or 1.0) * 0.5
    step = _step(high - low)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    low = low if floor is None or first < floor else max(low, floor)
    high = high if roof is None or last > roof else min(high, roof)
    return (low, high) if high > low else (low, low + step)


def _step(span: float) -> float:
    rough = span / 6
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next((m * power for m in (1, 2, 2.5, 5) if m * power >= rough - 1e-12), 10 * power)


def _ticks(low: float, high: float) -> list[float]:
    step = _step(high - low)
    first = math.ceil(low / step - 1e-9)
    return [round(step * n, 12) for n in range(first, first + 12) if step * n <= high + step * 1e-6]


def _vertical(x: float, top: float, bottom: float, text: str) -> str:
    """Return a grid line with its number below."""
    line = f'<line class="g" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}"/>'
    return line + _text(x, bottom + 16, text, "middle", kind="t")


def _text(x: float, y: float, text: str, anchor: str, *, kind: str = "n", title: str = "") -> str:
    tip = _tip(title) if title and title != text else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}{tip}</text>'


def _tip(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


def _svg(height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" preserveAspectRatio="xMinYMin meet">'
        + "".join(parts)
        + "</svg>"
    )
