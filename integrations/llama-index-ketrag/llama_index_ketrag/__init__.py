"""An index of ketrag-fast as a LlamaIndex retriever and embedding."""

from llama_index_ketrag.embedding import KetragEmbedding
from llama_index_ketrag.retriever import KetragRetriever

__all__ = ["KetragEmbedding", "KetragRetriever"]
