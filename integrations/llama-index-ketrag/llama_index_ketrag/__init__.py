"""An index of ketrag-fast as LlamaIndex's retriever and embedding."""

from llama_index_ketrag.embedding import KetragEmbedding
from llama_index_ketrag.retriever import KetragRetriever

__all__ = ["KetragEmbedding", "KetragRetriever"]
