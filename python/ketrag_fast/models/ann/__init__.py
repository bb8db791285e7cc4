"""Nearest-neighbour search: an exact scan and hnswlib behind one protocol."""

from ketrag_fast.models.ann.protocol import Nearest

__all__ = ["Nearest"]
