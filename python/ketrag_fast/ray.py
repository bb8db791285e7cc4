"""Build an index on Ray: one task for each shard of the documents, then a merge. Needs the extra `ray`."""

from __future__ import annotations

from ketrag_fast.index.on_ray.building import ShardReport, build, build_shards

__all__ = ["ShardReport", "build", "build_shards"]
