"""`ketrag doctor`: verify every byte of an index folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.error_context import complete_hint, index_of
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import KetragError

if TYPE_CHECKING:
    from ketrag_fast.models.endpoint_trust import Endpoint

_DAMAGED = 4
"""The exit code of a damaged index."""
_NAMES: Final = {"tables": "documents and caches", "published": "name of the published generation"}


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "doctor",
        parents=[shared],
        description="Verify the checksums of the whole index and print how to fix damage and leftovers of "
        "interrupted builds. Changes nothing. The exit code is 4 if something is damaged.",
        examples=("ketrag doctor", "ketrag doctor -i docs-index", "ketrag doctor --json"),
    )
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    path, _ = options.index_path(args)
    from ketrag_fast.index.health import examine

    settings = options.query_settings_of(args)
    rows, damaged, named = [], False, index_of(args)
    for finding in examine(path):
        error = finding.error
        damaged = damaged or error is not None
        hint = complete_hint(error.hint, named) if error is not None and error.hint else None
        if args.json:
            said = None if error is None else {"code": error.code, "message": str(error), "hint": hint}
            rows.append(
                {"what": finding.what, "path": str(finding.path), "error": said, "note": finding.note}
            )
            continue
        state = finding.note or "ok" if error is None else str(error)
        output.write(f"{_NAMES.get(finding.what, finding.what)}: {inline(state)}")
        if hint:
            output.write(f"  {inline(hint)}")
    endpoints = _endpoints(path, settings)
    if args.json:
        about = [endpoint.to_json() for endpoint in endpoints]
        output.write_json(
            {"schema": "ketrag/doctor/1", "damaged": damaged, "checks": rows, "endpoints": about}
        )
    else:
        for endpoint in endpoints:
            output.write(f"endpoint ({endpoint.setting}): {inline(endpoint.sentence())}")
    return _DAMAGED if damaged else 0


def _endpoints(path: Path, settings: Settings) -> list[Endpoint]:
    """Return the endpoints that the index names; none if it is too damaged to name any."""
    from ketrag_fast.index.endpoints import list_endpoints

    try:
        return list_endpoints(path, settings=settings)
    except KetragError:  # the findings report it
        return []
