"""Builds on Ray, in shards that are merged, and search on Ray Serve. Users import `ketrag_fast.ray`.

Ray is imported in this package only, and only by the functions that use it.
"""
