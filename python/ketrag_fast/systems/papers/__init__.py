"""The four published systems (KET-RAG, G2ConS, NodeRAG, CG-RAG), each a package with its stages and channels.

The engine does not import this package; the registry finds it. Without it the systems are `plain` and `walk`.
"""

from __future__ import annotations

from typing import Final

from ketrag_fast.systems.papers import cg_rag, g2cons, ket_rag, noderag

SYSTEMS: Final = (ket_rag.SYSTEM, g2cons.SYSTEM, noderag.SYSTEM, cg_rag.SYSTEM)
