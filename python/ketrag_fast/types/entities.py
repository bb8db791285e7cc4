"""Entities and relations of a skeleton graph, with the sentences from which they were extracted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ketrag_fast.types.documents import Span
from ketrag_fast.types.wording import counted


@dataclass(frozen=True, slots=True)
class Relation:
    """An undirected relation between two entities, its strength, and the sentences that state it.

    Examples:
        >>> index.inspect.entity("Fram").relations[0].target
        'NANSEN'
    """

    source: str
    target: str
    description: str
    weight: float
    rank: int
    sources: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of the skeleton graph. `rank` is the number of its relations, which are sorted strongest first.

    `chunks` are the chunks from which it was extracted, `sources` the sentences that name it.

    Examples:
        >>> entity = index.inspect.entity("Fram")
        >>> entity.name, entity.rank
        ('FRAM', 1)
    """

    name: str
    type: str
    description: str
    rank: int
    chunks: tuple[int, ...]
    relations: tuple[Relation, ...]
    sources: tuple[Span, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that `ketrag graph --json` prints."""
        return {"schema": "ketrag/entity/1", **asdict(self)}

    def lines(self) -> Iterator[str]:
        """Yield the lines that `ketrag graph` prints: the strongest relations, and some sentences of each."""
        kind = f" ({self.type.lower()})" if self.type else ""
        relations, chunks = counted(len(self.relations), "relation"), counted(len(self.chunks), "chunk")
        yield f"{self.name}{kind}: {relations}, {chunks}"
        yield from (f"  {line}" for line in self.description.splitlines())
        for relation in self.relations[:_SHOWN]:
            yield f"- {relation.source} -- {relation.target}  (strength {relation.weight:g})"
            yield from (f"    {line}" for line in relation.description.splitlines())
            yield from _quote_spans(relation.sources, "    ", _SENTENCES)
        if len(self.relations) > _SHOWN:
            yield f"  ... and {len(self.relations) - _SHOWN:,} more (--json lists them all)"
        yield f"named in {counted(len(self.sources), 'sentence')}:"
        yield from _quote_spans(self.sources, "  ", _SHOWN)


_SHOWN, _SENTENCES = 20, 3


def _quote_spans(spans: Sequence[Span], indent: str, shown: int) -> Iterator[str]:
    for span in spans[:shown]:
        yield f"{indent}{span.document}[{span.start}:{span.end}] {' '.join(span.text.split())}"
    if len(spans) > shown:
        yield f"{indent}... and {len(spans) - shown:,} more"
