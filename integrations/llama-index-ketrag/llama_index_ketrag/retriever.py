"""Passages of an index as LlamaIndex nodes."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from ketrag_fast import Context, Passage
from llama_index_ketrag.filters import index_filter
from llama_index_ketrag.opening import LazyIndex

_JOINED = 3
"""Maximum number of neighbouring passages that the index joins into one, and thus requested per node."""
_UNLIMITED = 10_000_000
"""A token budget that any number of passages fits, so that `similarity_top_k` alone decides."""
_DEEPEST = 1000
_SOURCE_KEYS = ("document", "title", "page")
_NUMBER_KEYS = ("rank", "unit", "chunk", "mode", "generation")


class KetragRetriever(BaseRetriever):
    """Retrieve the passages of a ketrag index that are most relevant to a query.

    Returns at most `similarity_top_k` nodes, and with a `budget` as many of them as fit that many tokens.
    `filter` limits the passages to documents whose metadata matches: a string (`"year>=1990 and lang=en"`) or
    a mapping (`{"year": {"$gte": 1990}}`). `filters` are LlamaIndex's, on the metadata of nodes, which
    includes that of their document. `settings` are those of `ketrag_fast.Settings`.
    """

    def __init__(
        self,
        path: str,
        *,
        similarity_top_k: int = 5,
        mode: str | None = None,
        budget: int | None = None,
        filter: str | Mapping[str, Any] | None = None,  # noqa: A002 - the name in every interface
        filters: MetadataFilters | None = None,
        explain: bool = False,
        deadline: float | None = None,
        settings: dict[str, Any] | None = None,
        **others: Any,
    ) -> None:
        super().__init__(**others)
        if similarity_top_k < 0:
            raise ValueError(f"similarity_top_k must be 0 or more, got {similarity_top_k}")
        self._opening = LazyIndex(str(path), settings or {})
        self._top = similarity_top_k
        self._filters = filters
        if filter is None and filters is not None:
            filter = index_filter(filters, (*_SOURCE_KEYS, *_NUMBER_KEYS, "why"))  # noqa: A001 - as above
        self._options = {
            "mode": mode,
            "budget": _UNLIMITED if budget is None else budget,
            "filter": filter,
            "explain": explain,
            "deadline": deadline,
        }

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        index = self._opening.index()
        if self._filters is None:
            context = index.retrieve(query_bundle.query_str, top=_JOINED * self._top, **self._options)
            return [_node(passage, context) for passage in list(context.passages)[: self._top]]
        top = max(self._top, 1)
        while True:  # go down the ranking until enough nodes pass
            top = min(4 * top, _DEEPEST)
            context = index.retrieve(query_bundle.query_str, top=top, **self._options)
            nodes = [_node(passage, context) for passage in context.passages]
            by_name = {node.node.node_id: node.node.metadata for node in nodes}
            passes = build_metadata_filter_fn(by_name.__getitem__, self._filters)
            matches = [node for node in nodes if passes(node.node.node_id)]
            if len(matches) >= self._top or len(nodes) < top or top == _DEEPEST:
                return matches[: self._top]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)

    def refresh(self) -> bool:
        """Switch to the newest generation of the index; return True if there was a newer one."""
        return self._opening.index().refresh()

    def close(self) -> None:
        """Close the index; the next query opens it again."""
        self._opening.close()


def _node(passage: Passage, context: Context) -> NodeWithScore:
    about: dict[str, Any] = {
        "document": passage.document,
        "title": passage.title,
        "page": passage.page,
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
    everything = {**metadata, **about}
    node = TextNode(
        id_=f"{passage.document}:{passage.start}-{passage.end}",
        text=passage.said,
        metadata=everything,
        start_char_idx=passage.start,
        end_char_idx=passage.end,
        # A model reads the source of a passage; the rest would count against its context unseen by `budget`.
        excluded_llm_metadata_keys=[name for name in everything if name not in _SOURCE_KEYS],
        excluded_embed_metadata_keys=list(everything),
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=passage.document)},
    )
    return NodeWithScore(node=node, score=passage.score)
