"""docs/settings.md says what the code says."""

from __future__ import annotations

from pathlib import Path

from ketrag_fast.config import catalogue
from ketrag_fast.systems.registry import registry

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def shown(value: object) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def table() -> str:
    lines = ["| setting | default | values | concerns | whose | what it is |", "|---|---|---|---|---|---|"]
    for name, spec in catalogue().items():
        low, high = spec.low, spec.high
        bounds = f"{low:,} to {high:,}" if high is not None else f"from {low}" if low is not None else ""
        concern = spec.concerns + (", rebuild" if spec.rebuild else "")
        values = ", ".join(spec.choices) or bounds
        cells = (f"`{name}`", f"`{shown(spec.default)}`", values, concern, spec.owner, spec.help)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def presets() -> str:
    lines = ["| system | sets |", "|---|---|"]
    for system, row in registry().presets.items():
        values = ", ".join(f"{name} = {shown(value)}" for name, value in row.items())
        lines.append(f"| `{system}` | {values or 'nothing: the defaults'} |")
    return "\n".join(lines)


def test_the_page_has_the_tables_of_the_code() -> None:
    page = PAGE.read_text("utf-8")
    assert table() in page
    assert presets() in page
