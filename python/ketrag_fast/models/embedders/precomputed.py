"""`vectors:FOLDER`: precomputed vectors, for research or from another program.

The folder has `vectors.npy` (float16, float32 or float64, one row per text) and `ids.jsonl`, whose line i
names the text of row i: `{"text": "..."}`, or `{"sha256": "..."}` of its UTF-8. With `"role": "query"` or
`"document"` a row is used for that role only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import BackendError
from ketrag_fast.models.embedders.fingerprint import digest
from ketrag_fast.models.embedders.protocol import ROLES, Embedder, Engine, Role, excerpt

ARRAY: Final = "vectors.npy"
IDS: Final = "ids.jsonl"
_KINDS: Final = ("float16", "float32", "float64")
_CHECKED_ROWS: Final = 16_384


class PrecomputedVectors(Embedder):
    """Precomputed vectors. The array is memory-mapped and checked once, in slices."""

    def __init__(self, spec: str, folder: Path) -> None:
        super().__init__()
        self.spec = spec
        self._rows = _array(folder / ARRAY)
        self._places = _ids(folder / IDS, len(self._rows))
        self.dimension = int(self._rows.shape[1])
        self.longest = None
        self.fingerprint = of_vectors(folder)
        self.engine = Engine("vectors", "1", "file", str(self._rows.dtype), None)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return word counts, without a tokenizer."""
        return [len(text.split()) for text in texts]

    def _encode(self, texts: Sequence[str], role: Role, tick: Callable[[int], None]) -> NDArray[Any]:
        places = [self._places.get((role, text_key(text))) for text in texts]
        lost = [text for text, place in zip(texts, places, strict=True) if place is None]
        if lost:
            raise BackendError(
                f"{self.spec} has no {role} vector for {len(lost)} of these {len(texts)} texts, "
                f"the first is {excerpt(lost[0])}",
                hint=f"add them to {ARRAY} and {IDS}: texts must match exactly",
            )
        tick(sum(self.count(texts)))
        return np.asarray(self._rows[[place for place in places if place is not None]])


def of_vectors(folder: Path) -> str:
    """Return the fingerprint, a hash of both files."""
    return digest(((ARRAY, folder / ARRAY), (IDS, folder / IDS)), {"kind": "vectors"})


def require_files(folder: Path) -> None:
    """Raise BackendError if the folder lacks one of the two files."""
    for name in (ARRAY, IDS):
        if not (folder / name).is_file():
            raise BackendError(
                f"no such file: {folder / name}", hint=f"the folder must hold {ARRAY} and {IDS}"
            )


def text_key(text: str) -> bytes:
    """Return the key of a text, the SHA-256 of its UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _array(path: Path) -> NDArray[Any]:
    try:
        rows: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise BackendError(
            f"cannot read {path}: {error.strerror or error}", hint=f"the folder must hold {ARRAY} and {IDS}"
        ) from error
    except (ValueError, EOFError) as error:
        raise BackendError(f"{path} is not a valid NumPy array: {error}") from error
    fits = isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype.name in _KINDS and rows.shape[1]
    if not fits:
        found = f"{rows.dtype} {rows.shape}" if isinstance(rows, np.ndarray) else type(rows).__name__
        raise BackendError(f"{path} must be float16, float32 or float64 [texts, dimensions], got {found}")
    for start in range(0, len(rows), _CHECKED_ROWS):
        bad = np.flatnonzero(~np.isfinite(rows[start : start + _CHECKED_ROWS]).all(1))
        if bad.size:
            raise BackendError(f"{path} has NaN or infinity in row {start + int(bad[0])}")
    return rows


def _ids(path: Path, rows: int) -> dict[tuple[Role, bytes], int]:
    try:
        lines = path.read_text("utf-8").removesuffix("\n").split("\n") if rows else []
    except OSError as error:
        raise BackendError(
            f"cannot read {path}: {error.strerror}", hint=f"the folder must hold {ARRAY} and {IDS}"
        ) from error
    except ValueError as error:
        raise BackendError(f"{path} is not UTF-8: {error}") from error
    if len(lines) != rows:
        raise BackendError(f"{path} has {len(lines)} lines for {rows} vectors")
    places: dict[tuple[Role, bytes], int] = {}
    for number, line in enumerate(lines):
        key, roles = _id(line, f"{path}:{number + 1}")
        for role in roles:
            if places.setdefault((role, key), number) != number:
                raise BackendError(f"{path}:{number + 1} repeats the text of line {places[role, key] + 1}")
    return places


def _id(line: str, where: str) -> tuple[bytes, tuple[Role, ...]]:
    try:
        entry = json.loads(line)
        text, code, role = entry.get("text"), entry.get("sha256"), entry.get("role")
        key = text_key(text) if isinstance(text, str) else bytes.fromhex(code)
    except (ValueError, TypeError, AttributeError) as error:
        raise BackendError(f'{where} is neither {{"text": ...}} nor {{"sha256": ...}}') from error
    roles: tuple[Role, ...] = tuple(known for known in ROLES if role in (None, known))
    if len(key) != 32 or not roles:
        raise BackendError(f"{where} has an invalid {'role' if not roles else 'hash'}")
    return key, roles
