"""Entities and relations, merged from all replies (KET-RAG, Algorithm 1), and their vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import accumulate, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ConfigError
from ketrag_fast.kernels.text import count_tokens, pack, unpack
from ketrag_fast.models.extraction.summaries import Summaries, Summary, summarise_descriptions, summary_of
from ketrag_fast.systems.papers.ket_rag import KetRagSettings
from ketrag_fast.systems.shared.core_chunks import reading_of
from ketrag_fast.systems.shared.rows import F32, strings, strings_out, word_rows
from ketrag_fast.systems.shared.stored_rows import languages_of
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

JOINED = 500
"""The maximum length in tokens of a concatenated description."""
_EVERYTHING = 2**62
_KEPT = "skeleton"
"""The key under which `look` stores its result for `run`."""


def look(inputs: StageInputs, settings: Settings, context: StageContext) -> str:
    """Have the model write missing summaries, and return a hash of all summaries; "" without a model."""
    if settings.of(KetRagSettings).summaries == "joined":
        return ""
    reading = reading_of(context)
    found = _lines(inputs, settings, context)
    Summaries(reading).write(found.items, context.report)
    reading.scratch[_KEPT] = found
    state = hashlib.blake2b(digest_size=32)
    for item in found.items:
        state.update(repr((item.about.about, summary_of(item))).encode("utf-8", "replace"))
    return state.hexdigest()


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the skeleton. It depends on the replies and their texts, not on the order of arrival."""
    if settings.of(KetRagSettings).summaries == "joined":
        return _fold(inputs, settings, context, JOINED)
    found: Lines = reading_of(context).scratch.pop(_KEPT)
    made, several = dict(found.folded), dict(zip(found.places, found.items, strict=True))
    by_rule: dict[str, NDArray[Any]] | None = None
    for kind in ("entity", "relation"):
        texts = join_descriptions(
            unpack(*strings(made, f"{kind}_description")), settings.encoding, context.threads
        )
        if texts is None:  # the fold cuts inside a line: take its result
            by_rule = by_rule or _fold(inputs, settings, context, JOINED)
            texts = unpack(*strings(by_rule, f"{kind}_description"))
        for place in range(len(texts)):
            item = several.get((kind, place))
            summary = None if item is None else summary_of(item)
            texts[place] = texts[place] if summary is None else summary
        made |= strings_out(f"{kind}_description", pack(texts))
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
    counts = [sum(1 for item in found.items if summary_of(item) is not None), len(found.items)]
    return made | {"summaries": np.array(counts, np.uint64)}


def join_descriptions(texts: Sequence[str], encoding: str, threads: int = 0) -> list[str] | None:
    """Return descriptions cut to `JOINED` tokens as the fold cuts them: leading whole lines.

    Returns None if some first line alone is longer.
    """
    # No text has more tokens than bytes, so most need no counting.
    long = [place for place, text in enumerate(texts) if len(text.encode()) + 1 > JOINED]
    lines = [texts[place].split("\n") for place in long]
    counts = iter(count_tokens([line for some in lines for line in some], encoding, threads).tolist())
    out = list(texts)
    for place, some in zip(long, lines, strict=True):
        costs = [cost + 1 for cost in islice(counts, len(some))]
        fitting = sum(1 for used in accumulate(costs) if used <= JOINED)
        if not fitting:
            return None
        out[place] = "\n".join(some[:fitting])
    return out


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
        description_tokens=tokens,
        threads=context.threads,
        report=context.report,
    )


class Lines(NamedTuple):
    """The fold with every line of every description.

    `places` and `items` are the positions and summaries of descriptions with two or more lines.
    """

    folded: dict[str, NDArray[Any]]
    places: list[tuple[str, int]]
    items: list[Summary]


def _lines(inputs: StageInputs, settings: Settings, context: StageContext) -> Lines:
    reading = reading_of(context)
    if not reading.reader.grounded:
        raise ConfigError(
            f"summaries = model needs a language model as reader, but the reader is {reading.reader.spec}",
            hint="omit --summaries, or use a model: --llm llama-cpp:PATH.gguf or openai:MODEL@URL",
        )
    folded = _fold(inputs, settings, context, _EVERYTHING)
    names = unpack(*strings(folded, "entity_name"))
    ends = zip(folded["relation_source"].tolist(), folded["relation_target"].tolist(), strict=True)
    several: list[tuple[tuple[str, ...], list[str]]] = []
    places: list[tuple[str, int]] = []
    for place, text in enumerate(unpack(*strings(folded, "entity_description"))):
        if "\n" in text:
            several.append(((names[place],), text.split("\n")))
            places.append(("entity", place))
    relations = zip(unpack(*strings(folded, "relation_description")), ends, strict=True)
    for place, (text, (a, b)) in enumerate(relations):
        if "\n" in text:
            several.append(((names[a], names[b]), text.split("\n")))
            places.append(("relation", place))
    return Lines(folded, places, Summaries(reading).items(summarise_descriptions(several)))


def embed_entities(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return the entity vectors, from the embedding model or, without one, from the fitted space."""
    skeleton, vectors = inputs["skeleton"], inputs["vectors"]
    names = unpack(*strings(skeleton, "entity_name"))
    described = unpack(*strings(skeleton, "entity_description"))
    texts = [f"{name}:{text}" if text else name for name, text in zip(names, described, strict=True)]
    if context.model is not None:
        context.report.unit = "tokens"
        found = context.model.embed(iter(texts), len(texts), sum(map(len, texts)), context.report)
        return _add_codes(np.ascontiguousarray(found, np.float32), context.threads)
    words = inputs["words"]
    vocabulary, languages = strings(words, "vocabulary"), languages_of(words)
    rows = word_rows(pack(texts), vocabulary, settings.language, languages, context.threads)
    basis = vectors["basis"]
    return _add_codes(_core.embed_rows(basis, *rows, threads=context.threads), context.threads)


def _add_codes(vectors: F32, threads: int) -> Outputs:
    """Return the vectors with an 8-bit copy that preselects candidates."""
    codes, scale, residual = _core.quantise_vectors(vectors, threads=threads)
    return {
        "entity_vectors": vectors,
        "entity_codes": codes,
        "entity_scale": scale,
        "entity_residual": residual,
    }
