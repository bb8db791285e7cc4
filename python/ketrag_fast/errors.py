"""The one family of errors. Each has a short stable `code` and, where there is a remedy, a `hint`."""

from __future__ import annotations

from typing import Final

from ketrag_fast.secrets import redact_all

LONGEST: Final = 4000
"""Characters of a message: what a stranger sent, or a value that was given, may have any length."""


_MORE_FILES: Final = "raise the limit (`ulimit -n`), or close what else is open; the index is not damaged"


class KetragError(Exception):
    """Base of every error that this package raises on purpose.

    `str(error)` says what is wrong and where; `hint` says what to do about it (or is None). Neither can hold
    an endpoint's key.
    """

    code = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = redact_all(message if len(message) <= LONGEST else f"{message[:LONGEST]}…")
        self.hint = None if hint is None else redact_all(hint)
        super().__init__(self.message)


class InputError(KetragError, ValueError):
    """An argument or array does not make sense (wrong shape, unsorted ids, NaN, out of range)."""

    code = "input"


class ConfigError(KetragError):
    """A setting has an unknown name or an impossible value."""

    code = "config"


class DocumentError(KetragError):
    """A source or one of its documents cannot be read."""

    code = "document"


class EmptyQuery(KetragError):
    """The question has no text."""

    code = "empty_query"


class IndexMissing(KetragError):
    """There is no index in that folder."""

    code = "index_missing"


class IndexDamaged(KetragError):
    """A file of the index is cut short, altered or gone."""

    code = "index_damaged"


class IndexIncompatible(KetragError):
    """The index was written in a format that this version does not read."""

    code = "index_incompatible"


class IndexLocked(KetragError):
    """Another process is building this index."""

    code = "index_locked"


class TooManyFiles(KetragError):
    """The system lets this process open no more files."""

    code = "too_many_files"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        # The core raises it too, and gives no hint.
        super().__init__(message, hint=hint or _MORE_FILES)


class StorageFull(KetragError):
    """The disk is full."""

    code = "storage_full"


class StorageFailed(KetragError):
    """The disk, or the network that it lies behind, fails."""

    code = "storage_failed"


class ReadOnly(KetragError):
    """The folder cannot be written."""

    code = "read_only"


class ModelMismatch(KetragError):
    """The index was built with another model than the one given."""

    code = "model_mismatch"


class ModeUnavailable(KetragError):
    """The index lacks a part that the retrieval mode needs."""

    code = "mode_unavailable"


class BackendMissing(KetragError):
    """An optional package is not installed; the hint names the extra."""

    code = "backend_missing"


class BackendError(KetragError):
    """A model or endpoint failed."""

    code = "backend"


class ExtractionError(KetragError):
    """A language model's reply could not be used."""

    code = "extraction"


class NetworkForbidden(KetragError):
    """The network was needed and not allowed."""

    code = "network_forbidden"


class EndpointNotConfirmed(KetragError):
    """Only the index names this endpoint; the user has neither named nor confirmed it."""

    code = "endpoint_not_confirmed"


class DeadlineExceeded(KetragError, TimeoutError):
    """A call took longer than the deadline it was given."""

    code = "deadline"


class Cancelled(KetragError):
    """The work was stopped; what was finished is kept."""

    code = "cancelled"


class StageError(KetragError):
    """A stage of a build made arrays that are not as it declares them."""

    code = "stage"


class ExtensionError(KetragError):
    """A system that another package brings cannot be used, or gave what makes no sense."""

    code = "extension"


class OutOfMemory(KetragError, MemoryError):
    """This machine cannot give the memory that a call needs."""

    code = "out_of_memory"


class InternalError(KetragError):
    """A defect of this package; please report it."""

    code = "internal"
