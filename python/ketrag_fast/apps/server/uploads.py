"""The endpoint that indexes an uploaded file: it is read as a build reads it, by its format."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request

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
_LONGEST_NAME: Final = 255
_READING: Final = ("fallback_encoding", "ocr", "hidden")
"""Settings of an index that decide how a file is read."""


def upload_endpoints() -> list[Endpoint]:
    """Return the endpoint for uploads."""
    shape = {
        "name": Field(
            "string", "name of the file; its suffix tells the format", required=True, least=1, most=1000
        ),
        "index": Field("string", "index name; default: the first index", most=64),
        "replace": Field("string", "replace documents with the same id", choices=("yes", "no")),
    }
    return [
        Endpoint(
            "POST",
            "/v1/uploads",
            upload,
            "Add a file (the body) through the reader of its format",
            shape,
            "ketrag/upload/1",
            receives=_TYPE,
        )
    ]


async def upload(call: Call) -> dict[str, Any]:
    """Index the file in the body, and reply with what was read once it can be found."""
    call.require("add")
    if call.values.get("replace") == "yes":
        call.require("remove")
    entry, name = call.entry, file_name(call.values["name"])
    content = call.request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
    if content != _TYPE:  # other pages cannot send this one without permission
        raise Problem(415, "not_binary", f"the Content-Type of the body must be {_TYPE}")
    with tempfile.TemporaryDirectory(prefix="ketrag-upload-") as folder:
        path = Path(folder) / name
        await _receive(call.request, path, max(LARGEST, call.service.options.body))
        # The name may have characters of patterns: the folder is the source.
        documents, failures = await call.service.aside(_read, path, call)
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


async def _receive(request: Request, path: Path, most: int) -> None:
    """Write the body to a file as it arrives. Raises Problem if it is too large or the connection breaks."""
    size = 0
    try:
        async with asyncio.timeout(_SECONDS):
            with path.open("xb") as stream:
                async for part in request.stream():
                    size += len(part)
                    if size > most:
                        hint = "start the service with a larger --max-body, or add the file with `ketrag add`"
                        raise Problem(413, "too_large", f"the file has more than {most:,} bytes", hint=hint)
                    stream.write(part)
    except TimeoutError:
        raise Problem(408, "too_slow", f"the file did not arrive within {_SECONDS:g} s") from None
    except ClientDisconnect:
        raise Problem(499, "gone", "the client disconnected") from None
    except OSError as error:
        raise Problem(503, "no_space", f"the file cannot be stored: {error.strerror or error}") from None


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
