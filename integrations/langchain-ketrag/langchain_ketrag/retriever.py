"""Passages of an index as LangChain documents."""

from __future__ import annotations

import copy
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, PrivateAttr

from ketrag_fast import Context, Passage
from langchain_ketrag.opening import LazyIndex

_JOINED = 3
"""Maximum number of neighbouring passages that the index joins into one, and thus requested per document."""
_UNLIMITED = 10_000_000
"""A token budget that any number of passages fits, so that `k` alone decides."""


class KetragRetriever(BaseRetriever):
    """Retrieve the passages of a ketrag index that are most relevant to a query.

    Returns at most `k` passages, and with a `budget` as many of them as fit that many tokens. `filter` limits
    the passages to documents whose metadata matches: a string (`"year>=1990 and lang=en"`) or a mapping
    (`{"year": {"$gte": 1990}}`). All of these may also be given to `invoke`. `settings` are those of
    `ketrag_fast.Settings`.
    """

    path: str
    k: int = Field(default=5, ge=0)
    mode: str | None = None
    budget: int | None = Field(default=None, ge=0)
    explain: bool = False
    deadline: float | None = None
    filter: str | dict[str, Any] | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    _opening: LazyIndex = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Prepare to open the index with the first query."""
        super().model_post_init(context)
        self._opening = LazyIndex(self.path, self.settings)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        options = self._options(options)
        return self._documents(self._opening.index().retrieve(query, **options), options["top"])

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        options = self._options(options)
        return self._documents(await self._opening.index().aretrieve(query, **options), options["top"])

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        names = ("k", "mode", "budget", "explain", "deadline", "filter")
        unknown = set(options) - set(names)
        if unknown:
            raise TypeError(f"unknown option {', '.join(sorted(unknown))}; options: {', '.join(names)}")
        chosen = {name: options.get(name, getattr(self, name)) for name in names}
        top = chosen.pop("k")
        if chosen["budget"] is None:
            chosen["budget"] = _UNLIMITED
        # The index reports what is wrong with any other value.
        return {**chosen, "top": _JOINED * top if isinstance(top, int) and top >= 0 else top}

    def _documents(self, context: Context, top: int) -> list[Document]:
        return [_document(passage, context) for passage in list(context.passages)[: top // _JOINED]]

    def refresh(self) -> bool:
        """Switch to the newest generation of the index; return True if there was a newer one."""
        return self._opening.index().refresh()

    def close(self) -> None:
        """Close the index; the next query opens it again."""
        self._opening.close()


def _document(passage: Passage, context: Context) -> Document:
    about: dict[str, Any] = {
        "document": passage.document,
        "title": passage.title,
        "start": passage.start,
        "end": passage.end,
        "page": passage.page,
        "score": passage.score,
        "rank": passage.rank,
        "unit": passage.unit,
        "chunk": passage.chunk,
        "mode": context.mode,
        "generation": context.generation,
    }
    if passage.why:
        about["why"] = list(passage.why)
    metadata = {
        f"metadata.{name}" if name in about else name: copy.deepcopy(value)
        for name, value in passage.metadata.items()
    }
    return Document(
        id=f"{passage.document}:{passage.start}-{passage.end}",
        page_content=passage.said,
        metadata={**metadata, **about},
    )
