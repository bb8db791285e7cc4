"""What another program has extracted: documents, passages, entities and relations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ketrag_fast.records import dataclass, field
from ketrag_fast.types import Document

_EXAMPLES: Final = 3


class SourcePassage(NamedTuple):
    """A passage of the other program: its id, the number of its document, and its text."""

    id: str
    document: int
    text: str


class ExtractedEntity(NamedTuple):
    """An entity, its descriptions, and the numbers of its passages."""

    name: str
    type: str
    descriptions: tuple[str, ...]
    passages: tuple[int, ...]


class ExtractedRelation(NamedTuple):
    """A relation between two names, its descriptions, its strength, and the numbers of its passages."""

    source: str
    target: str
    descriptions: tuple[str, ...]
    weight: float
    passages: tuple[int, ...]


class ExtractedReport(NamedTuple):
    """A report of a community: title, summary, whether it has narrower ones, and its passages."""

    title: str
    summary: str
    is_wide: bool
    passages: tuple[int, ...]


class Skipped:
    """Counts of records that could not be imported, with examples of each kind."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[int, list[str]]] = {}

    def add(self, what: str, example: object = "", count: int = 1) -> None:
        """Add to the count of a kind, such as "entities without a passage"."""
        before, examples = self._rows.get(what, (0, []))
        text = str(example)[:80]
        if text and len(examples) < _EXAMPLES:
            examples.append(text)
        self._rows[what] = (before + count, examples)

    def rows(self) -> list[dict[str, Any]]:
        """Return the counts in order of first occurrence."""
        return [
            {"what": what, "count": count, "examples": list(examples)}
            for what, (count, examples) in self._rows.items()
        ]

    def __len__(self) -> int:
        """Return the total count."""
        return sum(count for count, _ in self._rows.values())


@dataclass(slots=True)
class Extracted:
    """What to import. `skipped` counts records that are lost, `notes` those imported in another form."""

    documents: list[Document] = field(default_factory=list)
    passages: list[SourcePassage] = field(default_factory=list)
    entities: list[ExtractedEntity] = field(default_factory=list)
    relations: list[ExtractedRelation] = field(default_factory=list)
    reports: list[ExtractedReport] = field(default_factory=list)
    skipped: Skipped = field(default_factory=Skipped)
    notes: Skipped = field(default_factory=Skipped)

    numbers: dict[str, int] = field(default_factory=dict)
    """Numbers of the passages by id."""

    def add_passage(self, name: str, document: int, text: str) -> None:
        """Add a passage of a document."""
        self.numbers[name] = len(self.passages)
        self.passages.append(SourcePassage(name, document, text))

    def add_entity(self, name: str, kind: str, told: tuple[str, ...], ids: Sequence[str]) -> None:
        """Add an entity by the ids of its passages; without one it is skipped."""
        passages = self.passages_of("entities", name, ids)
        if passages:
            self.entities.append(ExtractedEntity(name, kind, told, passages))

    def add_relation(
        self, source: str, target: str, told: tuple[str, ...], weight: float, ids: Sequence[str]
    ) -> None:
        """Add a relation by the ids of its passages; without one it is skipped."""
        passages = self.passages_of("relations", f"{source} -- {target}", ids)
        if passages:
            self.relations.append(ExtractedRelation(source, target, told, weight, passages))

    def passages_of(self, what: str, name: object, ids: Sequence[str]) -> tuple[int, ...]:
        """Return the numbers of passages by their ids; ids that do not exist are counted."""
        known = self.numbers
        if len(ids) == 1 and ids[0] in known:  # most entities
            return (known[ids[0]],)
        lost = [one for one in ids if one not in known]
        if lost:
            self.skipped.add(f"ids of passages in {what} that do not exist", lost[0], len(lost))
        if len(lost) == len(ids):
            self.skipped.add(f"{what} without a passage", name)
        return tuple(dict.fromkeys(known[one] for one in ids if one in known))
