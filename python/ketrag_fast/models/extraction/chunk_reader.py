"""Extract entities and relations from chunks: with an LLM, a recording or rules, or from stored replies only.

A reader is identified by its key. Its reply depends only on the key and the chunk, so a stored reply is never
requested again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import isfinite
from typing import Any, Final, NamedTuple

from ketrag_fast.models.extraction.options import PromptOptions
from ketrag_fast.models.extraction.parse import PARSER, join_extractions, parse_reply
from ketrag_fast.models.extraction.prompt import build_prompt, follow_up, instructions
from ketrag_fast.models.extraction.records import EntityRecord, Extraction, RelationRecord
from ketrag_fast.models.llms.protocol import LanguageModel, Limits, Prompt
from ketrag_fast.models.tasks.task import ParsedReply, Task
from ketrag_fast.storage.journal import KeptReply, reply_key

ATTEMPTS: Final = 2
"""Attempts per chunk. A gleaning has one: if it fails, the chunk keeps its records."""
_AGAIN: Final = """
An earlier reply to this passage could not be used. Keep to the form, give the twenty most important \
entities and relations at most, and end the reply."""
READING: Final = "reading"
"""The name of the task that extracts entities and relations."""


class Chunk(NamedTuple):
    """A chunk of a document. `start` and `end` are code point offsets."""

    number: int
    document: str
    start: int
    end: int
    title: str
    text: str

    @property
    def source(self) -> str:
        """Title and text, in which names must occur."""
        return f"{self.title}\n{self.text}"

    @property
    def place(self) -> str:
        """The location of the chunk, for messages."""
        return f"{self.document}[{self.start}:{self.end}]"


@dataclass(frozen=True)
class Local:
    """Extraction without a model: `extract` returns None for a chunk without records."""

    extract: Callable[[Chunk], Extraction | None]
    places: bool
    """Whether the result depends on the location of the chunk in addition to its text."""
    lacking: str
    """Why there are no records, for messages."""


@dataclass(frozen=True)
class ChunkReader:
    """Extracts with `model` or `local`; with neither, only stored replies are used."""

    spec: str
    key: str
    identity: Mapping[str, Any]
    options: PromptOptions
    limits: Limits
    grounded: bool
    """Whether replies are text from a model, whose names must occur in the chunk; else they are records."""
    places: bool = False
    model: LanguageModel | None = None
    local: Local | None = None

    @property
    def asks(self) -> bool:
        """Whether chunks without a stored reply can be read."""
        return self.model is not None or self.local is not None

    def name(self, chunk: Chunk) -> bytes:
        """Return the part of the reply key that identifies the chunk."""
        where = (chunk.document, str(chunk.start), str(chunk.end)) if self.places else ()
        return reply_key(chunk.title, chunk.text, *where)

    @cached_property
    def task(self) -> Task[Chunk, Extraction]:
        """The task for a chunk: extract entities and relations, then (gleanings) those missed."""
        options = self.options

        def turn(chunk: Chunk, earlier: Sequence[KeptReply]) -> Prompt:
            prompt = build_prompt(0, chunk.title, chunk.text, options)
            for reply in earlier:
                prompt = follow_up(prompt, reply.text)
            return prompt

        return Task(
            name=READING,
            version=PARSER,
            instructions=instructions(options),
            text=lambda chunk: turn(chunk, ()).text,
            parse=_model_reply if self.grounded else _own_reply,
            schema=self.limits.schema,
            tokens=self.limits.tokens,
            seconds=self.limits.seconds,
            more=lambda _, earlier: len(earlier) <= options.gleanings,
            turn=turn,
            attempts=(ATTEMPTS, 1),
            again=_AGAIN,
            subject="the chunk",
            activity="reading the chunks",
            go_on="the same command goes on; with --publish-partial it publishes what was read",
            dump=dumps,
            load=loads,
            whole_key=self.name,
        )

    def extraction(self, replies: Sequence[KeptReply], chunk: Chunk) -> Extraction | None:
        """Return the records of the first usable reply of each turn, or None if there is none."""
        parts: dict[int, Extraction] = {}
        for reply in replies:
            if reply.turn in parts or reply.turn > self.options.gleanings:
                continue
            found = self.task.value(chunk, reply)
            if found is not None:
                parts[reply.turn] = found
        if 0 not in parts:
            return None
        return join_extractions(parts[turn] for turn in sorted(parts))

    def close(self) -> None:
        """Release the memory of the model."""
        if self.model is not None:
            self.model.close()


def _model_reply(chunk: Chunk, text: str, finish: str) -> ParsedReply[Extraction] | None:
    """Parse the reply of a model; names must occur in the chunk."""
    found = parse_reply(text, chunk.source)
    if found.how == "unusable":
        return None
    return ParsedReply(found.extraction, found.how, len(found.extraction.entities))


def _own_reply(chunk: Chunk, text: str, finish: str) -> ParsedReply[Extraction] | None:
    """Parse records that this package wrote."""
    found = loads(text)
    return None if found is None else ParsedReply(found, "clean", len(found.entities))


def dumps(extraction: Extraction) -> str:
    """Serialise records for the journal."""
    value = {"e": extraction.entities, "r": extraction.relations, "dropped": extraction.dropped}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def loads(text: str) -> Extraction | None:
    """Return records from the output of `dumps`, or None if it is damaged."""
    try:
        data = json.loads(text)
        entities = tuple(EntityRecord(*row) for row in data["e"])
        relations = tuple(RelationRecord(*row) for row in data["r"])
        dropped = int(data["dropped"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    parts = chain(chain.from_iterable(entities), chain.from_iterable(row[:3] for row in relations))
    texts = set(map(type, parts)) <= {str}
    finite = all(isinstance(row.strength, (int, float)) and isfinite(row.strength) for row in relations)
    return Extraction(entities, relations, dropped) if texts and finite else None
