"""Retrieval systems: one module or package each, which declares everything about it.

`registry` lists them.
"""
