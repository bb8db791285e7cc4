"""The public entry point: `Index` builds, opens, changes and queries an index."""

from __future__ import annotations

from ketrag_fast.index.index import Index

__all__ = ["Index"]
