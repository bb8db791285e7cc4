"""Core selection, plainly: the count, the ranked choice and the seeded draw with ChaCha8 spelled out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

M32 = 0xFFFFFFFF


def core_count(n: int, ratio: float) -> int:
    """`min(n, ceil(ratio * n - 1e-9))`."""
    return min(n, max(0, math.ceil(ratio * n - 1e-9)))


def select_ranked(scores: Sequence[float], count: int) -> list[int]:
    """The first `count` ids by (score rounded to 1e-12 descending, id ascending)."""
    # math.floor(x + 0.5) would move halves of negative numbers: scores are ranks, hence not negative.
    return sorted(range(len(scores)), key=lambda i: (-math.floor(scores[i] * 1e12 + 0.5), i))[:count]


def select_uniform(n: int, count: int, seed: int, stage: str) -> list[int]:
    """The first `count` of a Fisher-Yates shuffle of `range(n)` from the highest index."""
    ids = list(range(n))
    words = stage_words(seed, stage)
    for i in range(n - 1, 0, -1):
        j = _below(words, i + 1)
        ids[i], ids[j] = ids[j], ids[i]
    return ids[:count]


def stage_words(seed: int, stage: str) -> Iterator[int]:
    """The 64-bit words of ChaCha8 with the seed as key and the FNV-1a hash of the name as stream."""
    stream = 0xCBF29CE484222325
    for byte in stage.encode():
        stream = (stream ^ byte) * 0x100000001B3 % 2**64
    head = [int.from_bytes(b"expand 32-byte k"[i : i + 4], "little") for i in range(0, 16, 4)]
    key = [seed & M32, seed >> 32, 0, 0, 0, 0, 0, 0]
    block = 0
    while True:
        start = [*head, *key, block & M32, block >> 32, stream & M32, stream >> 32]
        state = list(start)
        for _ in range(4):
            for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)):
                _quarter(state, a, b, c, d)
            for a, b, c, d in ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
                _quarter(state, a, b, c, d)
        out = [(x + y) & M32 for x, y in zip(state, start, strict=True)]
        for low, high in zip(out[::2], out[1::2], strict=True):
            yield low | high << 32
        block += 1


def _quarter(s: list[int], a: int, b: int, c: int, d: int) -> None:
    for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & M32
        mixed = s[z] ^ s[x]
        s[z] = (mixed << turn | mixed >> (32 - turn)) & M32


def _below(words: Iterator[int], bound: int) -> int:
    last = 2**64 - 2**64 % bound
    return next(word for word in words if word < last) % bound
