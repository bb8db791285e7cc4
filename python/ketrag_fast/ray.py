"""Build an index on Ray: one task for each shard of the documents, then a merge. Needs `ray[client]`.

`search_application` answers queries on Ray Serve. It needs `ray[client,serve]`.
"""

from __future__ import annotations

from ketrag_fast.index.on_ray.building import ShardReport, build, build_shards
from ketrag_fast.index.on_ray.serving import search_application

__all__ = ["ShardReport", "build", "build_shards", "search_application"]
