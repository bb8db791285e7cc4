"""Answers with their citations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ketrag_fast.records import dataclass, field
from ketrag_fast.types.contexts import Context, Passage, _spans
from ketrag_fast.types.turns import MOST_ANSWER, MOST_TITLES, Turn

_NEAR: Final = 10
"""First passages of a context whose titles an answer may mention."""
_WORDS: Final = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")
_CITED: Final = re.compile(r"(?<!\s)\s*+\[(?:\d+|\?)\]")


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation `[number]` in an answer, and the passage that it refers to.

    Examples:
        >>> passage = index.retrieve("Who sailed the Fram?", mode="bm25").passages[0]
        >>> Citation(1, passage).to_json()["document"]
        'fram'
    """

    number: int
    passage: Passage

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
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
class Quote:
    """A part of passage `number`: `document.text[start:end] == text`, offsets in code points.

    `score` is set by extractive models: the span's logit minus the logit of "no answer". If the quote
    is a row of a table, `header` is the table's header.

    Examples:
        >>> index.ask("Who sailed the Fram?", mode="bm25").quotes[0].text
        'Nansen sailed the Fram into the ice in 1893.'
    """

    number: int
    text: str
    document: str
    start: int
    end: int
    score: float | None = None
    header: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        return {
            "number": self.number,
            "text": self.text,
            "document": self.document,
            "start": self.start,
            "end": self.end,
            **({} if self.score is None else {"score": self.score}),
            **({"header": self.header} if self.header else {}),
        }


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """A sentence of an answer without citation marks, and the numbers of the passages that it cites.

    `is_supported` is whether the cited passages support the sentence. It is None if the sentence makes no
    claim that a passage could support, such as a lead-in, or if no passage is in its language.

    Examples:
        >>> AnswerSentence("Nansen sailed the Fram.", (1,), True).to_json()
        {'text': 'Nansen sailed the Fram.', 'citations': [1], 'supported': True}
    """

    text: str
    citations: tuple[int, ...]
    is_supported: bool | None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        return {"text": self.text, "citations": list(self.citations), "supported": self.is_supported}


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of `ask`. `text` cites passages as [n]; `citations` lists them in order of first use.

    Each sentence that a model writes is compared with the passages: wrong citations are replaced, missing
    ones added, and a sentence that no passage supports ends with `[?]`.

    Attributes:
        sentences: the sentences that a model wrote, each with its citations and whether they support it.
        quotes: without a model, the sentences that match the question best; with an extractive
            model, the best spans, of which the first is the answer.
        citations_removed: the number of citations in the reply that referred to no passage.
        reason: why no model was called (`no_model`, or the context's reason), or `no_answer` of an extractive
            model, else None. `text` is then empty, or states that the information is not sufficient.
        passages_used: the number of passages given to the model, which is reduced if its window is small.
        finish: why the reply ended: "stop", or "length", "time", "repetition", "cancelled" if it was cut.
        decision: yes, no or maybe, for a yes/no question.
        ranking: the letters of the options, best first, for questions with options.
        taken: what a question that continues a conversation took from its history, without a model.
        read_as: the question that stands alone, as which a model rewrote a question of a conversation.
        asked: the question with what it took, None if that is nothing.

    Examples:
        >>> answer = index.ask("Who sailed the Fram?")  # without a model: the context and a reason
        >>> answer.text, answer.reason, answer.citations
        ('', 'no_model', ())
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
    quotes: tuple[Quote, ...] = ()
    sentences: tuple[AnswerSentence, ...] = ()
    taken: tuple[str, ...] = ()
    read_as: str | None = None
    asked: str | None = None

    @property
    def turn(self) -> Turn:
        """This question and answer as an entry of the `history` of the next question."""
        passages = self.context.passages
        cited = [citation.passage for citation in self.citations]
        cited += [passages[quote.number - 1] for quote in self.quotes]
        text = self.plain if self.citations or not self.quotes else " ".join(q.text for q in self.quotes)
        said = f" {' '.join(_WORDS.findall(text.lower()))} "
        mentioned = [one.title for one in passages[:_NEAR] if _is_mentioned(one.title, said)]
        titles = [*mentioned, *(one.title for one in cited), *(one.title for one in passages[:1])]
        names = tuple(dict.fromkeys(filter(None, (*titles, *self.taken))))
        question = self.read_as or self.asked or self.question
        return Turn(question, text[:MOST_ANSWER], names[:MOST_TITLES])

    @property
    def is_quoted(self) -> bool:
        """Whether the answer is a span of a passage, quoted by an extractive model."""
        return bool(self.citations and self.model and self.model.get("kind") == "extractive")

    @property
    def plain(self) -> str:
        """The text without citation marks; for a quoted answer, only the span."""
        return self.quotes[0].text if self.is_quoted else _CITED.sub("", self.text).strip()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        return {
            "schema": "ketrag/answer/1",
            "question": self.question,
            "mode": self.context.mode,
            "budget": self.context.budget,
            "reason": self.reason,
            "answer": self.text,
            **({} if self.decision is None else {"decision": self.decision}),
            **({} if self.ranking is None else {"ranking": list(self.ranking)}),
            "quotes": [quote.to_json() for quote in self.quotes],
            "citations": [citation.to_json() for citation in self.citations],
            "citations_removed": self.citations_removed,
            "sentences": [sentence.to_json() for sentence in self.sentences],
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
            "taken": list(self.taken),
            "read_as": self.read_as,
            "turn": self.turn.to_json(),
        }


def _is_mentioned(title: str, said: str) -> bool:
    """Return whether a text, as words with spaces, has a title without what follows in brackets."""
    words = " ".join(_WORDS.findall(title.split(" (")[0].lower().replace("_", " ")))
    return bool(words) and f" {words} " in said
