"""The endpoint that indexes uploaded files: each is read as a build reads it, by its format."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from ketrag_fast.apps.server.endpoints import Call, Endpoint, Field
from ketrag_fast.apps.server.inspect import apply_change, clean, existing
from ketrag_fast.apps.server.replies import Problem
from ketrag_fast.base.config import Settings
from ketrag_fast.index.building import read_sources
from ketrag_fast.types import Document, Failure

LARGEST: Final = 100_000_000
"""Maximum bytes of an uploaded file, unless requests may have larger bodies (`--max-body`)."""
_SECONDS: Final = 600.0
"""Time for a file to arrive. Only callers that may change the index can upload, and networks are slow."""
_TYPE: Final = "application/octet-stream"
_FORM: Final = "multipart/form-data"
_MOST_FILES: Final = 100
"""Maximum number of files in one form: the connection stays open while each is built."""
_LONGEST_NAME: Final = 255
_PREFIX: Final = "ketrag-upload-"
_READING: Final = ("fallback_encoding", "ocr", "hidden")
"""Settings of an index that decide how a file is read."""


def upload_endpoints() -> list[Endpoint]:
    """Return the endpoint for uploads."""
    shape = {
        "name": Field(
            "string",
            "name of the file, whose suffix tells the format; a form names its files",
            least=1,
            most=1000,
        ),
        "index": Field("string", "index name; default: the first index", most=64),
        "replace": Field("string", "replace documents with the same id", choices=("yes", "no")),
    }
    return [
        Endpoint(
            "POST",
            "/v1/uploads",
            upload,
            "Add a file (the body) or the files of a form through the readers of their formats",
            shape,
            "ketrag/upload/1, for a form ketrag/uploads/1",
            receives=(_TYPE, _FORM),
        )
    ]


async def upload(call: Call) -> dict[str, Any]:
    """Index the file in the body or those of a form, and reply with what was read once it can be found."""
    call.require("add")
    if call.values.get("replace") == "yes":
        call.require("remove")
    content = call.request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
    if content == _FORM:
        return {"schema": "ketrag/uploads/1", "files": await _upload_form(call)}
    if content != _TYPE:
        raise Problem(415, "not_binary", f"the Content-Type of the body must be {_TYPE} or {_FORM}")
    name = file_name(call.values.get("name") or "")
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        await _receive(call.request, Path(folder) / name, _most_bytes(call))
        return await _add(call, folder, name)


async def _upload_form(call: Call) -> list[dict[str, Any]]:
    """Index the files of a form one after the other. Returns a result for each."""
    try:
        async with (
            asyncio.timeout(_SECONDS) as clock,
            _limited(call.request, _most_bytes(call), "the form").form(
                max_files=_MOST_FILES, max_fields=10
            ) as form,
        ):
            clock.reschedule(None)  # all have arrived
            parts = [part for _, part in form.multi_items() if isinstance(part, UploadFile)]
            if not parts:
                raise Problem(
                    422, "bad_request", "the form has no file", hint="send one with curl -F file=@plan.pdf"
                )
            names = [file_name(part.filename or "") for part in parts]
            return [await _add_part(call, name, part) for name, part in zip(names, parts, strict=True)]
    except TimeoutError:
        raise _too_slow() from None
    except ClientDisconnect:
        raise Problem(499, "gone", "the client disconnected") from None
    except HTTPException as error:
        raise Problem(422, "bad_request", f"the form cannot be read: {error.detail}") from None


async def _add_part(call: Call, name: str, part: UploadFile) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:

        def copy() -> None:
            with (Path(folder) / name).open("xb") as stream:
                shutil.copyfileobj(part.file, stream)

        try:
            await call.service.aside(copy)
            return await _add(call, folder, name)
        except OSError as error:
            problem = _no_space(error)
        except Problem as error:  # those before it are in the index: every file has a result
            problem = error
    return {
        **_result(name, [], [], ()),
        "state": "failed",
        "warnings": [problem.message],
        "code": problem.code,
    }


async def _add(call: Call, folder: str, name: str) -> dict[str, Any]:
    """Index the file of this name in a folder, and return what was read."""
    entry = call.entry
    # The name may have characters of patterns: the folder is the source.
    documents, failures = await call.service.aside(_read, Path(folder) / name, call)
    result = _result(name, documents, failures, (("", f"{folder}/"), *call.service.indexes.folders))
    if not documents:
        return {**result, "state": "refused"}
    ids = [one.id for one in documents]
    same = [] if call.values.get("replace") == "yes" else await call.service.aside(existing, call, ids)
    if same:
        return {**result, "state": "exists", "existing": same[:100]}
    if entry.writing.locked():
        raise Problem(
            409, "index_locked", "the documents of this index are being changed", headers={"Retry-After": "1"}
        )
    async with entry.writing:
        report = await call.service.aside(apply_change, call.service, entry.index, documents, [])
    return {**result, "state": "read", "index": clean(report.to_json(), call.service.indexes.folders)}


def file_name(name: str) -> str:
    """Return the last part of a name without control characters.

    Raises Problem 422 if nothing is left that can be the name of a file.

    Examples:
        >>> file_name("C:\\\\notes\\\\..\\\\plan.pdf")
        'plan.pdf'
    """
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    last = "".join(mark for mark in last if mark.isprintable()).strip().lstrip(".")
    if not last or len(last.encode()) > _LONGEST_NAME:
        raise Problem(422, "bad_request", f"name: {name[:60]!r} is not the name of a file", param="name")
    return last


def _most_bytes(call: Call) -> int:
    return max(LARGEST, call.service.options.body)


async def _receive(request: Request, path: Path, most: int) -> None:
    """Write the body to a file as it arrives. Raises Problem if it is too large or the connection breaks."""
    try:
        async with asyncio.timeout(_SECONDS):
            with path.open("xb") as stream:
                async for part in _limited(request, most).stream():
                    stream.write(part)
    except TimeoutError:
        raise _too_slow() from None
    except ClientDisconnect:
        raise Problem(499, "gone", "the client disconnected") from None
    except OSError as error:
        raise _no_space(error) from None


def _limited(request: Request, most: int, what: str = "the file") -> Request:
    """Return the request with a body that raises Problem 413, which names `what`, after this many bytes."""
    size = 0

    async def receive() -> Message:
        nonlocal size
        message = await request.receive()
        size += len(message.get("body", b""))
        if size > most:
            hint = "start the service with a larger --max-body, or add the file with `ketrag add`"
            raise Problem(413, "too_large", f"{what} has more than {most:,} bytes", hint=hint)
        return message

    return Request(request.scope, receive)


def _too_slow() -> Problem:
    return Problem(408, "too_slow", f"the file did not arrive within {_SECONDS:g} s")


def _no_space(error: OSError) -> Problem:
    return Problem(503, "no_space", f"the file cannot be stored: {error.strerror or error}")


def _read(path: Path, call: Call) -> tuple[list[Document], list[Failure]]:
    """Return the documents and failures of a file, read with the settings of the index for readers."""
    stored = call.entry.index.stats()["settings"]
    settings = Settings(gitignore=False, **{name: stored[name] for name in _READING if name in stored})
    items = list(read_sources([str(path.parent)], settings))
    documents = [item for item in items if isinstance(item, Document)]
    return documents, [item for item in items if isinstance(item, Failure)]


def _result(
    name: str, documents: list[Document], failures: list[Failure], folders: tuple[tuple[str, str], ...]
) -> dict[str, Any]:
    pages = {(one.id, where.value) for one in documents for where in one.locators if where.kind == "page"}
    return {
        "schema": "ketrag/upload/1",
        "name": name,
        "documents": [one.id for one in documents[:1000]],
        "pages": len(pages) or None,
        "characters": sum(len(one.text) for one in documents),
        "warnings": clean([one.message for one in failures[:100]], folders),
    }
