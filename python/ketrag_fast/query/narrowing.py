"""The documents and passages that a glob and a pattern leave, next to the filters on metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ketrag_fast import _core
from ketrag_fast.kernels.text import pack
from ketrag_fast.query.globs import split_globs
from ketrag_fast.storage.origins import base_of
from ketrag_fast.storage.threads import map_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ketrag_fast.query.open_generation import Opened
    from ketrag_fast.query.source_paths import SourcePaths

_BLOCK = 4 << 20
"""Bytes of passages that are matched together."""


def documents_of_globs(
    opened: Opened, globs: str | Sequence[str] | None, paths: SourcePaths
) -> NDArray[np.bool_] | None:
    """Return which documents have paths that the globs want; None without a glob.

    A path is that of the file, or the id of a document without one.
    """
    wanted, unwanted = split_globs(globs)
    if not wanted and not unwanted:
        return None
    names = opened.texts.names
    specs = paths.specs() if any("/" in one for one in _bare([*wanted, *unwanted])) else {}
    bases = {spec: base_of(spec) for spec in set(specs.values())}
    folders = {spec: (base.parent if base.is_file() else base).as_posix() for spec, base in bases.items()}
    packed = pack([f"{folders[specs[name]]}/{name}" if name in specs else name for name in names])
    matches = np.ones(len(names), bool)
    if wanted:
        matches = _any(wanted, packed)
    if unwanted:
        matches &= ~_any(unwanted, packed)
    return matches


def _bare(expressions: Sequence[str]) -> list[str]:
    """Return expressions without what all of them begin and end with."""
    return [one.removeprefix("^(?:.*/)?").removesuffix("(?:[#:/].*)?$") for one in expressions]


def _any(expressions: Sequence[str], packed: Any) -> NDArray[np.bool_]:
    pattern = _core.Pattern("|".join(expressions))
    return np.asarray(pattern.counts(packed, 1) > 0)


def units_of_pattern(
    opened: Opened, pattern: _core.Pattern, units: NDArray[np.bool_] | None, check: Callable[[], object]
) -> NDArray[np.bool_]:
    """Return which units have a line that matches a pattern, of all or of those in a mask.

    `check` is called between blocks and may raise.
    """
    arrays = opened.generation.stages["units"]
    ends = arrays["unit_texts_offsets"]
    count = len(ends) - 1
    cuts = [0, *(np.flatnonzero(np.diff(ends[:-1] // np.uint64(_BLOCK))) + 1).tolist(), count]
    ranges = [(a, b) for a, b in pairwise(cuts) if b > a]
    if units is not None:
        ranges = [(a, b) for a, b in ranges if units[a:b].any()]
    found = np.zeros(count, bool)

    def match(part: tuple[int, int]) -> None:
        check()
        first, last = part
        blob = arrays.read_bytes("unit_texts_blob", int(ends[first]), int(ends[last]))
        found[first:last] = pattern.counts((blob, ends[first : last + 1] - ends[first]), 1) > 0

    map_threads(match, ranges, opened.threads)
    return found if units is None else found & units
