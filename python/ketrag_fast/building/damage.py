"""Errors of stages that damaged arrays caused, told from errors of the stages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ketrag_fast.building.async_writer import sound
from ketrag_fast.errors import IndexDamaged, InputError, StageError
from ketrag_fast.storage.generation import Generation


@contextmanager
def blame_damage(base: Generation | None) -> Iterator[None]:
    """Raise IndexDamaged for an error of a stage if arrays of the published generation `base` are damaged.

    A build with `verify` = "sizes" does not compare checksums, so a stage may get damaged arrays, and its
    kernels or the check of its result report what they find in them.
    """
    try:
        yield
    except (StageError, InputError) as error:
        if base is None:
            raise
        for name, record in base.manifest.stages.items():
            if not sound(base.folder / name, record):
                raise IndexDamaged(
                    f"stage {name} is damaged: {error.message}",
                    hint="run `ketrag index --verify full`: it rebuilds whatever is damaged",
                ) from error
        raise
