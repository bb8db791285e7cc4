"""The encoder of an index as a LlamaIndex embedding."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import PrivateAttr

from llama_index_ketrag.opening import LazyIndex


class KetragEmbedding(BaseEmbedding):
    """Embed texts with the embedding model of a ketrag index, or in the space fitted on its corpus."""

    _opening: LazyIndex = PrivateAttr()

    def __init__(self, path: str, settings: dict[str, Any] | None = None, **others: Any) -> None:
        super().__init__(**{"model_name": "ketrag", **others})
        self._opening = LazyIndex(str(path), settings or {})

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises the class."""
        return "KetragEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        row: list[float] = self._opening.index().inspect.vectors([query], "query")[0].tolist()
        return row

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        rows: list[list[float]] = self._opening.index().inspect.vectors(texts, "document").tolist()
        return rows

    def close(self) -> None:
        """Close the index; the next text opens it again."""
        self._opening.close()
