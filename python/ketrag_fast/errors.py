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
"""Maximum length of a message in characters, because messages quote input of any length."""


_MORE_FILES: Final = "raise the limit (`ulimit -n`), or close what else is open; the index is not damaged"


class KetragError(Exception):
    """Base of every error that this package raises deliberately.

    `str(error)` describes what is wrong and where; `hint` describes how to fix it (or is None). API keys
    are redacted in both.

    Examples:
        >>> from ketrag_fast import Index, KetragError
        >>> try:
        ...     Index.open("no-such-folder")
        ... except KetragError as error:
        ...     error.code, error.hint is None
        ('index_missing', False)
    """

    code = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = redact_all(message if len(message) <= LONGEST else f"{message[:LONGEST]}…")
        self.hint = None if hint is None else redact_all(hint)
        super().__init__(self.message)


class InputError(KetragError, ValueError):
    """An argument or array is invalid (wrong shape, unsorted ids, NaN, out of range).

    Examples:
        >>> try:
        ...     index.retrieve("Who sailed the Fram?", filter="year >")
        ... except InputError as error:
        ...     error.code
        'input'
    """

    code = "input"


class UnknownName(InputError):
    """No node of the index's graphs has this name; the hint lists similar names.

    Examples:
        >>> try:
        ...     index.inspect.node("Framm")
        ... except UnknownName as error:
        ...     error.code, error.hint
        ('unknown_name', 'did you mean FRAM?')
    """

    code = "unknown_name"


class ConfigError(KetragError):
    """A setting has an unknown name or an invalid value.

    Examples:
        >>> from ketrag_fast import Settings
        >>> try:
        ...     Settings(chunk_tokens=0)
        ... except ConfigError as error:
        ...     error.code
        'config'
    """

    code = "config"


class DocumentError(KetragError):
    """A source or one of its documents cannot be read.

    Examples:
        >>> from ketrag_fast import Index
        >>> try:
        ...     Index.build(scratch / "no-such-file.txt", scratch / "new")
        ... except DocumentError as error:
        ...     error.code
        'document'
    """

    code = "document"


class EmptyQuery(KetragError):
    """The question has no text.

    Examples:
        >>> try:
        ...     index.retrieve(" ")
        ... except EmptyQuery as error:
        ...     error.code
        'empty_query'
    """

    code = "empty_query"


class IndexMissing(KetragError):
    """The folder contains no index.

    Examples:
        >>> from ketrag_fast import Index
        >>> try:
        ...     Index.open(scratch / "no-such-index")
        ... except IndexMissing as error:
        ...     error.code
        'index_missing'
    """

    code = "index_missing"


class IndexDamaged(KetragError):
    """A file of the index is truncated, altered or missing.

    Examples:
        >>> from ketrag_fast import Index
        >>> size = index.bundle(scratch / "cut.bundle")
        >>> with (scratch / "cut.bundle").open("r+b") as file:
        ...     _ = file.truncate(size // 2)
        >>> try:
        ...     Index.unbundle(scratch / "cut.bundle", scratch / "unpacked")
        ... except IndexDamaged as error:
        ...     error.code
        'index_damaged'
    """

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
        # The Rust core raises this error without a hint.
        super().__init__(message, hint=hint or _MORE_FILES)


class StorageFull(KetragError):
    """The disk is full."""

    code = "storage_full"


class StorageFailed(KetragError):
    """A disk or a network share failed."""

    code = "storage_failed"


class ReadOnly(KetragError):
    """The folder is not writable.

    Examples:
        >>> from ketrag_fast import Index
        >>> size = index.bundle(scratch / "one.bundle")
        >>> try:
        ...     Index.unbundle(scratch / "one.bundle", index.path)  # the folder is not empty
        ... except ReadOnly as error:
        ...     error.code
        'read_only'
    """

    code = "read_only"


class ModelMismatch(KetragError):
    """The index was built with a different model."""

    code = "model_mismatch"


class ModeUnavailable(KetragError):
    """The index lacks a part that the retrieval mode needs.

    Examples:
        >>> try:
        ...     index.retrieve("Who sailed the Fram?", mode="noderag")
        ... except ModeUnavailable as error:
        ...     error.code
        'mode_unavailable'
    """

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
    """The network was needed but is not allowed.

    Examples:
        >>> from ketrag_fast import Index, Settings
        >>> settings = Settings(embedder="openai:small@https://example.org/v1", offline=True)
        >>> try:
        ...     Index.build(library, scratch / "new", settings=settings)
        ... except NetworkForbidden as error:
        ...     error.code
        'network_forbidden'
    """

    code = "network_forbidden"


class EndpointNotConfirmed(KetragError):
    """The endpoint is named by the index only; the user has neither named nor confirmed it."""

    code = "endpoint_not_confirmed"


class SettingsNotConfirmed(KetragError):
    """The settings file of the working folder names an endpoint or a path outside, and is not confirmed.

    Or only the settings of an index name a file that a build would read.

    Examples:
        >>> SettingsNotConfirmed("ketrag.toml:1: llm names the endpoint https://example.org/v1").code
        'settings_not_confirmed'
    """

    code = "settings_not_confirmed"


class DeadlineExceeded(KetragError, TimeoutError):
    """A call exceeded its deadline.

    Examples:
        >>> try:
        ...     index.retrieve("Who sailed the Fram?", deadline=0)
        ... except DeadlineExceeded as error:
        ...     error.code
        'deadline'
    """

    code = "deadline"


class Cancelled(KetragError):
    """The work was stopped; finished parts are kept.

    Examples:
        >>> from ketrag_fast import Index
        >>> try:
        ...     Index.build(library, scratch / "new", progress=lambda event: False)
        ... except Cancelled as error:
        ...     error.code
        'cancelled'
    """

    code = "cancelled"


class StageError(KetragError):
    """A stage of a build returned arrays that differ from its declaration.

    Examples:
        >>> from ketrag_fast.extending import array
        >>> try:
        ...     array("u7", "units")
        ... except StageError as error:
        ...     error.code
        'stage'
    """

    code = "stage"


class ExtensionError(KetragError):
    """A system of another package cannot be used, or returned something invalid."""

    code = "extension"


class OutOfMemory(KetragError, MemoryError):
    """The machine has too little memory for the call."""

    code = "out_of_memory"


class InternalError(KetragError):
    """A bug in this package; please report it."""

    code = "internal"
