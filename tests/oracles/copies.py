"""Keys of passages, word by word and bit by bit: the oracle of `rust/text/src/copies.rs`."""

from __future__ import annotations

import hashlib

IN_FRONT, AT_END, SIGNS = "+-−~<>=$€£¥", "+%‰°$€£¥", "<>=!+*/%&^~|@$€£¥"
SPACES = "\t\n\v\f\r \x85\xa0"
WORDS = 2**64 - 1


def key(text: str) -> tuple[int, int]:
    """Return the hash of the facts, and the sketch."""
    every, facts, tokens = "", "", list[str]()
    for space in SPACES:
        text = text.replace(space, " ")
    for word in text.split(" "):
        bare = word
        while bare and not (bare[-1].isalnum() or bare[-1] in AT_END):
            bare = bare[:-1]
        while bare and not (bare[0].isalnum() or bare[0] in IN_FRONT):
            bare = bare[1:]
        if not any(c.isalnum() for c in bare):
            bare = word if set(word) & set(SIGNS) else ""
        if not bare:
            continue
        if len(tokens) < 24:
            every += bare + "\n"
        if any(c.isnumeric() or c.isupper() or c in SIGNS for c in bare):
            facts += bare + "\n"
        run = ""
        for c in bare:
            if is_unspaced(c):
                tokens += [run, c]
                run = ""
            else:
                run += c.lower()
        tokens.append(run)
        tokens = [token for token in tokens if token]
    if len(tokens) < 24:
        return digest(b"\1" + every.encode()), 0
    runs = [gram(*tokens[k : k + 3]) for k in range(len(tokens) - 2)]
    bits = [sum(run >> bit & 1 for run in runs) * 2 > len(runs) for bit in range(64)]
    return digest(b"\0" + facts.encode()), sum(1 << bit for bit in range(64) if bits[bit])


def is_unspaced(c: str) -> bool:
    """Return whether the script of a character has no spaces between words."""
    return "\u0e00" <= c <= "\u0eff" or "\u3041" <= c <= "\u30ff" or "\u4e00" <= c <= "\u9fff"


def digest(data: bytes) -> int:
    """Return the first eight bytes of BLAKE2b."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def gram(*words: str) -> int:
    """Hash three words: FNV-1a of each, turned by 21 bits for each place, and the finaliser of SplitMix64."""
    mixed = 0
    for place, word in enumerate(words):
        hashed = 0xCBF29CE484222325
        for byte in word.encode():
            hashed = (hashed ^ byte) * 0x100000001B3 & WORDS
        turn = 21 * place
        mixed ^= (hashed << turn | hashed >> (64 - turn)) & WORDS
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & WORDS
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & WORDS
    return mixed ^ mixed >> 31
