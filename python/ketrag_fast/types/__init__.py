"""Frozen values of the public interface, independent of how they are stored or computed."""

from __future__ import annotations

from ketrag_fast.types.answers import Answer, Citation, Quote
from ketrag_fast.types.contexts import Cited, Context, Copy, Lazy, Passage
from ketrag_fast.types.documents import Document, Failure, Listed, Section, Span
from ketrag_fast.types.entities import Entity, Relation
from ketrag_fast.types.graph_views import GraphEdge, GraphNode, GraphView
from ketrag_fast.types.hits import Excerpt, Files, Hit, Hits, Match, Place, ShownLine
from ketrag_fast.types.locations import Location, Locator
from ketrag_fast.types.reports import BuildReport, StageReport, Usage

__all__ = [
    "Answer",
    "BuildReport",
    "Citation",
    "Cited",
    "Context",
    "Copy",
    "Document",
    "Entity",
    "Excerpt",
    "Failure",
    "Files",
    "GraphEdge",
    "GraphNode",
    "GraphView",
    "Hit",
    "Hits",
    "Lazy",
    "Listed",
    "Location",
    "Locator",
    "Match",
    "Passage",
    "Place",
    "Quote",
    "Relation",
    "Section",
    "ShownLine",
    "Span",
    "StageReport",
    "Usage",
]
