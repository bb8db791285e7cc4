"""`ketrag stats`: print what an index contains."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "stats",
        parents=[shared],
        description="Print counts, sizes, times, failures, the generation and the digest of an index.",
        examples=("ketrag stats", "ketrag stats -i docs-index --json", "ketrag stats --allow 'group=sales'"),
    )
    options.setting(parser, "allow")
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    path, _ = options.index_path(args)
    from ketrag_fast.index import Index

    with Index.open(path, settings=options.query_settings_of(args)) as index:
        data = index.stats()
    if args.json:
        output.write_json({"schema": "ketrag/stats/1", **data})
    else:
        from ketrag_fast.models.endpoint_trust import Endpoint

        shown = {name: value for name, value in data.items() if name != "schema"}
        shown["endpoints"] = [Endpoint(**row).sentence() for row in data["endpoints"]]
        output.write("\n".join(_lines(shown, "")))
    return 0


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
        return ", ".join(f"{inline(name)} {_line(entry)}" for name, entry in value.items())
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:,.3f}" if isinstance(value, float) else inline(value)
