"""Write cl100k_base.bin and o200k_base.bin: each token as the pair of earlier tokens that it consists of.

Needs tiktoken and, offline, its vocabularies in TIKTOKEN_CACHE_DIR. Run: python make_vocabularies.py

A file has the 256 single bytes in the order of their tokens, then the pairs (left, right) of all other
tokens: the low bytes of all left numbers, their middle and their high bytes, then the same of the right
numbers. A wheel compresses this to 70 % of what the bytes of the tokens need.
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


def encode(tokens: list[bytes]) -> bytes:
    """Return the bytes of a file."""
    pairs = pairs_of(tokens)
    planes = [bytes(pair[side] >> shift & 255 for pair in pairs) for side in (0, 1) for shift in (0, 8, 16)]
    return b"".join([*tokens[:256], *planes])


def main() -> None:
    """Write both files next to this script."""
    for name in ("cl100k_base", "o200k_base"):
        ranks = tiktoken.get_encoding(name)._mergeable_ranks
        tokens = sorted(ranks, key=lambda token: ranks[token])
        if [ranks[token] for token in tokens] != list(range(len(tokens))):
            raise SystemExit(f"the numbers of {name} have gaps")
        if any(len(token) != 1 for token in tokens[:256]):
            raise SystemExit(f"{name} does not begin with the single bytes")
        Path(__file__).with_name(f"{name}.bin").write_bytes(encode(tokens))


if __name__ == "__main__":
    main()
