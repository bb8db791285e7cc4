"""Embedding models: one protocol, several engines, loaded when needed."""

from ketrag_fast.models.embedders.protocol import Embedder, Engine, Precision, Role

__all__ = ["Embedder", "Engine", "Precision", "Role"]
