"""Cut texts into token windows and group windows of similar length into batches, to avoid padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import BackendError
from ketrag_fast.records import dataclass

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Piece:
    """A window of a text: its token ids with special tokens, and `weight`, the count without them."""

    owner: int
    ids: list[int]
    weight: int


class Cutter:
    """Cuts texts into windows; tokenizes each text once."""

    def __init__(self, tokenizer: Any, longest: int | None, lower: bool = False) -> None:
        self._tokenizer = tokenizer
        self._lower = lower
        self.before, self.after = _specials(tokenizer)
        self.inner = None if longest is None else longest - len(self.before) - len(self.after)

    def tokens(self, texts: Sequence[str], prompt: str = "") -> list[list[int]]:
        """Return the token ids of prompt and text, without special tokens and not truncated."""
        if not texts:
            return []
        # As sentence-transformers does: trimmed, and lower-cased if the model's settings say so.
        joined = [prompt + whole(text.strip()) for text in texts]
        cleaned = [text.lower() if self._lower else text for text in joined]
        found = self._tokenizer(
            cleaned,
            add_special_tokens=False,
            truncation=False,
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )["input_ids"]
        return list(found)

    def pieces(self, texts: Sequence[str], prompt: str = "") -> list[Piece]:
        """Return the windows of all texts, in order.

        A text without tokens gives a window of special tokens, as in sentence-transformers, or none if the
        model has no special tokens.
        """
        head = self.tokens([prompt])[0] if prompt else []
        if self.inner is not None and self.inner - len(head) < 1:
            raise BackendError(f"the prompt of the model fills its maximum of {self.inner} tokens")
        out = []
        for owner, ids in enumerate(self.tokens(texts, prompt)):
            if self.inner is None or len(ids) <= self.inner:
                piece = [*self.before, *ids, *self.after]
                if piece:
                    out.append(Piece(owner, piece, max(len(ids) - len(head), 1)))
                continue
            own = self.tokens([texts[owner]])[0]
            room = self.inner - len(head)
            for start, end in spans(len(own), room):
                out.append(Piece(owner, [*self.before, *head, *own[start:end], *self.after], end - start))
        return out


def whole(text: str) -> str:
    """Return a text with question marks for lone surrogates, which tokenizers reject."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def _specials(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the special tokens that a tokenizer adds before and after a text."""
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    full = tokenizer("a", add_special_tokens=True)["input_ids"]
    for start in range(len(full) - len(bare) + 1):
        if full[start : start + len(bare)] == bare:
            return list(full[:start]), list(full[start + len(bare) :])
    raise BackendError("a tokenizer that changes a text when it adds its special tokens is not supported")


def batches(pieces: Sequence[Piece], most: int) -> Iterator[list[int]]:
    """Yield batches of piece numbers, longest first, with a padded size of at most `most` tokens.

    Pieces of similar length share a batch, so there is little padding.
    """
    order = sorted(range(len(pieces)), key=lambda number: -len(pieces[number].ids))
    start = 0
    while start < len(order):
        rows = max(1, most // len(pieces[order[start]].ids))
        yield order[start : start + rows]
        start += rows


def pad_rows(rows: Sequence[list[int]], fill: int, left: bool) -> tuple[Ids, Ids]:
    """Return padded ids and their attention mask, both int64[rows, longest]."""
    width = max(map(len, rows))
    ids = np.full((len(rows), width), fill, np.int64)
    mask = np.zeros((len(rows), width), np.int64)
    for number, row in enumerate(rows):
        place = slice(width - len(row), width) if left else slice(0, len(row))
        ids[number, place] = row
        mask[number, place] = 1
    return ids, mask


RULE: Final = "windows/1"
"""Version of the rule for long texts, part of a model's fingerprint."""


def spans(tokens: int, longest: int | None) -> list[tuple[int, int]]:
    """Return [start, end) of the fewest windows of up to `longest` tokens, of almost equal size."""
    if longest is None or tokens <= longest:
        return [(0, tokens)]
    if longest < 1:
        raise ValueError(f"longest must be at least 1, got {longest}")
    count = -(-tokens // longest)
    size, more = divmod(tokens, count)
    cuts = [0]
    for number in range(count):
        cuts.append(cuts[-1] + size + (number < more))
    return list(pairwise(cuts))


def average(pieces: NDArray[Any], owner: Sequence[int], weights: Sequence[int], texts: int) -> NDArray[Any]:
    """Return one vector per text, [texts, d]: the token-weighted mean of its windows' unit vectors.

    `pieces` is [windows, d] and `owner` ascends. The vector of a single window is unchanged. Sums are f64 in
    window order; the caller normalises.
    """
    if len(pieces) == texts:
        return pieces
    wide = pieces.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    units = wide / np.where(lengths > 0, lengths, 1.0)[:, None]
    owners = np.asarray(owner)
    counts = np.bincount(owners, minlength=texts)
    out = np.zeros((texts, pieces.shape[1]), np.float64)
    np.add.at(out, owners, units * np.asarray(weights, np.float64)[:, None])
    single = counts[owners] == 1
    out[owners[single]] = wide[single]
    return out
