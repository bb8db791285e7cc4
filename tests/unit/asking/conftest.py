"""Loopback, as the tests of backends have it."""

from tests.unit.backends.conftest import loopback

__all__ = ["loopback"]
