"""The core's HTTP front and the plans by which it answers, for the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ketrag_fast.query.prepared import Plan, front_type

if TYPE_CHECKING:
    from ketrag_fast.query.prepared import Front as Front

__all__ = ["Plan", "front_type"]
