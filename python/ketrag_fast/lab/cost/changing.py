"""Cost of changing an index's documents, from its last complete build on this machine."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ketrag_fast.base.config import Settings, build_settings, resolve
from ketrag_fast.build.preview import Preview
from ketrag_fast.lab.cost.bill import Bill, bill
from ketrag_fast.lab.cost.history import past
from ketrag_fast.lab.cost.predicting import llm_stages
from ketrag_fast.lab.cost.prices import Prices
from ketrag_fast.models.embedders.registry import BUILTIN
from ketrag_fast.models.llms.registry import is_model
from ketrag_fast.systems.index_settings import stored_settings
from ketrag_fast.systems.planning import embedding_stages
from ketrag_fast.systems.registry import registry
from ketrag_fast.types import Usage


@dataclass(frozen=True, slots=True)
class ChangeCost:
    """Cost of one change; None is unknown.

    `embedding` and `stages` are the parts of `seconds` outside the language model; `core_chunks` are the new
    ones to extract from, `calls` those sent to a model.
    """

    embedding_tokens: int | None
    chunks: int | None
    core_chunks: int | None
    calls: int | None
    tokens_in: int | None
    tokens_out: int | None
    embedding: float | None
    stages: float | None
    seconds: float | None
    bill: Bill
    note: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the cost as `--dry-run --json` prints it."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "bill"}
        return {**plain, "usd": self.bill.to_json()}


_NOTHING = ChangeCost(0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, Bill(0.0, 0.0))
_UNKNOWN = ChangeCost(None, None, None, None, None, None, None, None, None, Bill(None, None))


def cost_of(path: Path, change: Preview, settings: Settings, prices: Prices) -> ChangeCost:
    """Return an upper bound of the cost of one change.

    New and changed documents are embedded and extracted from; the other stages run over all documents,
    although stages reuse what they can.
    """
    resolved = resolve(flags=settings.given, index=stored_settings(path), presets=registry().table)
    whole = resolved.settings
    if not change.changes and not resolved.differences:
        return _NOTHING
    if not change.changes:
        names = ", ".join(name for name, _, _ in resolved.differences)
        note = f"other settings than the index has ({names}): what depends on them is rebuilt"
        return replace(_NOTHING, stages=None, seconds=None, note=note)
    calls_model = is_model(settings.given.get("llm", "none"))
    before = past(path, build_settings(whole))
    if before is None or not before.usage.characters:
        note = (
            "no complete build with these settings is on record, so the time is unknown: "
            "`ketrag estimate SOURCE... -i DIR` predicts a whole build"
        )
        known = _without_record(whole.embedder != BUILTIN, calls_model) if change.characters else _NOTHING
        return replace(known, stages=None, seconds=None, note=note)
    usage = before.usage
    all_of_it, fresh = (size / usage.characters for size in (change.total, change.characters))
    models = embedding_stages() if whole.embedder != BUILTIN else frozenset()
    embedding = fresh * math.fsum(took for name, took in before.stages.items() if name in models)
    others = math.fsum(
        took for name, took in before.stages.items() if name not in models and name not in llm_stages()
    )
    stages = all_of_it * (others + max(before.seconds - math.fsum(before.stages.values()), 0.0))
    core = math.ceil(usage.core_chunks * fresh)
    calls: int | None = 0
    tokens_in: int | None = 0
    tokens_out: int | None = 0
    reading: float | None = 0.0
    pending: str | None = None
    if calls_model and core:
        if usage.calls:
            calls = round(usage.calls * fresh)
            tokens_in, tokens_out = round(usage.tokens_in * fresh), round(usage.tokens_out * fresh)
            reading = usage.llm_seconds * fresh
        else:
            calls, tokens_in, tokens_out, reading = core * (1 + whole.gleanings), None, None, None
            pending = f"{whole.llm} was not called in that build: `ketrag estimate` times it"
    elif core and whole.llm != "none" and is_model(whole.llm):
        chunks = "1 core chunk" if core == 1 else f"{core:,} core chunks"
        pending = f"about {chunks} would be pending until --llm is named"
    tokens = round(usage.embedding_tokens * fresh)
    spent = Usage(tokens_in=tokens_in or 0, tokens_out=tokens_out or 0, embedding_tokens=tokens)
    money = bill(spent, prices, whole.llm, whole.embedder)
    return ChangeCost(
        tokens,
        round(usage.chunks * fresh),
        core,
        calls,
        tokens_in,
        tokens_out,
        embedding,
        stages,
        None if reading is None else embedding + stages + reading,
        money if tokens_in is not None else Bill(None, money.embedding),
        pending,
    )


def _without_record(embeds: bool, calls_model: bool) -> ChangeCost:
    """Return what is certain without a record of a build: a model that is not used costs nothing."""
    found = _UNKNOWN
    if not embeds:
        found = replace(found, embedding_tokens=0, embedding=0.0, bill=replace(found.bill, embedding=0.0))
    if not calls_model:
        found = replace(found, calls=0, tokens_in=0, tokens_out=0, bill=replace(found.bill, llm=0.0))
    return found
