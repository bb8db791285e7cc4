"""The core's HTTP front and the plans by which it answers, for the service."""

from ketrag_fast.query.prepared import Front, Plan

__all__ = ["Front", "Plan"]
