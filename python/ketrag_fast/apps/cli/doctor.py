"""`ketrag doctor` and `ketrag trust`: verify an index, and confirm the endpoints that it names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import Command, option, switch
from ketrag_fast.apps.cli.terminal import inline
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ConfigError, KetragError

if TYPE_CHECKING:
    from ketrag_fast.models.endpoint_trust import Endpoint

_DAMAGED: Final = 4
"""The exit code of a damaged index."""
_NAMES: Final = {"tables": "documents and caches", "published": "name of the published generation"}


@dataclass(frozen=True, kw_only=True)
class Doctor(Command):
    """Verify the checksums of the whole index and print how to fix damage and leftovers of interrupted
    builds. Changes nothing. The exit code is 4 if something is damaged."""

    examples = ("ketrag doctor", "ketrag doctor -i docs-index", "ketrag doctor --json")

    def run(self) -> int:
        """Print the findings."""
        path = options.one_path(self)
        from ketrag_fast.index.health import examine

        settings = options.query_settings_of(self)
        rows, code, named = [], 0, options.index_of(self)
        for finding in examine(path):
            error = finding.error
            code = code if error is None else _DAMAGED
            hint = options.complete_hint(error.hint, named) if error is not None and error.hint else None
            if self.json:
                said = None if error is None else {"code": error.code, "message": str(error), "hint": hint}
                rows.append(
                    {"what": finding.what, "path": str(finding.path), "error": said, "note": finding.note}
                )
                continue
            state = finding.note or "ok" if error is None else str(error)
            output.write(f"{_NAMES.get(finding.what, finding.what)}: {inline(state)}", code)
            if hint:
                output.write(f"  {inline(hint)}", code)
        endpoints = _endpoints(path, settings)
        if self.json:
            about = [endpoint.to_json() for endpoint in endpoints]
            output.write_json(
                {"schema": "ketrag/doctor/1", "damaged": code != 0, "checks": rows, "endpoints": about}, code
            )
        else:
            for endpoint in endpoints:
                output.write(f"endpoint ({endpoint.setting}): {inline(endpoint.sentence())}", code)
        return code


def _endpoints(path: Path, settings: Settings) -> list[Endpoint]:
    """Return the endpoints in the index's settings; none if the settings are damaged."""
    from ketrag_fast.index.endpoints import list_endpoints

    try:
        return list_endpoints(path, settings=settings)
    except KetragError:  # the findings report it
        return []


@dataclass(frozen=True, kw_only=True)
class Trust(Command):
    """List the endpoints that an index names, and confirm one with --endpoint: queries, and the API key if
    one is set, may then be sent there. Nothing is sent to an endpoint that only the index names. The
    confirmation is stored for this user, folder and index, not in the index."""

    examples = (
        "ketrag trust -i their-index",
        "ketrag trust -i their-index --endpoint http://10.0.0.7:8080/v1",
        "ketrag trust -i their-index --endpoint http://10.0.0.7:8080/v1 --forget",
    )
    endpoint: str | None = option("URL", "address to confirm")
    forget: bool = switch("withdraw the confirmation of --endpoint")

    def run(self) -> int:
        """Change a confirmation, and print the endpoints."""
        if self.forget and self.endpoint is None:
            raise ConfigError("--forget needs an address", hint="name it with --endpoint URL")
        path = options.one_path(self)
        from ketrag_fast.index.endpoints import list_endpoints, trust_endpoint

        if self.endpoint is not None:
            trust_endpoint(path, self.endpoint, confirmed=not self.forget)
        endpoints = list_endpoints(path)
        if self.json:
            rows = [endpoint.to_json() for endpoint in endpoints]
            output.write_json({"schema": "ketrag/trust/1", "index": str(path), "endpoints": rows})
            return 0
        for endpoint in endpoints:
            output.write(f"{inline(endpoint.setting)}: {inline(endpoint.sentence())}")
        if not endpoints:
            output.write(f"{inline(path)} names no endpoint")
        return 0
