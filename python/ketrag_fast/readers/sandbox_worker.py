"""The process that parses untrusted formats: one request per line on its input, items on its output.

It has a memory limit. If a parser crashes or the limit is exceeded, only the current file is lost: the parent
sees the end of the output and starts another process.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from ketrag_fast.readers import SourceFile, items_of
from ketrag_fast.types import Failure
from ketrag_fast.types.locations import to_text


def limit_memory(megabytes: int) -> None:
    """Limit the memory of this process, if the system accepts that."""
    wanted = megabytes * 1_000_000
    if sys.platform == "win32":
        from ketrag_fast import _core

        _core.windows_limit_memory(wanted)
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    # macOS refuses a limit below the address space in use, which there is far more than the memory.
    with suppress(ValueError, OSError) if sys.platform == "darwin" else nullcontext():
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def serve(requests: IO[bytes], replies: IO[bytes], megabytes: int) -> None:
    """Answer requests until there are no more; `megabytes` is the memory limit of this process."""
    no_memory = f"reading it took more than {megabytes:,} MB (setting read_memory)"
    for line in requests:
        query = json.loads(line)
        file = SourceFile(Path(os.fsdecode(bytes.fromhex(query["path"]))), query["id"], query["encoding"])
        options = ("follow_links", "ocr", "processes", "hidden", "generated")
        file = replace(file, **{name: query[name] for name in options})
        for item in items_of(file, query["kind"], query["largest"], query["read_text"], no_memory=no_memory):
            _write(replies, _fields(item))
        _write(replies, {"end": True})


def _fields(item: Any) -> dict[str, Any]:
    if isinstance(item, Failure):
        return {"failure": [item.document, item.code, item.message]}
    return {
        "id": item.id,
        "text": item.text,
        "title": item.title,
        "metadata": dict(item.metadata),
        "locators": to_text(item.locators),
    }


def _write(replies: IO[bytes], data: dict[str, Any]) -> None:
    try:
        line = json.dumps(data, default=str)
    except (TypeError, ValueError, RecursionError) as error:
        name = str(data.get("id", ""))
        line = json.dumps({"failure": [name, "document", f"its metadata cannot be stored: {error}"]})
    replies.write(line.encode("ascii") + b"\n")
    replies.flush()


def main() -> None:
    """Serve requests. Replies go to the original output; what libraries print is discarded."""
    megabytes = int(sys.argv[1])
    limit_memory(megabytes)
    replies = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        serve(sys.stdin.buffer, replies, megabytes)
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)  # the parent has ended
    except MemoryError:
        os._exit(77)


if __name__ == "__main__":
    main()
