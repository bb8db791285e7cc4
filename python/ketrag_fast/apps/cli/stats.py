"""`ketrag stats`, `diff` and `doctor`: what an index contains, and whether it is intact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.apps.cli import options, output, retrieve
from ketrag_fast.apps.cli.command import (
    EMBEDDER,
    Command,
    argument,
    embedding,
    option,
    settings,
    topic,
)
from ketrag_fast.apps.terminal import inline
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import IndexMissing, KetragError

if TYPE_CHECKING:
    from ketrag_fast.models.endpoint_trust import Endpoint

_DETAILS: Final = frozenset(("settings", "models", "search", "bytes"))
_SHOWN: Final = 3
"""Maximum number of failures and endpoints listed without --verbose."""


class Stats(Command):
    """Print counts, sizes, times, failures, the generation and the digest of an index. With --verbose also
    settings, all failures, and details of each stage."""

    examples = ("ketrag stats", "ketrag stats -i docs-index --json", "ketrag stats --allow 'group=sales'")
    allow = settings("allow")

    def run(self) -> int:
        """Print the statistics."""
        with options.open_index(self) as index:
            data = index.stats()
        if self.json:
            output.write_json({"schema": "ketrag/stats/1", **data})
        else:
            from ketrag_fast.models.endpoint_trust import Endpoint

            shown = {name: value for name, value in data.items() if name != "schema"}
            shown["endpoints"] = [Endpoint(**row).sentence() for row in data["endpoints"]]
            lines = _lines(shown, "", None) if self.verbose else _lines(_brief(shown), "", _SHOWN)
            output.write("\n".join(lines))
        return 0


class Diff(Command):
    """Compare two indexes, or two generations of one (my-index/gen-000003): documents, settings, models,
    entities, relations, and the passages for some queries. The exit code is 0 also if they differ (--json:
    same)."""

    named_index = None
    examples = (
        "ketrag bench diff old-index new-index",
        "ketrag bench diff .ketrag/gen-000003 .ketrag",
        "ketrag bench diff old-index new-index --questions queries.jsonl --mode walk",
    )
    before: str = argument("A", "folder of an index or of a generation")
    after: str = argument("B", "folder of another")
    questions: str | None = option("FILE", "JSONL file of {_id, text}: compare their passages; - is stdin")
    retrieval = topic("retrieval", "query", shown=("mode", "budget", "top", "filter"))
    embedder = EMBEDDER
    model = embedding()

    def run(self) -> int:
        """Print the differences."""
        questions = [] if self.questions is None else retrieve.questions_of(self.questions)
        from ketrag_fast.index import Index
        from ketrag_fast.index.difference import summary

        given = options.query_settings_of(self)
        for folder in map(Path, (self.before, self.after)):
            if not folder.exists():
                raise IndexMissing(
                    f"no index in {folder}", hint="ketrag bench diff A B: name the folders of two indexes"
                )
        with (
            Index.open(self.before, settings=given) as one,
            Index.open(self.after, settings=given) as other,
        ):
            found = one.inspect.diff(other, questions)
        if self.json:
            output.write_json({**found.to_json(), "before": self.before, "after": self.after})
        else:
            output.write("\n".join(inline(line) for line in summary(found)))
        return 0


def _brief(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statistics on one screen: no zeros, no settings, one line for each stage."""
    brief: dict[str, Any] = {}
    for name, value in data.items():
        if name == "modes" and isinstance(value, (list, tuple)):
            brief[name] = ", ".join(map(str, value)) or "none"
        elif name in ("counts", "edges") and isinstance(value, Mapping):
            brief[name] = _plain_rows(value)
        elif name == "disk" and isinstance(value, Mapping):
            brief[name] = {key: output.size_text(size) for key, size in _plain_rows(value).items()}
        elif name == "stages" and isinstance(value, Mapping):
            brief[name] = {key: _stage_line(stage) for key, stage in value.items()}
        elif name == "systems" and isinstance(value, Mapping):
            shown = {key: _plain_rows(rows) for key, rows in value.items()}
            brief |= {name: {key: rows for key, rows in shown.items() if rows}} if any(shown.values()) else {}
        elif name == "backends" and isinstance(value, Mapping):
            brief[name] = {key: named for key, named in value.items() if named is not None}
        elif name not in _DETAILS and value is not None and value != {}:
            brief[name] = value
    return brief


def _plain_rows(rows: Any) -> Any:
    if not isinstance(rows, Mapping):
        return rows
    return {key: value for key, value in rows.items() if value and _is_plain(value)}


def _is_plain(value: Any) -> bool:
    return not isinstance(value, (Mapping, list, tuple))


def _stage_line(stage: Any) -> Any:
    if not isinstance(stage, Mapping) or set(stage) != {"seconds", "bytes"}:
        return stage
    return f"{stage['seconds']:,.1f} s, {output.size_text(stage['bytes'])}"


def _lines(data: Mapping[str, Any], indent: str, most: int | None) -> Iterator[str]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield f"{indent}{inline(name)}:"
            yield from _lines(value, indent + "  ", most)
        elif isinstance(value, (list, tuple)):
            yield f"{indent}{name}: {len(value):,}" if value else f"{indent}{name}: none"
            yield from (f"{indent}  {_line(entry)}" for entry in value[:most])
            if most is not None and len(value) > most:
                yield f"{indent}  ... and {len(value) - most:,} more (--verbose)"
        else:
            yield f"{indent}{name}: {_line(value)}"


def _line(value: Any) -> str:
    if isinstance(value, Mapping):
        if value.keys() == {"document", "code", "message"}:
            return f"{inline(value['document'])}: {inline(value['message'])}"
        return ", ".join(f"{inline(name)} {_line(entry)}" for name, entry in value.items())
    if value is None or isinstance(value, bool):
        return str(value).lower()  # as settings are written
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.3f}" if isinstance(value, float) else inline(value)


_DAMAGED: Final = 4
"""The exit code of a damaged index."""
_NAMES: Final = {
    "tables": "documents and caches",
    "published": "name of the published generation",
}


class Doctor(Command):
    """Verify the checksums of the whole index and print how to fix damage and leftovers of interrupted
    builds. Changes nothing. The exit code is 4 if something is damaged."""

    examples = ("ketrag doctor", "ketrag doctor -i docs-index", "ketrag doctor --json")

    def run(self) -> int:
        """Print the findings."""
        path = options.one_path(self)
        from ketrag_fast.index.health import examine
        from ketrag_fast.index.named_sources import named_sources

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
        endpoints, sources = _endpoints(path, settings), named_sources(path)
        if self.json:
            about = {
                "endpoints": [endpoint.to_json() for endpoint in endpoints],
                "sources": [source.to_json() for source in sources],
            }
            output.write_json(
                {"schema": "ketrag/doctor/1", "damaged": code != 0, "checks": rows, **about}, code
            )
        else:
            for endpoint in endpoints:
                output.write(f"endpoint ({endpoint.setting}): {inline(endpoint.sentence())}", code)
            for source in sources:
                output.write(f"source: {inline(source.sentence())}", code)
        return code


def _endpoints(path: Path, settings: Settings) -> list[Endpoint]:
    """Return the endpoints in the index's settings; none if the settings are damaged."""
    from ketrag_fast.index.endpoints import list_endpoints

    try:
        return list_endpoints(path, settings=settings)
    except KetragError:  # the findings report it
        return []
