"""Notices a reply that goes round in circles."""

from __future__ import annotations

from typing import Final

TIMES: Final = 4
_SHORTEST: Final = 240
_LONGEST_TURN: Final = 600
_PROBE: Final = 24


def repeats(text: str) -> bool:
    """Whether the end of the text is one passage of up to 600 characters, at least four times in a row.

    Short passages must fill 240 characters, so that a row of dots or a table's rule is no circle.
    """
    tail = text[-TIMES * _LONGEST_TURN - _PROBE :]
    if len(tail) < _SHORTEST:
        return False
    probe = tail[-_PROBE:]
    at = tail.rfind(probe, 0, len(tail) - 1)
    if at < 0:
        return False
    turn = len(tail) - _PROBE - at
    length = max(TIMES * turn, _SHORTEST)
    return turn <= _LONGEST_TURN and len(tail) >= length and tail[-length:-turn] == tail[-(length - turn) :]
