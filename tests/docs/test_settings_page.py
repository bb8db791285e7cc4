"""docs/settings.md says what the code says."""

from __future__ import annotations

from pathlib import Path
from typing import get_args, get_type_hints

from ketrag_fast.config import FIELDS, Settings
from ketrag_fast.systems.presets import PRESETS

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def shown(value: object) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def table() -> str:
    lines = ["| setting | default | values | concerns | what it is |", "|---|---|---|---|---|"]
    types = get_type_hints(Settings)
    for name, spec in FIELDS.items():
        meta = spec.metadata
        low, high = meta["low"], meta["high"]
        values = [str(option) for option in get_args(types[name]) if isinstance(option, str)]
        bounds = f"{low:,} to {high:,}" if high is not None else f"from {low}" if low is not None else ""
        concern = meta["concerns"] + (", rebuild" if meta["rebuild"] else "")
        cells = (f"`{name}`", f"`{shown(spec.default)}`", ", ".join(values) or bounds, concern, meta["help"])
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def presets() -> str:
    lines = ["| system | sets |", "|---|---|"]
    for system, row in PRESETS.items():
        values = ", ".join(f"{name} = {shown(value)}" for name, value in row.items())
        lines.append(f"| `{system}` | {values or 'nothing: the defaults'} |")
    return "\n".join(lines)


def test_the_page_has_the_tables_of_the_code() -> None:
    page = PAGE.read_text("utf-8")
    assert table() in page
    assert presets() in page
