"""Passages of an index as LangChain's documents."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, PrivateAttr

from ketrag_fast import Context, Passage
from langchain_ketrag.opening import Opening

_ENOUGH = 10_000_000
"""Tokens that any number of passages fit: `k` alone decides."""


class KetragRetriever(BaseRetriever):
    """The passages of a ketrag index that tell most about a question.

    `k` passages come at most; with a `budget` of tokens as many of them as fit. All of these may also be
    given to `invoke`. `settings` are those of `ketrag_fast.Settings`.
    """

    path: str
    k: int = Field(default=5, ge=0)
    mode: str | None = None
    budget: int | None = Field(default=None, ge=0)
    explain: bool = False
    deadline: float | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    _opening: Opening = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """The index is opened by the first question."""
        super().model_post_init(context)
        self._opening = Opening(self.path, self.settings)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **given: Any
    ) -> list[Document]:
        return self._documents(self._opening.index().retrieve(query, **self._options(given)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **given: Any
    ) -> list[Document]:
        return self._documents(await self._opening.index().aretrieve(query, **self._options(given)))

    def _options(self, given: dict[str, Any]) -> dict[str, Any]:
        known = ("k", "mode", "budget", "explain", "deadline")
        unknown = set(given) - set(known)
        if unknown:
            raise TypeError(f"there is no option {', '.join(sorted(unknown))}; options: {', '.join(known)}")
        chosen = {name: given.get(name, getattr(self, name)) for name in known}
        top = chosen.pop("k")
        if chosen["budget"] is None:
            chosen["budget"] = _ENOUGH
        return {**chosen, "top": top}

    def _documents(self, found: Context) -> list[Document]:
        return [_document(passage, found) for passage in found.passages]

    def refresh(self) -> bool:
        """Takes up a newer generation of the index; True if there was one."""
        return self._opening.index().refresh()

    def close(self) -> None:
        """Lets go of the index; the next question opens it again."""
        self._opening.close()


def _document(passage: Passage, found: Context) -> Document:
    metadata: dict[str, Any] = {
        "document": passage.document,
        "title": passage.title,
        "start": passage.start,
        "end": passage.end,
        "page": passage.page,
        "score": passage.score,
        "rank": passage.rank,
        "unit": passage.unit,
        "chunk": passage.chunk,
        "mode": found.mode,
        "generation": found.generation,
    }
    if passage.why:
        metadata["why"] = list(passage.why)
    name = f"{passage.document}:{passage.start}-{passage.end}"
    return Document(id=name, page_content=passage.said, metadata=metadata)
