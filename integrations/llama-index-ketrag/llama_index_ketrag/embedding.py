"""The encoder of an index as LlamaIndex's embedding."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import PrivateAttr

from llama_index_ketrag.opening import Opening


class KetragEmbedding(BaseEmbedding):
    """Vectors in the space of a ketrag index: of its embedding model, or fitted on its corpus."""

    _opening: Opening = PrivateAttr()

    def __init__(self, path: str, settings: dict[str, Any] | None = None, **others: Any) -> None:
        super().__init__(**{"model_name": "ketrag", **others})
        self._opening = Opening(str(path), settings or {})

    @classmethod
    def class_name(cls) -> str:
        """As LlamaIndex names it."""
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
        """Lets go of the index; the next text opens it again."""
        self._opening.close()
