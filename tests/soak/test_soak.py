"""Some kills and crashes of the attack; all of it with `-m soak`, or `make soak`, which prints the report."""

from __future__ import annotations

import os

import pytest

from tests.soak import drive
from tests.support.parts import missing as absent

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


SCALES = {"kills": 0.02, "crashes": 0.002}
"""A few seconds of each."""


@needs_fork
@pytest.mark.parametrize("part", list(SCALES))
def test_a_part_of_the_attack(part: str) -> None:
    scale = SCALES[part]
    outcomes, missing = drive.all_of([part], 7, scale, 2)
    assert not drive.faults(outcomes), drive.report(drive.faults(outcomes), missing)
    ends = {outcome.said.removeprefix("read old, changed ") for outcome in outcomes}
    if part == "crashes" and missing:
        absent(missing[0])
    assert ends & {"right", "new"}, ends
    assert len(ends) > 1 or part == "kills", ends  # what was done had its effect


@pytest.mark.soak
@needs_fork
def test_all_of_the_attack() -> None:
    outcomes, missing = drive.all_of(list(drive.PARTS), 1, 1.0, 2)
    assert not drive.faults(outcomes), drive.report(outcomes, missing)
