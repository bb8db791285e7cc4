"""Errors raised by stages of other packages: typed, with the names of the system and the stage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ketrag_fast.errors import ExtensionError, KetragError, StageError
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.stage import Stage


@contextmanager
def blame_extension(stage: Stage) -> Iterator[None]:
    """Turn what another package's stage raises into an ExtensionError, and name its system in a StageError.

    Errors of this package's stages pass through: they are typed, or defects whose traceback is needed.
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
            hint="the index is unchanged; fix or uninstall the package that provides the system",
        ) from error
