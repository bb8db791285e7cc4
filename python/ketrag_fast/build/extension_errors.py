"""Errors of stages that other packages bring: typed, with the names of the system and of the stage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ketrag_fast.errors import ExtensionError, KetragError, StageError
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.stage import Stage


@contextmanager
def blame_extension(stage: Stage) -> Iterator[None]:
    """What another package's stage raises becomes an ExtensionError; what it made wrong names its system.

    A stage of this package is left alone: what it raises is either typed or a defect to be reported whole.
    """
    system = registry().outside(stage)
    if system is None:
        yield
        return
    try:
        yield
    except StageError as error:
        raise StageError(f"system {system}: {error.message}", hint=error.hint) from error
    except (KetragError, MemoryError):
        raise
    except Exception as error:
        raise ExtensionError(
            f"stage {stage.name} of system {system} failed: {type(error).__name__}: {error}",
            hint="nothing of the index was touched; mend or uninstall the package that brings the system",
        ) from error
