"""Rewrites the generated tables in docs/ from what the systems declare.

    python tools/make_tables.py            # rewrites them
    python tools/make_tables.py --check    # says which pages are stale, and exits with 1 if any is

A table stands between `<!-- table: NAME -->` and `<!-- end -->`. The systems of other packages are left out.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ketrag_fast.base.config import Setting, Settings, catalogue
from ketrag_fast.systems.planning import required_stages
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.system import Recipe, System

DOCS: Final = Path(__file__).parents[1] / "docs" / "reference"
PAGES: Final = ("settings.md", "all-settings.md", "presets.md", "modes.md")
_PLACE: Final = re.compile(r"(?<=<!-- table: )(\w+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)


def shown(value: object) -> str:
    """A value as a user writes it."""
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def rows(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in line] for line in body)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return re.sub(r" {2,}\|", " |", text) + "\n"


def settings_table() -> str:
    """Every setting, the shared ones first."""
    body = [
        (f"`{name}`", f"`{shown(spec.default)}`", _values(spec), _concern(spec), spec.owner, spec.help)
        for name, spec in catalogue().items()
    ]
    return rows(("setting", "default", "values", "concerns", "whose", "what it is"), body)


def _values(spec: Setting) -> str:
    low, high = spec.low, spec.high
    bounds = f"{low:,} to {high:,}" if high is not None else f"from {low}" if low is not None else ""
    return ", ".join(spec.choices) or bounds


def _concern(spec: Setting) -> str:
    return spec.concerns + (", rebuild" if spec.rebuild else "")


def presets_table() -> str:
    """Every preset: what `--system` takes."""
    body = []
    for system in registry().systems:
        for name, row in system.presets.items():
            values = ", ".join(f"{setting} = {shown(value)}" for setting, value in row.items())
            body.append((f"`{name}`", system.name, values or "nothing: the defaults", _rules(name, system)))
    return rows(("preset", "system", "sets", "rules that differ from the default variant"), body)


def _rules(preset: str, system: System) -> str:
    if preset not in system.rules:
        return ""
    found, usual = vars(system.rules[preset]), vars(system.rules[system.name])
    return ", ".join(f"{rule} = {shown(value)}" for rule, value in found.items() if value != usual[rule])


def modes_table() -> str:
    """Every mode, with the stages that its channels read and the settings that are its own."""
    found = registry()
    body = [
        (
            f"`{mode}`",
            recipe.help,
            found.system_of(mode).name,
            _needs(mode),
            ", ".join(f"`{name}`" for name in _settings(recipe)),
        )
        for mode, recipe in found.recipes.items()
    ]
    return rows(("mode", "what it does", "system", "needs the stages", "its settings"), body)


def _needs(mode: str) -> str:
    plain = required_stages(registry(), mode, Settings())
    more = [
        need
        for need in required_stages(registry(), mode, Settings(embedder="local:model"))
        if need not in plain
    ]
    also = f"; with an embedding model also {', '.join(more)}" if more else ""
    return ", ".join(plain) + also


def _settings(recipe: Recipe) -> list[str]:
    names = [share.of for share in recipe.shares if isinstance(share.of, str) and share.of != "rest"]
    if recipe.join == "shares":
        names += [name for channel in recipe.channels for name in registry().channels[channel].settings]
    names += [recipe.rollover] if recipe.rollover in catalogue() else []
    return list(dict.fromkeys(names))


def systems_table() -> str:
    """Every system with its source."""
    return rows(("system", "what it is", "source"), [(s.name, s.help, s.source) for s in registry().systems])


TABLES: Final[dict[str, Callable[[], str]]] = {
    "settings": settings_table,
    "presets": presets_table,
    "modes": modes_table,
    "systems": systems_table,
}


def renewed(page: str) -> str:
    """A page with its tables made anew."""
    return _PLACE.sub(lambda place: f"{place[1]}{place[2]}\n{TABLES[place[1]]()}\n", page)


def main(argv: Sequence[str]) -> int:
    """Rewrites the pages, or with `--check` compares them."""
    stale = []
    for name in PAGES:
        page = (DOCS / name).read_text("utf-8")
        new = renewed(page)
        if new != page:
            stale.append(name)
            if "--check" not in argv:
                (DOCS / name).write_text(new, "utf-8")
    said = "\n".join(f"docs/reference/{name}" for name in stale) or "all tables are up to date"
    sys.stdout.write(f"{said}\n")
    return 1 if stale and "--check" in argv else 0


if __name__ == "__main__":
    os.environ["KETRAG_EXTENSIONS"] = "none"
    sys.exit(main(sys.argv[1:]))
