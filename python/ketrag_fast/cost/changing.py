"""What a change of an index's documents takes, from what its last whole build took on this machine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ketrag_fast.backends.embedders.registry import BUILTIN
from ketrag_fast.backends.llms.registry import is_model
from ketrag_fast.config import Settings, build_settings, resolve
from ketrag_fast.cost.bill import Bill, bill
from ketrag_fast.cost.history import past
from ketrag_fast.cost.predicting import asked_of_models
from ketrag_fast.cost.prices import Prices
from ketrag_fast.pipeline.known import stored_settings
from ketrag_fast.pipeline.planning import embedding_stages
from ketrag_fast.pipeline.preview import Preview
from ketrag_fast.systems.registry import registry
from ketrag_fast.types import Usage


@dataclass(frozen=True, slots=True)
class ChangeCost:
    """None is what cannot be told. `embedding` and `stages` are the parts of `seconds` beside the language
    model; `core_chunks` are the new ones that something would read, `calls` those that a model is asked for.
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
        """As `--dry-run --json` prints it."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "bill"}
        return {**plain, "usd": self.bill.to_json()}


_NOTHING = ChangeCost(0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, Bill(0.0, 0.0))


def cost_of(path: Path, change: Preview, settings: Settings, prices: Prices) -> ChangeCost:
    """Of one change. New and changed documents are embedded and read; the other stages run over all."""
    if not change.changes:
        return _NOTHING
    whole = resolve(flags=settings.given, index=stored_settings(path), presets=registry().table).settings
    before = past(path, build_settings(whole))
    if before is None or not before.usage.characters:
        why = "no whole build with these settings is remembered"
        told = f"{why}: `ketrag estimate SOURCE... -i DIR` looks at a sample"
        none = None if change.characters else 0
        return ChangeCost(
            none,
            none,
            none,
            none,
            none,
            none,
            None,
            None,
            None,
            Bill(*([None, None] if none is None else [0.0, 0.0])),
            told,
        )
    usage = before.usage
    all_of_it, fresh = (size / usage.characters for size in (change.total, change.characters))
    models = embedding_stages() if whole.embedder != BUILTIN else frozenset()
    embedding = fresh * math.fsum(took for name, took in before.stages.items() if name in models)
    others = math.fsum(
        took for name, took in before.stages.items() if name not in models and name not in asked_of_models()
    )
    stages = all_of_it * (others + max(before.seconds - math.fsum(before.stages.values()), 0.0))
    core = math.ceil(usage.core_chunks * fresh)
    asks = is_model(settings.given.get("llm", "none"))
    calls: int | None = 0
    sent: int | None = 0
    said: int | None = 0
    reading: float | None = 0.0
    note = None
    if asks and core:
        if usage.calls:
            calls, sent, said = (round(n * fresh) for n in (usage.calls, usage.tokens_in, usage.tokens_out))
            reading = usage.llm_seconds * fresh
        else:
            calls, sent, said, reading = core * (1 + whole.gleanings), None, None, None
            note = f"{whole.llm} was not asked in that build: `ketrag estimate` times it"
    elif core and whole.llm != "none" and is_model(whole.llm):
        note = f"about {core:,} core chunks would be pending until --llm is named"
    tokens = round(usage.embedding_tokens * fresh)
    spent = Usage(tokens_in=sent or 0, tokens_out=said or 0, embedding_tokens=tokens)
    money = bill(spent, prices, whole.llm, whole.embedder)
    return ChangeCost(
        tokens,
        round(usage.chunks * fresh),
        core,
        calls,
        sent,
        said,
        embedding,
        stages,
        None if reading is None else embedding + stages + reading,
        money if sent is not None else Bill(None, money.embedding),
        note,
    )
