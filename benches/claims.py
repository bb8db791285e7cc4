"""Draw docs/pictures/claims.svg and write the README's table of scores from benches/results: `python benches/claims.py`.

Left the share of questions with an answer in the context, by its size and with intervals; right recall@5. The colours follow the
page's scheme, light or dark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from page import read_results

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "pictures" / "claims.svg"
README = ROOT / "README.md"
ROWS = (("bm25", "none"), ("walk", "none"), ("text", "MiniLM"), ("fused", "MiniLM"), ("walk", "MiniLM"))
"""Modes of the README's table; those that were not measured on all three sets are left out."""
NAMES = {"musique-dev": "MuSiQue, 2 to 4 hops", "2wiki-dev": "2WikiMultihopQA", "hotpotqa-dev": "HotpotQA"}
SERIES = (
    ("walk, MiniLM", "walk with MiniLM", "a"),
    ("walk", "walk, no model", "b"),
    ("fused, MiniLM", "BM25 + MiniLM, fused", "c"),
    ("text, MiniLM", "MiniLM", "d"),
    ("bm25", "BM25", "e"),
)
BUDGETS = (12_000, 6_000, 3_000, 1_500)
LIGHT = {"a": "#0072b2", "b": "#c45a00", "c": "#007a5a", "d": "#a8467f", "e": "#5c5c66"}
DARK = {"a": "#56b4e9", "b": "#e69f00", "c": "#2fc493", "d": "#e38fbf", "e": "#b5b5c0"}
WIDTH, PANEL, LEFT, PLOT, TOP = 860, 236, 44, 376, 66
BARS = 470


@dataclass(frozen=True)
class Scale:
    """From values to places."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The place of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def style() -> str:
    """Colours by day and by night, and the same letters everywhere."""

    def rules(ink: str, soft: str, line: str, colours: dict[str, str]) -> str:
        own = "".join(f".{k}{{stroke:{c};fill:{c}}}" for k, c in colours.items())
        return f"text{{fill:{ink}}}.t{{fill:{soft}}}.g{{stroke:{line}}}.i{{stroke:{ink};stroke-width:1.5}}.o{{fill:{soft};fill-opacity:.45}}{own}"

    return (
        "<style>text{font:12px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;stroke:none}"
        ".h{font-weight:600}.l{fill:none;stroke-width:2}.w{stroke-width:1.5;opacity:.6}.bar{stroke:none}"
        + rules("#1c1d22", "#5b5e69", "#dcdee4", LIGHT)
        + "@media(prefers-color-scheme:dark){"
        + rules("#e8e9ee", "#a2a6b3", "#3a3d47", DARK)
        + "}</style>"
    )


def text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    """A label."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def panel(name: str, data: dict[str, Any], top: float) -> list[str]:
    """One question set."""
    bottom = top + PANEL - 70
    rankings = data["rankings"]
    shown = [(key, label, kind) for key, label, kind in SERIES if key in rankings]
    lows = [rankings[key][f"answer at {b:,}"][1] for key, _, _ in shown for b in BUDGETS]
    y = Scale(10 * (min(lows) // 10), 100, bottom, top)
    x = Scale(0, len(BUDGETS) - 1, LEFT + 14, LEFT + PLOT - 14)
    about = str(data["about"]).rstrip(".")
    out = [text(4, top - 22, NAMES[name], kind="h"), text(LEFT + PLOT, top - 22, about, "end", "t")]
    step = 10 if y.low >= 40 else 20
    for tick in range(int(y.low), 101, step):
        out.append(
            f'<line class="g" x1="{LEFT}" x2="{LEFT + PLOT}" y1="{y.at(tick):.1f}" y2="{y.at(tick):.1f}"/>'
        )
        out.append(text(LEFT - 6, y.at(tick) + 4, str(tick), "end", "t"))
    order = sorted(BUDGETS)
    out += [text(x.at(k), bottom + 18, f"{budget:,}", "middle", "t") for k, budget in enumerate(order)]
    for place, (key, label, kind) in enumerate(shown):
        points = []
        for k, budget in enumerate(order):
            mean, low, high = rankings[key][f"answer at {budget:,}"]
            px, py = x.at(k) + 3 * (place - len(shown) / 2), y.at(mean)
            points.append(f"{px:.1f},{py:.1f}")
            tip = (
                f"<title>{escape(label)} at {budget:,} tokens: {mean:.1f} % ({low:.1f} to {high:.1f})</title>"
            )
            out.append(
                f'<line class="w {kind}" x1="{px:.1f}" x2="{px:.1f}" y1="{y.at(low):.1f}" y2="{y.at(high):.1f}"/>'
            )
            out.append(f'<circle class="{kind}" cx="{px:.1f}" cy="{py:.1f}" r="3">{tip}</circle>')
        out.append(f'<polyline class="l {kind}" style="fill:none" points="{" ".join(points)}"/>')
    return [*out, *bars(name, rankings, top)]


def bars(name: str, rankings: dict[str, Any], top: float) -> list[str]:
    """Recall@5, ours with their intervals."""
    rows = [(label, kind, rankings[key]["recall@5"]) for key, label, kind in SERIES if key in rankings]
    rows.sort(key=lambda row: -row[2][0])
    x = Scale(0, 100, BARS + 150, WIDTH - 44)
    out = [text(BARS, top - 22, "recall@5, %", kind="t")]
    for row, (label, kind, (mean, low, high)) in enumerate(rows):
        y = top + 24 * row
        out.append(text(BARS + 144, y + 12, label, "end"))
        width = x.at(mean) - x.start
        out.append(
            f'<rect class="bar {kind}" x="{x.start}" y="{y:.0f}" width="{width:.1f}" height="16" rx="2"/>'
        )
        if high > low:
            a, b = x.at(low), x.at(high)
            out.append(f'<line class="i" x1="{a:.1f}" x2="{b:.1f}" y1="{y + 8:.0f}" y2="{y + 8:.0f}"/>')
        out.append(text(x.at(max(mean, high)) + 6, y + 12, f"{mean:.1f}"))
    return out


def sets() -> dict[str, dict[str, Any]]:
    """Return what the figure shows of each set: its rankings by name, and its size in words."""
    results = read_results()
    found: dict[str, dict[str, Any]] = {}
    for name in NAMES:
        rankings: dict[str, dict[str, Any]] = {}
        for run, suffix in ((name, ""), (f"{name}-minilm", ", MiniLM")):
            for table in results[run]["tables"] if run in results else ():
                for mode, _, *values in table["rows"]:
                    own = rankings.setdefault(f"{mode}{suffix}", {})
                    own.update(zip(table["columns"][2:], values, strict=True))
        if rankings:
            found[name] = {"rankings": rankings, "about": results[name]["data"]}
    return found


def table(data: dict[str, dict[str, Any]]) -> str:
    """Return the README's table of recall@5."""
    lines = ["| mode | embedding model | MuSiQue | 2Wiki | HotpotQA |", "|---|---|---|---|---|"]
    for mode, model in ROWS:
        key = mode if model == "none" else f"{mode}, {model}"
        own = [data[name]["rankings"].get(key) for name in NAMES if name in data]
        if len(own) == len(NAMES) and all(own):
            cells = [f"{ranking['recall@5'][0]:.1f}" for ranking in own if ranking]
            lines.append(f"| `{mode}` | {model} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write() -> None:
    """Write the figure and the table."""
    data = sets()
    text = README.read_text("utf-8")
    README.write_text(
        re.sub(r"\| mode \| embedding model \|.*\n(\|.*\n)+", lambda _: table(data), text), "utf-8"
    )
    draw(data)


def draw(data: dict[str, dict[str, Any]]) -> None:
    """Write the figure."""
    height = TOP + PANEL * len(data)
    parts = [
        style(),
        text(4, 18, "Questions with an answer in the context, %, by its size in tokens", kind="h"),
    ]
    at = WIDTH - 4.0
    measured = {key for own in data.values() for key in own["rankings"]}
    for key, label, kind in reversed(SERIES):
        if key not in measured:
            continue
        at -= 7 * len(label) + 26
        parts.append(f'<rect class="bar {kind}" x="{at:.0f}" y="26" width="11" height="11" rx="3"/>')
        parts.append(text(at + 16, 36, label))
    for place, (name, own) in enumerate(data.items()):
        parts += panel(name, own, TOP + 18 + PANEL * place)
    label = "Answers by context size, and recall@5, by mode on three question sets"
    OUT.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">'
        + "\n".join(parts)
        + "</svg>\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    write()
