"""A job, and how it ended."""

from __future__ import annotations

from typing import NamedTuple


class Job(NamedTuple):
    """The n-th attempt of one kind in one part of the attack: with the seed it says all about it."""

    part: str
    kind: str
    number: int


class Outcome(NamedTuple):
    """`what` was done; `said` is how it ended."""

    job: Job
    what: str
    said: str
