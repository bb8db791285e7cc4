"""Reasons of the passages of a context, computed by the core after the ranking for printed passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ketrag_fast import _core
from ketrag_fast.query.reason_text import Reason, best_pair_text, why
from ketrag_fast.systems.shared.document_languages import languages_of
from ketrag_fast.types import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.models.embedders.sparse import Terms
    from ketrag_fast.query.open_generation import Opened


@dataclass(frozen=True, slots=True)
class Explainer:
    """Explains the passages of one query.

    `ranked` is the text that was ranked by, `vector` its vector, `terms` its terms.
    """

    opened: Opened
    request: _core.Request
    question: str
    ranked: str
    vector: NDArray[np.float32] | None
    terms: Terms | None = None

    def explained(self, passages: Sequence[Passage]) -> list[Passage]:
        """Return the passages with their reasons: keywords of the question, then partners and chains."""
        reasons: dict[int, Reason] = {}
        searcher = self.opened.searcher
        for channel in dict.fromkeys(p.channel for p in passages):
            own = [at for at, p in enumerate(passages) if p.channel == channel]
            units = [passages[at].unit for at in own]
            found = searcher.explain(
                self.request, channel, self.ranked, units, vector=self.vector, terms=self.terms
            )
            reasons |= dict(zip(own, found, strict=False))  # a channel without explanations returns none
        printed: dict[int, Passage] = {}
        for passage in passages:
            for unit in (passage.unit, *passage.units, *(copy.unit for copy in passage.also_in)):
                printed.setdefault(unit, passage)

        def place(unit: int) -> tuple[dict[str, Any], str]:
            _, document, title, start, *_ = searcher.places([unit], [0])[0]
            own = printed.get(unit)
            rank = None if own is None else own.rank
            found = {"unit": unit, "document": document, "title": title, "start": start, "rank": rank}
            return found, "" if own is None else f"{title}\n{own.text}"

        languages = languages_of(self.opened.generation.stages.get("links"))
        return [
            replace(
                passage,
                why=(
                    *why(self.question, passage, languages),
                    *(best_pair_text(passage, reasons[at], place, len(searcher)) if at in reasons else ()),
                ),
            )
            for at, passage in enumerate(passages)
        ]
