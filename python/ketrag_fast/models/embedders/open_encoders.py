"""The native encoders that are open in this process, so that queries and builds share one.

Only weak references are kept: an encoder is freed with the last embedder that uses it. `keep_open` is for a
process that changes an index again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from ketrag_fast.kernels.encoder import Encoder
from ketrag_fast.models.embedders.protocol import Vectors


@dataclass(frozen=True, slots=True)
class EncoderKey:
    """The model and the options of an open encoder; `fingerprint` is a hash of the model's files."""

    fingerprint: str
    precision: str
    kernel: str


_open: Final[WeakValueDictionary[EncoderKey, Encoder]] = WeakValueDictionary()
_samples: Final[WeakKeyDictionary[Encoder, dict[str, Vectors]]] = WeakKeyDictionary()
_kept: Final[list[list[Encoder]]] = []


def share(key: EncoderKey, opened: Callable[[], Encoder]) -> Encoder:
    """Return the open encoder with this key, opening it if needed."""
    encoder = _open.get(key)
    if encoder is None:
        encoder = opened()
        _open[key] = encoder
    for held in _kept:
        held[:] = [encoder]
    return encoder


def sample_vectors(encoder: Encoder, prompt: str, embed: Callable[[], Vectors]) -> Vectors:
    """Return the vectors of the sample texts, which are embedded once by each encoder and prompt."""
    known = _samples.setdefault(encoder, {})
    if prompt not in known:
        known[prompt] = embed()
    return known[prompt]


@contextmanager
def keep_open() -> Iterator[None]:
    """Keep the encoder that was last used in this context open, even if no embedder uses it."""
    held: list[Encoder] = []
    _kept.append(held)
    try:
        yield
    finally:
        _kept[:] = [one for one in _kept if one is not held]
