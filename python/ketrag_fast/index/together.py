"""Run one query over several indexes, and merge their passages by relevance.

Relevance has the same scale in all indexes, and never increases with the rank. To rank the documents of
several indexes as if they were in one, merge the indexes instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from ketrag_fast.base.memory import enough_memory
from ketrag_fast.errors import ModeUnavailable
from ketrag_fast.index.index import Index
from ketrag_fast.query.query import Clock, QueryFields
from ketrag_fast.types import Context, Passage
from ketrag_fast.types.contexts import NOTHING_FITS, merged_reading

if TYPE_CHECKING:
    from ketrag_fast.types import Answer

Indexes = Mapping[str | None, Index]
"""Open indexes by name; the key of a single index may be None."""


@enough_memory()
def retrieve(indexes: Indexes, query: str, **fields: Unpack[QueryFields]) -> Context:
    """Return the context of a query over several indexes. For a single index it equals the index's context.

    Raises the errors of `Index.retrieve`, and ModeUnavailable if a context to merge is not a list of
    passages.
    """
    if len(indexes) == 1:
        return next(iter(indexes.values())).retrieve(query, **fields)
    settings = next(iter(indexes.values()))._opened.settings
    clock = Clock(fields.get("deadline") or settings.deadline, 1)
    contexts = {}
    for name, index in indexes.items():
        fields["deadline"] = clock.left()
        contexts[str(name)] = index.retrieve(query, **fields)
    return _merged(contexts, fields.get("top") or settings.top)


@enough_memory()
def ask(indexes: Indexes, query: str, *, fields: QueryFields, **options: Any) -> Answer:
    """Answer a query from the context over several indexes, with the model of the first index.

    `options` are the other arguments of `Index.ask`. Raises the errors of `retrieve` and `Index.ask`.
    """
    from ketrag_fast.query.answering import AnswerOptions, answer_query
    from ketrag_fast.query.query import as_query

    first = next(iter(indexes.values()))
    if len(indexes) == 1:
        return first.ask(query, **options, **fields)
    context = retrieve(indexes, query, **fields)
    chosen = AnswerOptions(**options)
    return answer_query(first._opened, first.path, as_query(query, fields), chosen, context)


def _merged(contexts: Mapping[str, Context], top: int | None) -> Context:
    """Merge contexts: the most relevant passages of all of them, within one budget."""
    found: list[tuple[Passage, str]] = []
    for name, context in contexts.items():
        if len(context.sections) > 1 or (context.passages and not context.text.startswith("[1]")):
            raise ModeUnavailable(
                f"mode {context.mode} prints more than a list of passages, which cannot be merged",
                hint="choose one index, another --mode, or `ketrag merge` them into one",
            )
        blocks = zip(context.passages, _blocks(context), strict=True)
        found += [(replace(passage, index=name), block) for passage, block in blocks]
    found.sort(key=lambda row: -row[0].relevance)  # stable: ties keep index and rank order
    first = next((one for one in contexts.values() if one.passages), next(iter(contexts.values())))
    count = 0
    while count < len(found[:top]) and sum(one.tokens for one, _ in found[: count + 1]) <= first.budget:
        count += 1
    passages = [replace(passage, rank=rank) for rank, (passage, _) in enumerate(found[:count], 1)]
    tokens = sum(passage.tokens for passage in passages)
    text = "\n".join(f"[{rank}]{block}\n" for rank, (_, block) in enumerate(found[:count], 1))
    warnings = dict.fromkeys(warning for one in contexts.values() for warning in one.warnings)
    nothing_fits = all(one.nothing_fits or not one.passages for one in contexts.values())
    if not nothing_fits:
        warnings.pop(NOTHING_FITS, None)
    return replace(
        first,
        tokens=tokens,
        text=text,
        passages=passages,
        sections=tuple(replace(one, tokens=tokens, text=text) for one in first.sections),
        warnings=tuple(warnings),
        nothing_fits=nothing_fits and first.nothing_fits,
        **merged_reading(list(contexts.values())),
    )


def _blocks(context: Context) -> Sequence[str]:
    """Return the title and text of each passage in a context, without its number."""
    starts, position = [], 0
    for passage in context.passages:
        position = context.text.index(f"[{passage.rank}]", position)
        starts.append(position)
        position = context.text.index(passage.said, position) + len(passage.said)
    ends = [*starts, len(context.text)][1:]
    return [
        context.text[start + len(f"[{passage.rank}]") : end].rstrip("\n")
        for passage, start, end in zip(context.passages, starts, ends, strict=True)
    ]
