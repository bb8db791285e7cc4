"""The sources of a change as a list: an iterator can be read only once."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ketrag_fast.building.sources import Source, Sources
from ketrag_fast.errors import InputError
from ketrag_fast.types import Document


def list_given(sources: Sources) -> list[Source]:
    """Return sources as a list: paths, documents, or both.

    Raises:
        InputError: one of them is something else.
    """
    if isinstance(sources, (str, os.PathLike, Document)):
        return [sources]
    if isinstance(sources, (bytes, dict)) or not isinstance(sources, Iterable):
        raise _wrong(sources)
    listed = list(sources)
    for source in listed:
        if not isinstance(source, (str, os.PathLike, Document)):
            raise _wrong(source)
    return listed


def _wrong(source: object) -> InputError:
    return InputError(
        f"{source!r:.80} is neither a path nor a Document",
        hint="pass paths as str or pathlib.Path, and texts as Document(id, text)",
    )
