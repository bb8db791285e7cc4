"""Kinds of edges of a citation graph, one bit each."""

ADJACENT, REFERENCE, CITED, CITING = 1, 2, 4, 8
"""From the preceding text, from a referenced text, from a cited document, and from a citing document."""
