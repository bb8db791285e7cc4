"""The settings of extraction, which belong to the systems that read entities and relations from chunks."""

from __future__ import annotations

from typing import Literal

from ketrag_fast.base.config.fields import LONGEST_SECONDS, setting
from ketrag_fast.records import dataclass


@dataclass(frozen=True, kw_only=True)
class ExtractionSettings:
    """A system whose stages read chunks derives its settings from this class."""

    core_ratio: float = setting(
        0.8, "share of chunks that an LLM extracts from (the core)", low=0.0, high=1.0, flag=True
    )
    entity_types: str = setting(
        "person,organization,place,event,work,date,concept",
        "entity types to extract, comma-separated; any: the model decides",
        topic="reading",
        flag=True,
        metavar="LIST",
        reaches="never",
    )
    gleanings: int = setting(
        0, "extra extraction rounds for entities missed", low=0, high=8, topic="reading", flag=True
    )
    summaries: Literal["joined", "model"] = setting(
        "joined",
        "descriptions of one entity from several chunks: concatenated, or condensed by the LLM",
        topic="reading",
        flag=True,
    )
    llm_tokens: int = setting(
        2048, "maximum tokens of one extraction reply", low=16, high=1_000_000, topic="reading", flag=True
    )
    llm_seconds: float | None = setting(
        120.0,
        "time limit of one extraction reply in seconds; none: no limit",
        concerns="run",
        low=0.1,
        high=LONGEST_SECONDS,
        topic="reading",
        flag=True,
    )
    record: str | None = setting(
        None,
        "write the extraction replies to a file, for --llm replay:FILE",
        concerns="run",
        topic="reading",
        flag=True,
        metavar="FILE",
    )
