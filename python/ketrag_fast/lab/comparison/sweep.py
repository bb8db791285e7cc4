"""`--vary core_ratio=0.1,0.2`: the points of a sweep, in an order that builds as little as possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from ketrag_fast.base.config import Settings, catalogue, find_setting, parse
from ketrag_fast.errors import ConfigError
from ketrag_fast.lab.comparison.configurations import MOST, Configuration, check_configurations, units_of


def parse_vary(text: str) -> tuple[str, list[Any]]:
    """A setting and its values. Each value is checked as the setting's own flag would check it."""
    key, equals, rest = text.partition("=")
    if not equals:
        raise ConfigError(f"--vary {text!r} is no SETTING=VALUE,VALUE", hint="as in core_ratio=0.2,0.4,0.8")
    name = find_setting(key, " (in --vary)")
    if catalogue()[name].concerns in ("run", "read"):
        raise ConfigError(f"--vary {name}: it changes no result that is scored")
    if name == "mode":
        raise ConfigError("--vary mode: name the modes with --mode", hint="--mode text,keyword,walk")
    values = []
    for part in rest.split(","):
        value = parse(name, part)
        Settings(**{name: value})
        if value in values:
            raise ConfigError(f"--vary {name}: {part.strip()} comes twice")
        values.append(value)
    return name, values


def points(vary: Sequence[tuple[str, Sequence[Any]]], *, grid: bool = False) -> list[Configuration]:
    """Each value of each setting with the others as they are; with `grid` every combination."""
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
    """Places in the order of building: what shares embedder and units together, then the larger core first.

    With the largest core first every chunk that a later point needs has been read by a model before.
    """
    groups: dict[tuple[Any, ...], int] = {}
    keys = []
    for place, configuration in enumerate(configurations):
        settings = configuration.resolved(common)
        group = groups.setdefault(units_of(settings), len(groups))
        # An index that has a skeleton keeps it: what is to have none is built before.
        keys.append((group, settings.llm != "none", -settings.core_ratio, place))
    return [place for *_, place in sorted(keys)]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
