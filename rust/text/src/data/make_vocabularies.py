"""Writes cl100k_base.bin and o200k_base.bin: each token's length (one byte) and bytes, by number.

Needs tiktoken and, offline, its vocabularies in TIKTOKEN_CACHE_DIR. Run: python make_vocabularies.py
"""

from __future__ import annotations

from pathlib import Path

import tiktoken


def main() -> None:
    """Writes both files beside this script."""
    for name in ("cl100k_base", "o200k_base"):
        tokens = tiktoken.get_encoding(name)._mergeable_ranks
        ordered = sorted(tokens, key=lambda token: tokens[token])
        if [tokens[token] for token in ordered] != list(range(len(ordered))):
            raise SystemExit(f"the numbers of {name} have gaps")
        data = b"".join(bytes([len(token)]) + token for token in ordered)
        Path(__file__).with_name(f"{name}.bin").write_bytes(data)


if __name__ == "__main__":
    main()
