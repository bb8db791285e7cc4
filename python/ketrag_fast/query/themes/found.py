"""Themes together with their units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ketrag_fast.systems.shared.rows import U32
from ketrag_fast.types.themes import Themes


@dataclass(frozen=True, slots=True)
class FoundThemes:
    """Themes with their units.

    Attributes:
        themes: the themes.
        units: the distinct units of each theme by theme id, central units first.
        visible: all units that were clustered, in order.
    """

    themes: Themes
    units: Mapping[str, U32]
    visible: U32
