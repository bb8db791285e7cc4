"""`ketrag index SOURCE... --on ray`: the shards of an index are built on Ray, and merged."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command_parser import mark_rare
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ketrag_fast.base.config import Settings
    from ketrag_fast.index.on_ray.building import ShardReport
    from ketrag_fast.types import BuildReport

_ALONE = {"dry_run": "--dry-run", "rebuild": "--rebuild", "publish_partial": "--publish-partial"}


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    group = parser.add_argument_group("several machines (docs/how-to/clusters.md)")
    mark_rare(
        group.add_argument(
            "--on", metavar="WHERE", help="build a new index on Ray: `ray`, or ray://HOST:PORT of a cluster"
        ),
        group.add_argument(
            "--shards", type=int, metavar="N", help="with --on: number of shards (default: one for each task)"
        ),
        group.add_argument(
            "--keep-shards", action="store_true", help="with --on: leave the shards in DIR.shards, unmerged"
        ),
    )


def is_wanted(args: argparse.Namespace) -> bool:
    """Return whether `--on` is given. Raises ConfigError for options that need it."""
    if args.on is None and (args.shards is not None or args.keep_shards):
        name = "--keep-shards" if args.keep_shards else "--shards"
        raise ConfigError(f"{name} needs --on", hint="--on ray; without Ray see --shard I/N")
    return args.on is not None


def run(
    args: argparse.Namespace,
    path: Path,
    settings: Settings,
    examples: Sequence[str] | None,
    show: Callable[[argparse.Namespace, Path, BuildReport], int],
) -> int:
    """Run the command with `--on`; `show` prints the report of the merged index."""
    for name, flag in _ALONE.items():
        if getattr(args, name):
            raise ConfigError(
                f"--on and {flag} cannot be used together", hint=f"leave out one: --on or {flag}"
            )
    if not args.sources:
        raise ConfigError("--on needs sources", hint="ketrag index SOURCE... --on ray")
    from ketrag_fast.index.on_ray import building

    progress = options.progress(args)
    if args.keep_shards:
        built = building.build_shards(
            args.sources, path, on=args.on, shards=args.shards, settings=settings, progress=progress
        )
        return _show_shards(args, path, built)
    report = building.build(
        args.sources,
        path,
        on=args.on,
        shards=args.shards,
        settings=settings,
        progress=progress,
        examples=examples,
    )
    return show(args, path, report)


def _show_shards(args: argparse.Namespace, path: Path, built: Sequence[ShardReport]) -> int:
    rows = [
        {"path": str(one.path), "shard": one.name, "documents": one.documents, "digest": one.digest}
        for one in built
    ]
    failures = [failure for one in built for failure in one.failures]
    if args.json:
        output.write_json(
            {
                "schema": "ketrag/shards/1",
                "shards": rows,
                "failures": [failure.to_json() for failure in failures],
            }
        )
    else:
        count = sum(one.documents for one in built)
        folder = inline(str(built[0].path.parent))
        output.write(f"{folder}: {count:,} documents in {len(built):,} shards")
        output.say(f"merge them: ketrag merge {folder}/*-of-* -i {inline(str(path))}")
    output.report_failures(failures, listed=not args.json)
    return output.PARTIAL if failures else 0
