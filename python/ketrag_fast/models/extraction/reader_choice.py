"""Open the reader that the settings name: a model, a recording, rules, or stored replies only."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Final

from ketrag_fast.base.config import Settings
from ketrag_fast.models.extraction.chunk_reader import Chunk, ChunkReader, Local
from ketrag_fast.models.extraction.options import PromptOptions
from ketrag_fast.models.extraction.prompt import prompt_fingerprint, reply_schema
from ketrag_fast.models.extraction.records import Extraction
from ketrag_fast.models.llms.protocol import Limits, ModelIdentity
from ketrag_fast.models.llms.registry import HEURISTIC, NONE, REPLAY, ModelOptions, open_model, parse_spec
from ketrag_fast.models.spending import Account, SpendingLimit
from ketrag_fast.storage.journal import Journal, StoredReader

_ANY: Final = "any"
_PAID: Final = "openai"


def prompt_options(settings: Settings) -> PromptOptions:
    """Return the prompt options of the settings."""
    listed = settings.entity_types.strip()
    types = () if listed.lower() == _ANY else tuple(name.strip() for name in listed.split(","))
    return PromptOptions(types, settings.language, settings.gleanings)


def open_reader(settings: Settings, limit: SpendingLimit | None = None) -> ChunkReader:
    """Open the reader that `settings.llm` names (not `none`).

    `limit` is the spending limit of the build; by default the limit in the settings applies to the reader.

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
    # Gleanings do not change the first reply: they are separate turns.
    prompt = prompt_fingerprint(replace(options, gleanings=0))
    key = _key(identity.fingerprint, prompt, str(settings.llm_tokens))
    about = {**identity.to_json(), "prompt": prompt, "tokens": settings.llm_tokens}
    return ChunkReader(settings.llm, key, about, options, limits, grounded=True, model=model)


def replay_only_reader(settings: Settings, row: StoredReader) -> ChunkReader:
    """Return a reader that only uses stored replies."""
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


def find_stored_reader(journal: Journal, key: str | None, spec: str | None) -> StoredReader | None:
    """Return the stored reader with a key; without a key, the last one with a spec, or the last one."""
    if key is not None:
        return journal.known(key)
    return journal.latest(spec)


def _heuristic(spec: str, options: PromptOptions, limits: Limits) -> ChunkReader:
    from ketrag_fast.models.extraction.heuristic import VERSION, extract

    def read(chunk: Chunk) -> Extraction:
        return extract(chunk.title, chunk.text, options.language)

    mark = f"heuristic {VERSION} {options.language}"
    identity = ModelIdentity(spec, mark).to_json()
    local = Local(read, places=False, lacking="")
    return ChunkReader(spec, _key(mark), identity, options, limits, grounded=False, local=local)


def _replay(spec: str, file: Path, options: PromptOptions, limits: Limits) -> ChunkReader:
    from ketrag_fast.models.extraction.replay import Recording

    recording = Recording.open(file)

    def read(chunk: Chunk) -> Extraction | None:
        return recording.extraction_for(chunk.document, chunk.start, chunk.end, chunk.title, chunk.text)

    identity = ModelIdentity(spec, recording.fingerprint).to_json()
    local = Local(read, places=True, lacking="the recording lacks this chunk")
    key = _key("replay", recording.fingerprint)
    return ChunkReader(spec, key, identity, options, limits, grounded=False, places=True, local=local)


def _key(*parts: str) -> str:
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()
