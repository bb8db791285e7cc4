"""The encoder of an index as LangChain embeddings."""

from __future__ import annotations

from typing import Any

from langchain_core.embeddings import Embeddings

from langchain_ketrag.opening import LazyIndex


class KetragEmbeddings(Embeddings):
    """Embed texts with the embedding model of a ketrag index, or in the space fitted on its corpus."""

    def __init__(self, path: str, settings: dict[str, Any] | None = None) -> None:
        self._opening = LazyIndex(path, settings or {})

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of documents."""
        if not texts:
            return []
        rows: list[list[float]] = self._opening.index().inspect.vectors(texts, "document").tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        row: list[float] = self._opening.index().inspect.vectors([text], "query")[0].tolist()
        return row

    def close(self) -> None:
        """Close the index; the next text opens it again."""
        self._opening.close()
