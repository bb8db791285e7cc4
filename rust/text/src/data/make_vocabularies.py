"""Write cl100k_base.bin and o200k_base.bin: each token as the pair of earlier tokens that it consists of, or
as a token of the other vocabulary.

Needs tiktoken and, offline, its vocabularies in TIKTOKEN_CACHE_DIR. Run: python make_vocabularies.py

A file has the 256 single bytes in the order of their tokens, the number of other tokens (4 bytes), and a bit
for each of these: whether cl100k_base has it, too. Then come the numbers of those tokens in cl100k_base, and
the pairs (left, right) of the rest. Of each list the low bytes of all numbers come first, then their middle
and their high bytes. A wheel compresses this to 60 % of what the bytes of the tokens need.
"""

from __future__ import annotations

from pathlib import Path

import tiktoken


def pairs_of(tokens: list[bytes]) -> list[tuple[int, int]]:
    """Return for each token of several bytes two earlier tokens that it consists of, the smallest pair."""
    numbers = {token: number for number, token in enumerate(tokens)}
    pairs = []
    for number, token in enumerate(tokens[256:], 256):
        splits = [(numbers.get(token[:at]), numbers.get(token[at:])) for at in range(1, len(token))]
        earlier = [(a, b) for a, b in splits if a is not None and b is not None and max(a, b) < number]
        pairs.append(min(earlier, key=lambda pair: (pair[0] + 2) * (pair[1] + 2)))
    return pairs


def planes(numbers: list[int]) -> bytes:
    """Return the low bytes of all numbers, then their middle and their high bytes."""
    return b"".join(bytes(number >> shift & 255 for number in numbers) for shift in (0, 8, 16))


def encode(tokens: list[bytes], base: list[bytes]) -> bytes:
    """Return the bytes of a file, given the tokens of the vocabulary that it refers to."""
    known = {token: number for number, token in enumerate(base)}
    others = tokens[256:]
    flags = bytearray(-(-len(others) // 8))
    for at, token in enumerate(others):
        flags[at // 8] |= (token in known) << at % 8
    pairs = [pair for token, pair in zip(others, pairs_of(tokens), strict=True) if token not in known]
    left, right = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    numbers = planes([known[token] for token in others if token in known])
    head = b"".join(tokens[:256]) + len(others).to_bytes(4, "little") + flags
    return head + numbers + planes(left) + planes(right)


def main() -> None:
    """Write both files next to this script."""
    base: list[bytes] = []
    for name in ("cl100k_base", "o200k_base"):
        ranks = tiktoken.get_encoding(name)._mergeable_ranks
        tokens = sorted(ranks, key=lambda token: ranks[token])
        if [ranks[token] for token in tokens] != list(range(len(tokens))):
            raise SystemExit(f"the numbers of {name} have gaps")
        if any(len(token) != 1 for token in tokens[:256]):
            raise SystemExit(f"{name} does not begin with the single bytes")
        Path(__file__).with_name(f"{name}.bin").write_bytes(encode(tokens, base))
        base = tokens


if __name__ == "__main__":
    main()
