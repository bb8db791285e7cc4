"""`ketrag stats`: print what an index contains."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ketrag_fast.apps.cli import options, output, retrieve
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import IndexMissing

_DETAILS: Final = frozenset(("settings", "models", "search", "bytes"))
_LISTS: Final = ("modes",)
_SHOWN: Final = 3
"""Failures and endpoints that are listed without --verbose."""


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "stats",
        parents=[shared],
        description="Print counts, sizes, times, failures, the generation and the digest of an index. "
        "With --verbose also settings, all failures, and details of each stage.",
        examples=("ketrag stats", "ketrag stats -i docs-index --json", "ketrag stats --allow 'group=sales'"),
    )
    options.setting(parser, "allow")
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    path = options.one_path(args)
    from ketrag_fast.index import Index

    with Index.open(path, settings=options.query_settings_of(args)) as index:
        data = index.stats()
    if args.json:
        output.write_json({"schema": "ketrag/stats/1", **data})
    else:
        from ketrag_fast.models.endpoint_trust import Endpoint

        shown = {name: value for name, value in data.items() if name != "schema"}
        shown["endpoints"] = [Endpoint(**row).sentence() for row in data["endpoints"]]
        output.write("\n".join(_lines(shown if args.verbose else _brief(shown), "")))
    return 0


def _brief(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a screenful of the statistics: without zeros and settings, one line for each stage."""
    brief: dict[str, Any] = {}
    for name, value in data.items():
        if name in _LISTS and isinstance(value, (list, tuple)):
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
            brief[name] = value[:_SHOWN] if isinstance(value, list) else value
    failures = len(data.get("failures") or ())
    if failures > _SHOWN:
        brief["failures"] = [*brief["failures"], f"... and {failures - _SHOWN:,} more (--verbose)"]
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


def _lines(data: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield f"{indent}{inline(name)}:"
            yield from _lines(value, indent + "  ")
        elif isinstance(value, (list, tuple)):
            yield f"{indent}{name}: {len(value):,}" if value else f"{indent}{name}: none"
            yield from (f"{indent}  {_line(entry)}" for entry in value)
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


def declare_diff(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "diff",
        parents=[shared],
        description="Compare two indexes, or two generations of one (my-index/gen-000003): documents, "
        "settings, models, entities, relations, and the passages for some queries. The exit "
        "code is 0 also if they differ (--json: same).",
        examples=(
            "ketrag diff old-index new-index",
            "ketrag diff .ketrag/gen-000003 .ketrag",
            "ketrag diff old-index new-index --questions queries.jsonl --mode walk",
        ),
    )
    parser.add_argument("before", metavar="A", help="folder of an index or of a generation")
    parser.add_argument("after", metavar="B", help="folder of another")
    parser.add_argument(
        "--questions", metavar="FILE", help="JSONL file of {_id, text}: compare their passages; - is stdin"
    )
    options.topic(parser, "retrieval", "query", shown=("mode", "budget", "top", "filter"))
    group = parser.add_argument_group("embedding model")
    options.setting(group, "embedder", rare=True)
    options.model(parser)
    parser.set_defaults(run=_run_diff, go_on="run the same command again")


def _run_diff(args: argparse.Namespace) -> int:
    """Run the command."""
    questions = [] if args.questions is None else retrieve.questions_of(args.questions)
    from ketrag_fast.index import Index
    from ketrag_fast.index.difference import summary

    settings = options.query_settings_of(args)
    for folder in map(Path, (args.before, args.after)):
        if not folder.exists():
            raise IndexMissing(
                f"no index in {folder}", hint="ketrag diff A B: name the folders of two indexes"
            )
    with (
        Index.open(args.before, settings=settings) as one,
        Index.open(args.after, settings=settings) as other,
    ):
        found = one.inspect.diff(other, questions)
    if args.json:
        output.write_json({**found.to_json(), "before": args.before, "after": args.after})
    else:
        output.write("\n".join(inline(line) for line in summary(found)))
    return 0
