from __future__ import annotations

from tests.systems.outside import install

__all__ = ["install"]
