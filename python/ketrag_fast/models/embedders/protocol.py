"""The base class of embedders: texts in, unit vectors out.

It handles empty texts, wrong shapes, NaN, zero vectors, normalisation and cancellation for all backends. A
backend only turns a window of texts into raw vectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import BackendError, Cancelled, InternalError
from ketrag_fast.records import asdict, dataclass

T = TypeVar("T")
Role = Literal["document", "query"]
ROLES: Final[tuple[Role, ...]] = ("document", "query")

Precision = Literal["auto", "float", "fp32", "bf16", "int8"]
"""auto: the fastest precision that stays close to fp32; float: the same without int8."""

Vectors = NDArray[np.float32]
Spans = Sequence[tuple[int, int]]
"""Spans of a text in bytes of its UTF-8."""

Report = Callable[[int, int | None], bool | None]
"""`report(tokens done, total tokens or None)`; returns False to cancel, e.g. a `progress.Meter`."""

Cancel = Callable[[], bool]
"""Returns True to cancel; called between batches."""

CLOSE: Final = 0.999
"""Lowest cosine to fp32 at which vectors of another engine or precision count as equal."""

INT8_CLOSE: Final = 0.998
"""The same limit if one of the two is int8, whose error is larger for texts of one or two tokens."""

ZERO_NORM: Final = 1e-12
"""Vectors shorter than this count as zero."""

WINDOW_TEXTS: Final = 4096
WINDOW_CHARS: Final = 131_072
"""A window of a stream ends at either limit, which bounds memory whatever the size of the corpus."""


def least_cosine(*precisions: str) -> float:
    """Return the lowest cosine at which vectors in these precisions, or in one and fp32, count as equal."""
    return INT8_CLOSE if "int8" in precisions else CLOSE


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine that computed vectors. Stored with them, but not part of the fingerprint.

    `closeness` is the lowest cosine to fp32 on the built-in sample (1.0 for fp32, None if unknown, as for an
    endpoint). `notes` name every fallback.
    """

    name: str
    version: str
    device: str
    precision: str
    closeness: float | None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the fields for a manifest or `ketrag models check --json`."""
        return {**asdict(self), "notes": list(self.notes)}


@dataclass(slots=True)
class Tally:
    """The work of an embedder since it was loaded."""

    texts: int = 0
    empty: int = 0
    windowed: int = 0
    tokens: int = 0
    halvings: int = 0


class Embedder(ABC):
    """An embedding model: f32 rows of length 1; the row of an empty text is zero and is counted.

    A subclass sets the attributes and defines `_encode` and `count`.

    Attributes:
        spec: The spec by which the model was loaded.
        fingerprint: Equal for equal models, wherever their files are (see module `fingerprint`).
        dimension: The dimension of the vectors.
        longest: Maximum input in tokens, or None if unknown.
        engine: The engine that computes the vectors.
        tally: The work done since loading.
        is_parallel: Whether several threads may embed queries at the same time, each on its own core.
        pools_spans: Whether `embed_spans` is available: the backend returns vectors of spans with those of
            their text.
    """

    spec: str
    fingerprint: str
    dimension: int
    longest: int | None
    engine: Engine
    is_parallel = False
    pools_spans = False

    def __init__(self) -> None:
        self.tally = Tally()

    @abstractmethod
    def _encode(self, texts: Sequence[str], role: Role, tick: Callable[[int], None]) -> NDArray[Any]:
        """Return vectors [len(texts), dimension] of non-empty texts, not necessarily normalised.

        Calls `tick(tokens)` after each batch, which raises `Cancelled` to stop.
        """

    def _encode_spans(
        self, texts: Sequence[str], spans: Sequence[Spans], tick: Callable[[int], None]
    ) -> tuple[NDArray[Any], Vectors]:
        """Return what `_encode` returns for documents, and a row of length 1, or zero, for each span."""
        raise InternalError(f"{self.spec} returns no vectors of spans")  # `pools_spans` is False

    @abstractmethod
    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the token count of each text, without special tokens."""

    def close(self) -> None:
        """Release memory and connections; does nothing by default."""
        return

    def embed(
        self,
        texts: Sequence[str],
        role: Role = "document",
        progress: Report | None = None,
        cancel: Cancel | None = None,
    ) -> Vectors:
        """Return f32[len(texts), dimension], computed window by window."""
        if role not in ROLES:
            raise ValueError(f"role must be document or query, got {role!r}")
        out = np.zeros((len(texts), self.dimension), np.float32)
        meter = _Meter(self.tally, progress, cancel, sum(map(len, texts)))
        start = 0
        for window in windows_of(texts):
            full = self._begin(window, meter)
            if full:
                chosen = [window[row] for row in full]
                raw = self._encode(chosen, role, meter.tick)
                rows = [start + row for row in full]
                out[rows] = check_vectors(raw, chosen, self.dimension, self.spec, rows)
            meter.settle(window)
            start += len(window)
        return out

    def embed_spans(
        self, texts: Sequence[str], spans: Sequence[Spans], progress: Report | None = None
    ) -> tuple[Vectors, Vectors]:
        """Return f32[len(texts), dimension] and f32[number of spans, dimension] from one pass of the model.

        A span without tokens, for example of blanks, has the zero vector.
        """
        meter = _Meter(self.tally, progress, None, sum(map(len, texts)))
        full = self._begin(texts, meter)
        out = np.zeros((len(texts), self.dimension), np.float32)
        of_spans = np.zeros((sum(map(len, spans)), self.dimension), np.float32)
        if full:
            chosen = [texts[row] for row in full]
            raw, found = self._encode_spans(chosen, [spans[row] for row in full], meter.tick)
            out[full] = check_vectors(raw, chosen, self.dimension, self.spec, full)
            is_full = np.zeros(len(texts), bool)
            is_full[full] = True
            of_spans[np.repeat(is_full, [len(own) for own in spans])] = found
        return out, of_spans

    def _begin(self, texts: Sequence[str], meter: _Meter) -> list[int]:
        """Count the texts of a window; return the numbers of those that are not empty."""
        meter.check()
        full = [row for row, text in enumerate(texts) if text.strip()]
        self.tally.texts += len(texts)
        self.tally.empty += len(texts) - len(full)
        return full


class _Meter:
    """Counts tokens, reports them with an estimated total, and checks for cancellation."""

    def __init__(self, tally: Tally, report: Report | None, cancel: Cancel | None, chars: int) -> None:
        self._tally, self._report, self._cancel, self._chars = tally, report, cancel, chars
        self._tokens = self._settled_tokens = self._settled_chars = 0

    def check(self) -> None:
        if self._cancel is not None and self._cancel():
            raise Cancelled("embedding was stopped", hint="what was embedded is kept")

    def settle(self, window: Sequence[str]) -> None:
        self._settled_chars += sum(map(len, window))
        self._settled_tokens = self._tokens

    def tick(self, tokens: int) -> None:
        self._tally.tokens += tokens
        self._tokens += tokens
        self.check()
        total = None
        if self._settled_tokens:
            rate = self._settled_tokens / max(self._settled_chars, 1)
            total = max(self._tokens, round(rate * self._chars))
        if self._report is not None and self._report(self._tokens, total) is False:
            raise Cancelled("embedding was stopped", hint="what was embedded is kept")


def windows_of(
    texts: Iterable[T],
    most: int = WINDOW_TEXTS,
    chars: int = WINDOW_CHARS,
    length: Callable[[T], int] = len,  # type: ignore[assignment]
) -> Iterator[list[T]]:
    """Yield consecutive groups of up to `most` texts and, except for one longer text, `chars` characters."""
    window: list[T] = []
    size = 0
    for text in texts:
        own = length(text)
        if window and (len(window) >= most or size + own > chars):
            yield window
            window, size = [], 0
        window.append(text)
        size += own
    if window:
        yield window


def check_vectors(
    raw: NDArray[Any], texts: Sequence[str], dimension: int, spec: str, rows: Sequence[int] | None = None
) -> Vectors:
    """Return normalised vectors. Raises BackendError, which quotes the text of the first invalid one."""
    if raw.shape != (len(texts), dimension):
        raise BackendError(
            f"{spec} returned an array of shape {raw.shape}, expected ({len(texts)}, {dimension})"
        )
    wide = raw.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths >= ZERO_NORM)))
    if bad.size:
        first = int(bad[0])
        kind = "a zero vector" if np.isfinite(lengths[first]) else "NaN or infinity"
        number = rows[first] if rows is not None else first
        raise BackendError(
            f"{spec} returned {kind} for text {number} ({excerpt(texts[first])}), "
            f"{bad.size} such texts in this batch",
            hint="try --precision fp32; if it persists, the model files are damaged (`ketrag models check`)",
        )
    return np.asarray(wide / lengths[:, None], np.float32)


def excerpt(text: str, most: int = 60) -> str:
    """Return the beginning of a text, quoted, for an error message."""
    return repr(text if len(text) <= most else text[: most - 1] + "…")
