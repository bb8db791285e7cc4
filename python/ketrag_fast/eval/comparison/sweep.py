"""`--vary core_ratio=0.1,0.2`: the points of a sweep, in an order that minimises building."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from ketrag_fast.base.config import Settings, catalogue, find_setting, parse
from ketrag_fast.errors import ConfigError
from ketrag_fast.eval.comparison.configurations import MOST, Configuration, check_configurations, units_of


def parse_vary(text: str) -> tuple[str, list[Any]]:
    """Parse a setting and its values. Each value is checked as the setting's flag checks it."""
    key, equals, rest = text.partition("=")
    if not equals:
        raise ConfigError(
            f"--vary {text!r} is not SETTING=VALUE,VALUE", hint="for example core_ratio=0.2,0.4,0.8"
        )
    name = find_setting(key, " (in --vary)")
    if catalogue()[name].concerns in ("run", "read"):
        raise ConfigError(f"--vary {name}: the setting does not change scores")
    if name == "mode":
        raise ConfigError("--vary does not take mode", hint="use --mode text,keyword,walk")
    values = []
    for part in rest.split(","):
        value = parse(name, part)
        Settings(**{name: value})
        if value in values:
            raise ConfigError(f"--vary {name}: {part.strip()} is repeated")
        values.append(value)
    return name, values


def points(vary: Sequence[tuple[str, Sequence[Any]]], *, grid: bool = False) -> list[Configuration]:
    """Return a point for each value of each setting, the others unchanged; with `grid` every combination."""
    names = [name for name, _ in vary]
    if not vary:
        raise ConfigError("nothing is varied", hint="--vary SETTING=VALUE,VALUE,...")
    if len(set(names)) != len(names):
        raise ConfigError(f"--vary {next(n for n in names if names.count(n) > 1)} is given twice")
    rows: Iterable[dict[str, Any]]
    if grid:
        rows = (dict(zip(names, values, strict=True)) for values in product(*(v for _, v in vary)))
    else:
        rows = ({name: value} for name, values in vary for value in values)
    found = []
    for row in rows:
        found.append(Configuration(", ".join(f"{n}={_text(v)}" for n, v in row.items()), row, row))
        if len(found) > MOST:
            raise ConfigError(f"a sweep has at most {MOST} points", hint="vary less, or leave --grid out")
    return check_configurations(found)


def order(configurations: Sequence[Configuration], common: Settings) -> list[int]:
    """Return the order of building: points with the same embedder and units together, the largest core first.

    With the largest core first, later points find the replies to all their chunks cached.
    """
    groups: dict[tuple[Any, ...], int] = {}
    keys = []
    for place, configuration in enumerate(configurations):
        settings = configuration.resolved(common)
        group = groups.setdefault(units_of(settings), len(groups))
        # An index keeps its entity graph, so points without one are built first.
        keys.append((group, settings.llm != "none", -settings.core_ratio, place))
    return [place for *_, place in sorted(keys)]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
