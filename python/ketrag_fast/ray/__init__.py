"""Build an index on Ray: one task for each shard of the documents, then a merge.

Needs the extra `ray`. Ray is imported in this package only, and only while a build runs.
"""

from __future__ import annotations

from ketrag_fast.ray.building import ShardReport, build, build_shards

__all__ = ["ShardReport", "build", "build_shards"]
