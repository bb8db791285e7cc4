"""Who reads the chunks: a model under a prompt, a recording, rules; or nobody, where only kept replies count.

A reader is known by its key. What it would reply depends on the key and on the chunk alone, so that a
reply that is kept under both need never be asked for again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple

from ketrag_fast.backends.llms.protocol import LanguageModel, Limits, ModelIdentity, Prompt
from ketrag_fast.backends.llms.registry import HEURISTIC, NONE, REPLAY, ModelOptions, open_model, parse_spec
from ketrag_fast.backends.spending import Account, SpendingLimit
from ketrag_fast.config import Settings
from ketrag_fast.extraction.options import PromptOptions
from ketrag_fast.extraction.parse import PARSER, joined, parse_reply
from ketrag_fast.extraction.prompt import build_prompt, follow_up, instructions, prompt_fingerprint
from ketrag_fast.extraction.records import EntityRecord, Extraction, RelationRecord
from ketrag_fast.extraction.schema import reply_schema
from ketrag_fast.storage.journal import Journal, KeptReply, StoredReader, reply_key
from ketrag_fast.tasks.task import ParsedReply, Task

ATTEMPTS: Final = 2
"""Replies that the question about a chunk is worth; a gleaning is worth one: where it cannot be used, the
chunk keeps what it has.
"""
_AGAIN: Final = """
An earlier reply to this passage could not be used. Keep to the form, give the twenty most important \
entities and relations at most, and end the reply."""
READING: Final = "reading"
"""The name of the task that reads entities and relations."""
_ANY: Final = "any"
_PAID: Final = "openai"


class Chunk(NamedTuple):
    """A piece of a document that is read as one. `start` and `end` are code points of its text."""

    number: int
    document: str
    start: int
    end: int
    title: str
    text: str

    @property
    def source(self) -> str:
        """What names must occur in."""
        return f"{self.title}\n{self.text}"

    @property
    def place(self) -> str:
        """For people."""
        return f"{self.document}[{self.start}:{self.end}]"


@dataclass(frozen=True)
class Local:
    """What reads without a model: `extract` gives None for a chunk that it has nothing about."""

    extract: Callable[[Chunk], Extraction | None]
    places: bool
    """Whether the chunk's place counts, and not its words alone."""
    lacking: str
    """Why there is nothing, for people."""


@dataclass(frozen=True)
class ChunkReader:
    """`model` or `local` reads; with neither, what is kept is all there is."""

    spec: str
    key: str
    identity: Mapping[str, Any]
    options: PromptOptions
    limits: Limits
    grounded: bool
    """Whether replies are a model's words, whose names must occur in the chunk; else they are records."""
    places: bool = False
    model: LanguageModel | None = None
    local: Local | None = None

    @property
    def asks(self) -> bool:
        """Whether anything can be read now."""
        return self.model is not None or self.local is not None

    def name(self, chunk: Chunk) -> bytes:
        """The chunk's part of the key under which its replies are kept."""
        where = (chunk.document, str(chunk.start), str(chunk.end)) if self.places else ()
        return reply_key(chunk.title, chunk.text, *where)

    @cached_property
    def task(self) -> Task[Chunk, Extraction]:
        """What is asked about a chunk: its entities and relations, then (gleanings) those missed."""
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
        """What the kept replies say of a chunk: the first usable one of each turn. None: nothing usable."""
        parts: dict[int, Extraction] = {}
        for reply in replies:
            if reply.turn in parts or reply.turn > self.options.gleanings:
                continue
            found = self.task.value(chunk, reply)
            if found is not None:
                parts[reply.turn] = found
        if 0 not in parts:
            return None
        return joined(parts[turn] for turn in sorted(parts))

    def close(self) -> None:
        """Gives back the model's memory."""
        if self.model is not None:
            self.model.close()


def _model_reply(chunk: Chunk, text: str, finish: str) -> ParsedReply[Extraction] | None:
    """A model's words: names must occur in the chunk."""
    found = parse_reply(text, chunk.source)
    if found.how == "unusable":
        return None
    return ParsedReply(found.extraction, found.how, len(found.extraction.entities))


def _own_reply(chunk: Chunk, text: str, finish: str) -> ParsedReply[Extraction] | None:
    """Records that this package wrote."""
    found = loads(text)
    return None if found is None else ParsedReply(found, "clean", len(found.entities))


def dumps(extraction: Extraction) -> str:
    """Records as the journal keeps them."""
    value = {"e": extraction.entities, "r": extraction.relations, "dropped": extraction.dropped}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def loads(text: str) -> Extraction | None:
    """The inverse; None for what is damaged."""
    try:
        data = json.loads(text)
        entities = tuple(EntityRecord(*row) for row in data["e"])
        relations = tuple(RelationRecord(*row) for row in data["r"])
        dropped = int(data["dropped"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    texts = all(isinstance(part, str) for row in (*entities, *relations) for part in row[:3])
    finite = all(isinstance(row.strength, (int, float)) and isfinite(row.strength) for row in relations)
    return Extraction(entities, relations, dropped) if texts and finite else None


def prompt_options(settings: Settings) -> PromptOptions:
    """What the settings ask for."""
    listed = settings.entity_types.strip()
    types = () if listed.lower() == _ANY else tuple(name.strip() for name in listed.split(","))
    return PromptOptions(types, settings.language, settings.gleanings, settings.terse_replies)


def open_reader(settings: Settings, limit: SpendingLimit | None = None) -> ChunkReader:
    """The reader that `settings.llm` names, ready to read. `none` has no reader: do not ask for it.

    `limit` is what the whole build may cost; without it the reader has the settings' limit for itself.

    Raises ConfigError, BackendMissing, BackendError, NetworkForbidden.
    """
    kind, rest = parse_spec(settings.llm)
    options = prompt_options(settings)
    limits = Limits(settings.llm_tokens, settings.llm_seconds, reply_schema(options))
    if kind == NONE:
        raise ValueError("nobody reads for llm = none")
    if kind == HEURISTIC:
        return _heuristic(settings.llm, options, limits)
    if kind == REPLAY:
        return _replay(settings.llm, Path(rest), options, limits)
    price = settings.llm_usd_per_million
    price = settings.usd_per_million if price is None else price
    price_out = settings.llm_usd_per_million_out
    account = None
    if kind == _PAID:
        limit = SpendingLimit(settings.limit_usd) if limit is None else limit
        # Twice the tokens: an embedding model may count more of them than the one that wrote them.
        later = 2 * (settings.usd_per_million or 0.0) if settings.embedder.startswith("openai:") else 0.0
        account = Account(price, limit, usd_per_million_out=price_out, usd_later=later)
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
    # How often is asked again does not change the first reply: gleanings are turns of their own.
    prompt = prompt_fingerprint(replace(options, gleanings=0))
    key = _key(identity.fingerprint, prompt, str(settings.llm_tokens))
    about = {**identity.to_json(), "prompt": prompt, "tokens": settings.llm_tokens}
    return ChunkReader(settings.llm, key, about, options, limits, grounded=True, model=model)


def kept_reader(settings: Settings, row: StoredReader) -> ChunkReader:
    """A reader that asks nobody: what it read before is all it has."""
    kind = parse_spec(row.spec)[0]
    options = prompt_options(settings)
    return ChunkReader(
        row.spec,
        row.key,
        row.identity,
        options,
        Limits(settings.llm_tokens, settings.llm_seconds, None),
        grounded=kind not in (HEURISTIC, REPLAY),
        places=kind == REPLAY,
    )


def stored_key(journal: Journal, key: str | None, spec: str | None) -> StoredReader | None:
    """The reader that an index was read by; without its key, the last one of that name, or of any."""
    if key is not None:
        return journal.known(key)
    return journal.latest(spec)


def _heuristic(spec: str, options: PromptOptions, limits: Limits) -> ChunkReader:
    from ketrag_fast.extraction.heuristic import VERSION, extract

    def read(chunk: Chunk) -> Extraction:
        return extract(chunk.title, chunk.text)

    mark = f"heuristic {VERSION}"
    identity = ModelIdentity(spec, mark).to_json()
    local = Local(read, places=False, lacking="")
    return ChunkReader(spec, _key(mark), identity, options, limits, grounded=False, local=local)


def _replay(spec: str, file: Path, options: PromptOptions, limits: Limits) -> ChunkReader:
    from ketrag_fast.extraction.replay import Recording

    recording = Recording.open(file)

    def read(chunk: Chunk) -> Extraction | None:
        return recording.extraction_for(chunk.document, chunk.start, chunk.end, chunk.title, chunk.text)

    identity = ModelIdentity(spec, recording.fingerprint).to_json()
    local = Local(read, places=True, lacking="the recording lacks this chunk")
    key = _key("replay", recording.fingerprint)
    return ChunkReader(spec, key, identity, options, limits, grounded=False, places=True, local=local)


def _key(*parts: str) -> str:
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()
