"""Passages of an index as LlamaIndex's nodes."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from ketrag_fast import Context, Passage
from llama_index_ketrag.opening import Opening

_ENOUGH = 10_000_000
"""Tokens that any number of passages fit: `similarity_top_k` alone decides."""
_DEEPEST = 1000


class KetragRetriever(BaseRetriever):
    """The passages of a ketrag index that tell most about a question.

    `similarity_top_k` come at most; with a `budget` of tokens as many of them as fit. `filters` hold for what
    is found, on the names of a node's metadata. `settings` are those of `ketrag_fast.Settings`.
    """

    def __init__(
        self,
        path: str,
        *,
        similarity_top_k: int = 5,
        mode: str | None = None,
        budget: int | None = None,
        filters: MetadataFilters | None = None,
        deadline: float | None = None,
        settings: dict[str, Any] | None = None,
        **others: Any,
    ) -> None:
        super().__init__(**others)
        if similarity_top_k < 0:
            raise ValueError("similarity_top_k must be 0 or more")
        self._opening = Opening(str(path), settings or {})
        self._top = similarity_top_k
        self._filters = filters
        self._options = {
            "mode": mode,
            "budget": _ENOUGH if budget is None else budget,
            "deadline": deadline,
        }

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        index = self._opening.index()
        if self._filters is None:
            found = index.retrieve(query_bundle.query_str, top=self._top, **self._options)
            return [_node(passage, found) for passage in found.passages]
        top = max(self._top, 1)
        while True:  # the ranking is gone down until enough nodes pass
            top = min(4 * top, _DEEPEST)
            found = index.retrieve(query_bundle.query_str, top=top, **self._options)
            nodes = [_node(passage, found) for passage in found.passages]
            by_name = {node.node.node_id: node.node.metadata for node in nodes}
            passes = build_metadata_filter_fn(by_name.__getitem__, self._filters)
            kept = [node for node in nodes if passes(node.node.node_id)]
            if len(kept) >= self._top or len(nodes) < top or top == _DEEPEST:
                return kept[: self._top]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        import asyncio

        return await asyncio.to_thread(self._retrieve, query_bundle)

    def refresh(self) -> bool:
        """Takes up a newer generation of the index; True if there was one."""
        return self._opening.index().refresh()

    def close(self) -> None:
        """Lets go of the index; the next question opens it again."""
        self._opening.close()


def _node(passage: Passage, found: Context) -> NodeWithScore:
    metadata: dict[str, Any] = {
        "document": passage.document,
        "title": passage.title,
        "page": passage.page,
        "rank": passage.rank,
        "unit": passage.unit,
        "chunk": passage.chunk,
        "mode": found.mode,
        "generation": found.generation,
    }
    node = TextNode(
        id_=f"{passage.document}:{passage.start}-{passage.end}",
        text=passage.said,
        metadata=metadata,
        start_char_idx=passage.start,
        end_char_idx=passage.end,
        # A model reads what a person would want to know of the source, and no numbers of ours.
        excluded_llm_metadata_keys=["rank", "unit", "chunk", "mode", "generation"],
        excluded_embed_metadata_keys=list(metadata),
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=passage.document)},
    )
    return NodeWithScore(node=node, score=passage.score)
