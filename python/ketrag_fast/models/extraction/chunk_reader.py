"""Extract entities and relations from chunks: with an LLM, a recording or rules, or from stored replies only.

A reader is identified by its key. Its reply depends only on the key and the chunk, so a stored reply is never
requested again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple

from ketrag_fast.base.config import Settings
from ketrag_fast.base.config.settings import prices_of
from ketrag_fast.base.config.shared import ExtractionSettings
from ketrag_fast.models.extraction.parse import PARSER, join_extractions, parse_reply
from ketrag_fast.models.extraction.prompt import (
    PromptOptions,
    build_prompt,
    follow_up,
    instructions,
    prompt_fingerprint,
    reply_schema,
)
from ketrag_fast.models.extraction.records import EntityRecord, Extraction, RelationRecord
from ketrag_fast.models.llms.protocol import LanguageModel, Limits, ModelIdentity, Prompt
from ketrag_fast.models.llms.registry import HEURISTIC, REPLAY, ModelOptions, open_model, parse_spec
from ketrag_fast.models.spending import Account, SpendingLimit
from ketrag_fast.models.tasks.task import ParsedReply, Task
from ketrag_fast.records import dataclass, replace
from ketrag_fast.storage.journal import KeptReply, StoredReader, reply_key

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


# -- the reader that the settings name ---------------------------------------------------------------

_ANY: Final = "any"
_PAID: Final = "openai"


def prompt_options(settings: Settings) -> PromptOptions:
    """Return the prompt options of the settings."""
    own = settings.of(ExtractionSettings)
    listed = own.entity_types.strip()
    types = () if listed.lower() == _ANY else tuple(name.strip() for name in listed.split(","))
    return PromptOptions(types, settings.language, own.gleanings)


def open_reader(settings: Settings, limit: SpendingLimit | None = None) -> ChunkReader:
    """Open the reader that `settings.llm` names (not `none`).

    `limit` is the spending limit of the build; by default the limit in the settings applies to the reader.

    Raises ConfigError, BackendMissing, BackendError, NetworkForbidden.
    """
    kind, rest = parse_spec(settings.llm)
    options = prompt_options(settings)
    own = settings.of(ExtractionSettings)
    limits = Limits(own.llm_tokens, own.llm_seconds, reply_schema(options))
    if kind == HEURISTIC:
        return _heuristic(settings.llm, options, limits)
    if kind == REPLAY:
        return _replay(settings.llm, Path(rest), options, limits)
    account = None
    if kind == _PAID:
        limit = SpendingLimit(settings.limit_usd) if limit is None else limit
        account = _account_of(settings, limit)
    model = open_model(
        settings.llm,
        ModelOptions(
            offline=settings.offline,
            slots=settings.llm_slots,
            context=settings.llm_context,
            threads=settings.threads,
            account=account,
        ),
    )
    identity = model.identity
    # Gleanings do not change the first reply: they are separate turns.
    prompt = prompt_fingerprint(replace(options, gleanings=0))
    key = _key(identity.fingerprint, prompt, str(own.llm_tokens))
    about = {**identity.to_json(), "prompt": prompt, "tokens": own.llm_tokens}
    return ChunkReader(settings.llm, key, about, options, limits, grounded=True, model=model)


def _account_of(settings: Settings, limit: SpendingLimit) -> Account:
    """Return the account of the reader, which also reserves the price of embedding what it writes."""
    prices = prices_of(settings.usd_per_million)
    if prices is None:
        return Account(None, limit)
    embedding, prompt, reply = prices
    # Twice the tokens: an embedding model may count more of them than the one that wrote them.
    later = 2 * embedding if settings.embedder.startswith("openai:") else 0.0
    return Account(prompt, limit, usd_per_million_out=reply, usd_later=later)


def replay_only_reader(settings: Settings, row: StoredReader) -> ChunkReader:
    """Return a reader that only uses stored replies."""
    kind = parse_spec(row.spec)[0]
    own = settings.of(ExtractionSettings)
    options = prompt_options(settings)
    return ChunkReader(
        row.spec,
        row.key,
        row.identity,
        options,
        Limits(own.llm_tokens, own.llm_seconds, None),
        grounded=kind not in (HEURISTIC, REPLAY),
        places=kind == REPLAY,
    )


def _heuristic(spec: str, options: PromptOptions, limits: Limits) -> ChunkReader:
    from ketrag_fast.models.extraction.heuristic import VERSION, extract

    def read(chunk: Chunk) -> Extraction:
        return extract(chunk.title, chunk.text, options.language)

    mark = f"heuristic {VERSION} {options.language}"
    identity = ModelIdentity(spec, mark).to_json()
    local = Local(read, places=False, lacking="")
    return ChunkReader(spec, _key(mark), identity, options, limits, grounded=False, local=local)


def _replay(spec: str, file: Path, options: PromptOptions, limits: Limits) -> ChunkReader:
    from ketrag_fast.models.extraction.recording import Recording

    recording = Recording.open(file)

    def read(chunk: Chunk) -> Extraction | None:
        return recording.extraction_for(chunk.document, chunk.start, chunk.end, chunk.title, chunk.text)

    identity = ModelIdentity(spec, recording.fingerprint).to_json()
    local = Local(read, places=True, lacking="the recording lacks this chunk")
    key = _key("replay", recording.fingerprint)
    return ChunkReader(spec, key, identity, options, limits, grounded=False, places=True, local=local)


def _key(*parts: str) -> str:
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()
