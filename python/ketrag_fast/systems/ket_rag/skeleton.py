"""The fold of all kept replies into entities and relations with their sources (KET-RAG 1.3 steps 3 to 6)."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.config import Settings
from ketrag_fast.declarations.stage import Outputs, StageContext, StageInputs
from ketrag_fast.errors import ConfigError, InternalError
from ketrag_fast.extraction.summaries import Described, Summaries, described
from ketrag_fast.kernels.text import pack, unpack
from ketrag_fast.stages.rows import strings, strings_out
from ketrag_fast.systems.ket_rag.settings import KetRagSettings

JOINED = 500
"""Tokens of a description that is joined by rule."""
_EVERYTHING = 2**62


def look(inputs: StageInputs, settings: Settings, context: StageContext) -> str:
    """Where a model condenses descriptions: has it write what is not kept, and stands for all that is."""
    if settings.summaries == "joined":
        return ""
    wanted, summaries = _wanted(inputs, settings, context)
    every = [one for one, _ in wanted]
    summaries.write(every, context.report)
    summaries.account(every)
    state = hashlib.blake2b(digest_size=32)
    for one, _ in wanted:
        state.update(repr((one.about, one.summary)).encode("utf-8", "replace"))
    return state.hexdigest()


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """A function of the replies and of the texts that they are about, whatever came when."""
    made = dict(_fold(inputs, settings, context, JOINED))
    if settings.summaries == "joined":
        return made
    wanted, _ = _wanted(inputs, settings, context)
    for column in ("entity", "relation"):
        texts = unpack(*strings(made, f"{column}_description"))
        for one, (kind, place) in wanted:
            if kind == column and one.summary is not None:
                texts[place] = one.summary
        made |= strings_out(f"{column}_description", pack(texts))
    made["entity_row_tokens"], made["relation_row_tokens"] = _core.skeleton_row_tokens(
        strings(made, "entity_name"),
        strings(made, "entity_description"),
        made["entity_rank"],
        made["relation_source"],
        made["relation_target"],
        strings(made, "relation_description"),
        made["relation_weight"],
        made["relation_rank"],
        settings.encoding,
        threads=context.threads,
    )
    told = [sum(1 for one, _ in wanted if one.summary is not None), len(wanted)]
    return made | {"summaries": np.array(told, np.uint64)}


def _fold(
    inputs: StageInputs, settings: Settings, context: StageContext, tokens: int
) -> dict[str, NDArray[Any]]:
    replies, units = inputs["replies"], inputs["units"]
    return _core.fold_skeleton(
        replies["reply_chunk"],
        replies["reply_entities_indptr"],
        strings(replies, "entity_name"),
        strings(replies, "entity_type"),
        strings(replies, "entity_description"),
        replies["reply_relations_indptr"],
        strings(replies, "relation_source"),
        strings(replies, "relation_target"),
        strings(replies, "relation_description"),
        replies["relation_strength"],
        units["chunk_units"],
        strings(units, "unit_texts"),
        units["unit_span"],
        settings.encoding,
        rewire=settings.of(KetRagSettings).rewire,
        description_tokens=tokens,
        threads=context.threads,
        report=context.report,
    )


def _wanted(
    inputs: StageInputs, settings: Settings, context: StageContext
) -> tuple[list[tuple[Described, tuple[str, int]]], Summaries]:
    """Whatever has two lines or more, with what is kept about it, and its place."""
    if context.reading is None:
        raise InternalError("nobody reads the chunks in this build")
    reader = context.reading.reader
    if not reader.grounded:
        raise ConfigError(
            f"summaries = model needs a language model that reads the chunks; {reader.spec} is none",
            hint="leave --summaries out, or name a model: --llm llama-cpp:PATH.gguf or openai:MODEL@URL",
        )
    folded = _fold(inputs, settings, context, _EVERYTHING)
    names = unpack(*strings(folded, "entity_name"))
    ends = zip(folded["relation_source"].tolist(), folded["relation_target"].tolist(), strict=True)
    items: list[tuple[tuple[str, ...], list[str]]] = []
    places: list[tuple[str, int]] = []
    for place, text in enumerate(unpack(*strings(folded, "entity_description"))):
        if "\n" in text:
            items.append(((names[place],), text.split("\n")))
            places.append(("entity", place))
    relations = zip(unpack(*strings(folded, "relation_description")), ends, strict=True)
    for place, (text, (a, b)) in enumerate(relations):
        if "\n" in text:
            items.append(((names[a], names[b]), text.split("\n")))
            places.append(("relation", place))
    every, summaries = described(items), Summaries(context.reading)
    summaries.recall(every)
    return list(zip(every, places, strict=True)), summaries
