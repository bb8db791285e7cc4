"""The options of the extraction prompt. All of them are part of the reply key."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final

from ketrag_fast.errors import ConfigError

ENTITY_TYPES: Final = ("person", "organization", "place", "event", "work", "date", "concept")
"""GraphRAG's four types (organization, person, geo, event) plus works, dates and concepts."""
MAX_TYPES: Final = 64
MAX_TYPE: Final = 64
MAX_GLEANINGS: Final = 8


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """Options of the extraction prompt.

    Args:
        entity_types: allowed types; if empty, the model chooses.
        language: language of the documents. If it is not English, as with `auto`, descriptions are requested
            in the language of the passage.
        gleanings: number of follow-up prompts for missed entities and relations.
    """

    entity_types: tuple[str, ...] = ENTITY_TYPES
    language: str = "english"
    gleanings: int = 0

    def __post_init__(self) -> None:
        if len(self.entity_types) > MAX_TYPES or len(set(self.entity_types)) < len(self.entity_types):
            raise ConfigError(
                f"entity_types must have at most {MAX_TYPES} different names, got {len(self.entity_types)}"
            )
        for name in self.entity_types:
            if not 0 < len(name) <= MAX_TYPE or name != name.strip() or not _printable(name):
                raise ConfigError(f"entity_types: {name[:MAX_TYPE]!r} is not a valid type name")
        if not 0 <= self.gleanings <= MAX_GLEANINGS:
            raise ConfigError(f"gleanings must be from 0 to {MAX_GLEANINGS}, got {self.gleanings}")

    @property
    def english(self) -> bool:
        """Whether descriptions should be in English."""
        return self.language.lower() in ("english", "en")


def _printable(text: str) -> bool:
    return not any(unicodedata.category(c) in ("Cc", "Cs") for c in text)
