"""Passages that a query selects without ranking them: by fields alone, or by a phrase of function words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ketrag_fast import _core
from ketrag_fast.query.plan import QueryPlan
from ketrag_fast.query.ranking import Prepared, print_rankings


def list_selected(
    plan: QueryPlan, prepared: Prepared, replies: Sequence[_core.Reply], threads: int | None
) -> list[_core.Reply]:
    """Return replies that list the selected passages in index order, if a mode found none among them.

    A query by fields alone lists the first selected passage of each document.
    """
    typed, filtered = plan.typed, plan.filtered
    is_empty = all(reply.reason is not None for reply in replies)
    if typed is None or filtered is None or not typed.demands or not filtered.units or not is_empty:
        return list(replies)
    if typed.text.strip() and typed.lists_documents and _has_keywords(plan, typed.text):
        return list(replies)  # the words of the query are in no selected passage
    units = np.flatnonzero(filtered.fits)
    if typed.lists_documents:
        documents = np.asarray(plan.opened.generation.stages["units"]["unit_document"])[units]
        units = units[np.unique(documents, return_index=True)[1]]
    typed.is_listed = True
    scores = 1.0 / np.arange(1, len(units) + 1)
    ranking = (units.astype(np.uint32), scores)
    return print_rankings(plan, prepared, [ranking] * len(replies), threads, min_score=0.0)


def _has_keywords(plan: QueryPlan, text: str) -> bool:
    from ketrag_fast.systems.shared.stored_rows import languages_of

    stages = plan.opened.generation.stages
    languages = languages_of(stages.get("links", stages.get("words")))
    return bool(_core.lexical_keywords(text, languages=languages))
