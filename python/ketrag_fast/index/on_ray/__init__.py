"""Builds on Ray: one task for each shard of the documents, then a merge. Users import `ketrag_fast.ray`.

Ray is imported in this package only, and only while a build runs.
"""
