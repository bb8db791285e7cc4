"""What an extraction asks for. All of it enters the key under which replies are kept."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final

from ketrag_fast.errors import ConfigError

ENTITY_TYPES: Final = ("person", "organization", "place", "event", "work", "date", "concept")
"""graphrag's four (organization, person, geo, event) with works, dates and concepts, often asked for."""
MAX_TYPES: Final = 64
MAX_TYPE: Final = 64
MAX_GLEANINGS: Final = 8


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """`entity_types`: from which a type is taken; none at all leaves it to the model. `language`: of the
    descriptions (other than English: the passage's own). `gleanings`: how often to ask for what was
    missed. `terse`: arrays in place of objects with keys, which says the same in fewer tokens.
    """

    entity_types: tuple[str, ...] = ENTITY_TYPES
    language: str = "english"
    gleanings: int = 0
    terse: bool = True

    def __post_init__(self) -> None:
        if len(self.entity_types) > MAX_TYPES or len(set(self.entity_types)) < len(self.entity_types):
            raise ConfigError(f"entity_types: at most {MAX_TYPES}, each once")
        for name in self.entity_types:
            if not 0 < len(name) <= MAX_TYPE or name != name.strip() or not _printable(name):
                raise ConfigError(f"entity_types: {name[:MAX_TYPE]!r} is no name of a type")
        if not 0 <= self.gleanings <= MAX_GLEANINGS:
            raise ConfigError(f"gleanings: {self.gleanings} is not from 0 to {MAX_GLEANINGS}")

    @property
    def english(self) -> bool:
        """Whether descriptions are asked for in English."""
        return self.language.lower() in ("english", "en")


def _printable(text: str) -> bool:
    return not any(unicodedata.category(c) in ("Cc", "Cs") for c in text)
