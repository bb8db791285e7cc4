"""An index of ketrag-fast as a LangChain retriever and embeddings."""

from langchain_ketrag.embeddings import KetragEmbeddings
from langchain_ketrag.retriever import KetragRetriever

__all__ = ["KetragEmbeddings", "KetragRetriever"]
