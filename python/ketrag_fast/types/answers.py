"""Answers with their citations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ketrag_fast.types.contexts import Context, Passage, _spans


@dataclass(frozen=True, slots=True)
class Citation:
    """`[number]` in an answer and the passage that it leads to, which is really in its document."""

    number: int
    passage: Passage

    def to_json(self) -> dict[str, Any]:
        """As the command prints it (85-interface)."""
        passage = self.passage
        return {
            "number": self.number,
            "document": passage.document,
            "title": passage.title,
            "page": passage.page,
            "location": dict(passage.location),
            "metadata": dict(passage.metadata),
            "start": passage.start,
            "end": passage.end,
            "unit": {"kind": passage.kind, "id": passage.unit},
            "chunk": passage.chunk,
            "text": passage.text,
            **({} if passage.printed is None else {"sources": _spans(passage.sources)}),
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """What `ask` answers. `text` cites passages as [n]; `citations` are those, in the order of their first
    use; `citations_removed` counts numbers of the model's that led nowhere.

    `reason` says why no model was asked (`no_model`, or the context's own reason), else None; `text` is then
    empty, or says that the information does not suffice. `passages_used` of the context's passages were
    given to the model: fewer than there are where its own context is small. `finish` is how the reply
    ended ("stop", or "length", "time", "repetition", "cancelled" where it was cut). `decision` (yes, no,
    maybe) and `ranking` (the letters of the options, best first) are there where the question was of that
    kind.
    """

    question: str
    text: str
    context: Context
    citations: Sequence[Citation] = ()
    citations_removed: int = 0
    passages_used: int = 0
    reason: str | None = None
    finish: str | None = None
    model: Mapping[str, Any] | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_shared: int = 0
    usd: float | None = None
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    decision: str | None = None
    ranking: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """As the command prints it (85-interface)."""
        return {
            "schema": "ketrag/answer/1",
            "question": self.question,
            "mode": self.context.mode,
            "budget": self.context.budget,
            "reason": self.reason,
            "answer": self.text,
            **({} if self.decision is None else {"decision": self.decision}),
            **({} if self.ranking is None else {"ranking": list(self.ranking)}),
            "citations": [citation.to_json() for citation in self.citations],
            "citations_removed": self.citations_removed,
            "finish": self.finish,
            "tokens": {
                "context": self.context.tokens,
                "in": self.tokens_in,
                "out": self.tokens_out,
                "shared": self.tokens_shared,
            },
            "usd": self.usd,
            "model": None if self.model is None else dict(self.model),
            "passages_used": self.passages_used,
            "passages": [passage.to_json() for passage in self.context.passages],
            "timings_ms": dict(self.timings_ms),
            "generation": self.context.generation,
            "warnings": list(self.warnings),
        }
