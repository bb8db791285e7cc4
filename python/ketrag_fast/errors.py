"""All errors of the package. Each has a short stable `code` and, if there is a remedy, a `hint`.

>>> error = ConfigError("chunk_tokens must be at least 1, got 0", hint="the default is 200")
>>> error.code, str(error), error.hint
('config', 'chunk_tokens must be at least 1, got 0', 'the default is 200')
>>> isinstance(error, KetragError)
True
"""

from __future__ import annotations

from typing import Final

from ketrag_fast.secrets import redact_all

LONGEST: Final = 4000
"""Maximum characters of a message, because input that it quotes may have any length."""


_MORE_FILES: Final = "raise the limit (`ulimit -n`), or close what else is open; the index is not damaged"


class KetragError(Exception):
    """Base of every error that this package raises deliberately.

    `str(error)` says what is wrong and where; `hint` says how to fix it (or is None). Keys of endpoints
    are redacted in both.
    """

    code = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = redact_all(message if len(message) <= LONGEST else f"{message[:LONGEST]}…")
        self.hint = None if hint is None else redact_all(hint)
        super().__init__(self.message)


class InputError(KetragError, ValueError):
    """An argument or array is invalid (wrong shape, unsorted ids, NaN, out of range)."""

    code = "input"


class ConfigError(KetragError):
    """A setting has an unknown name or an invalid value."""

    code = "config"


class DocumentError(KetragError):
    """A source or one of its documents cannot be read."""

    code = "document"


class EmptyQuery(KetragError):
    """The question has no text."""

    code = "empty_query"


class IndexMissing(KetragError):
    """The folder contains no index."""

    code = "index_missing"


class IndexDamaged(KetragError):
    """A file of the index is truncated, altered or missing."""

    code = "index_damaged"


class IndexIncompatible(KetragError):
    """The index was written in a format that this version does not read."""

    code = "index_incompatible"


class IndexLocked(KetragError):
    """Another process is building this index."""

    code = "index_locked"


class TooManyFiles(KetragError):
    """The process has reached its limit of open files."""

    code = "too_many_files"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        # The Rust core raises it without a hint.
        super().__init__(message, hint=hint or _MORE_FILES)


class StorageFull(KetragError):
    """The disk is full."""

    code = "storage_full"


class StorageFailed(KetragError):
    """The disk, or the network share it is on, fails."""

    code = "storage_failed"


class ReadOnly(KetragError):
    """The folder is not writable."""

    code = "read_only"


class ModelMismatch(KetragError):
    """The index was built with a different model."""

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
    """A language model's reply could not be parsed."""

    code = "extraction"


class NetworkForbidden(KetragError):
    """The network was needed but is not allowed."""

    code = "network_forbidden"


class EndpointNotConfirmed(KetragError):
    """Only the index names this endpoint; the user has neither named nor confirmed it."""

    code = "endpoint_not_confirmed"


class DeadlineExceeded(KetragError, TimeoutError):
    """A call exceeded its deadline."""

    code = "deadline"


class Cancelled(KetragError):
    """The work was stopped; finished parts are kept."""

    code = "cancelled"


class StageError(KetragError):
    """A stage of a build returned arrays that differ from its declaration."""

    code = "stage"


class ExtensionError(KetragError):
    """A system of another package cannot be used, or returned something invalid."""

    code = "extension"


class OutOfMemory(KetragError, MemoryError):
    """This machine has too little memory for a call."""

    code = "out_of_memory"


class InternalError(KetragError):
    """A defect of this package; please report it."""

    code = "internal"
