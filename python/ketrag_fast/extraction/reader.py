"""Who reads the chunks: a model under a prompt, a recording, rules; or nobody, where only kept replies count.

A reader is known by its key. What it would reply depends on the key and on the chunk alone, so that a
reply that is kept under both need never be asked for again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple

from ketrag_fast.backends.llms.protocol import Identity, LanguageModel, Limits
from ketrag_fast.backends.llms.registry import HEURISTIC, NONE, REPLAY, ModelOptions, open_model, parse_spec
from ketrag_fast.backends.spending import Account
from ketrag_fast.config import Settings
from ketrag_fast.extraction.journal import Journal, ReaderRow, Row, chunk_hash
from ketrag_fast.extraction.options import PromptOptions
from ketrag_fast.extraction.parse import PARSER, joined, parse_reply
from ketrag_fast.extraction.prompt import prompt_fingerprint
from ketrag_fast.extraction.records import EntityRecord, Extraction, RelationRecord
from ketrag_fast.extraction.schema import reply_schema

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
class Reader:
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
        return chunk_hash(chunk.title, chunk.text, *where)

    def judged(self, row: Row, chunk: Chunk) -> tuple[Row, Extraction]:
        """The row as the parser of today sees it, and what is in it."""
        how, found, records = "unusable", Extraction(), ""
        if row.finish != "error" and self.grounded:
            parsed = parse_reply(row.text, chunk.source)
            how, found = parsed.how, parsed.extraction
            records = dumps(found) if how != "unusable" else ""
        elif row.finish != "error":
            own = loads(row.text)
            how, found = ("unusable", found) if own is None else ("clean", own)
        judged = row._replace(verdict=how, entities=len(found.entities), parser=PARSER, records=records)
        return judged, found

    def extraction(self, rows: Sequence[Row], chunk: Chunk) -> Extraction | None:
        """What the kept replies say of a chunk: the first usable one of each turn. None: nothing usable."""
        parts: dict[int, Extraction] = {}
        for row in rows:
            if row.turn in parts or row.turn > self.options.gleanings:
                continue
            known = loads(row.records) if row.parser == PARSER and row.records else None
            if known is None:
                judged, known = self.judged(row, chunk)
                if not judged.usable:
                    continue
            parts[row.turn] = known
        if 0 not in parts:
            return None
        return joined(parts[turn] for turn in sorted(parts))

    def close(self) -> None:
        """Gives back the model's memory."""
        if self.model is not None:
            self.model.close()


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


def open_reader(settings: Settings) -> Reader:
    """The reader that `settings.llm` names, ready to read. `none` has no reader: do not ask for it.

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
    account = Account(price, settings.limit_usd, usd_per_million_out=price_out) if kind == _PAID else None
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
    return Reader(settings.llm, key, about, options, limits, grounded=True, model=model)


def kept_reader(settings: Settings, row: ReaderRow) -> Reader:
    """A reader that asks nobody: what it read before is all it has."""
    kind = parse_spec(row.spec)[0]
    options = prompt_options(settings)
    return Reader(
        row.spec,
        row.key,
        row.identity,
        options,
        Limits(settings.llm_tokens, settings.llm_seconds, None),
        grounded=kind not in (HEURISTIC, REPLAY),
        places=kind == REPLAY,
    )


def stored_key(journal: Journal, key: str | None, spec: str | None) -> ReaderRow | None:
    """The reader that an index was read by; without its key, the last one of that name, or of any."""
    if key is not None:
        return journal.known(key)
    return journal.latest(spec)


def _heuristic(spec: str, options: PromptOptions, limits: Limits) -> Reader:
    from ketrag_fast.extraction.heuristic import VERSION, extract

    def read(chunk: Chunk) -> Extraction:
        return extract(chunk.title, chunk.text)

    mark = f"heuristic {VERSION}"
    identity = Identity(spec, mark).to_json()
    local = Local(read, places=False, lacking="")
    return Reader(spec, _key(mark), identity, options, limits, grounded=False, local=local)


def _replay(spec: str, file: Path, options: PromptOptions, limits: Limits) -> Reader:
    from ketrag_fast.extraction.replay import Recording

    recording = Recording.open(file)

    def read(chunk: Chunk) -> Extraction | None:
        return recording.extraction_for(chunk.document, chunk.start, chunk.end, chunk.title, chunk.text)

    identity = Identity(spec, recording.fingerprint).to_json()
    local = Local(read, places=True, lacking="the recording lacks this chunk")
    key = _key("replay", recording.fingerprint)
    return Reader(spec, key, identity, options, limits, grounded=False, places=True, local=local)


def _key(*parts: str) -> str:
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()
