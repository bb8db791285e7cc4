"""The encoder of an index as LangChain's embeddings."""

from __future__ import annotations

from typing import Any

from langchain_core.embeddings import Embeddings

from langchain_ketrag.opening import Opening


class KetragEmbeddings(Embeddings):
    """Vectors in the space of a ketrag index: of its embedding model, or fitted on its corpus."""

    def __init__(self, path: str, settings: dict[str, Any] | None = None) -> None:
        self._opening = Opening(path, settings or {})

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts that are to be found."""
        if not texts:
            return []
        rows: list[list[float]] = self._opening.index().inspect.vectors(texts, "document").tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        row: list[float] = self._opening.index().inspect.vectors([text], "query")[0].tolist()
        return row

    def close(self) -> None:
        """Lets go of the index; the next text opens it again."""
        self._opening.close()
