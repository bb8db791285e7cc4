"""`ketrag index SOURCE...`: build an index, or update it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command_parser import mark_rare
from ketrag_fast.apps.cli.error_context import complete_hint, index_of
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ConfigError, IndexMissing, InternalError, ModeUnavailable
from ketrag_fast.types.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ketrag_fast.base.config import Settings
    from ketrag_fast.index import Index
    from ketrag_fast.index.on_ray.building import ShardReport
    from ketrag_fast.types import BuildReport


_GO_ON = (
    "finished work is kept: run the same command again to continue, "
    "or with --publish-partial to publish what has been extracted so far"
)

_LISTS = ("auto", "all")
"""Values of --modes that stand for several modes."""
_DELTA = "delta"
"""The only stage that a report lists if the change is stored as a delta."""


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "index",
        parents=[shared],
        description="Build an index of files, folders or globs, or update it. Sources accumulate: without "
        "SOURCE, all sources of the index are read again.",
        examples=(
            "ketrag index docs/",
            "ketrag index ~/notes --name notes",
            "ketrag index docs/ --embedder native:all-MiniLM-L6-v2 --modes auto,knn",
        ),
    )
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="file, folder, glob or .jsonl data set")
    parser.add_argument(
        "--name", metavar="NAME", help="keep the index in the user's data folder; -c NAME uses it anywhere"
    )
    options.topic(
        parser,
        "what to build",
        "build",
        shown=("system", "modes", "embedder", "llm", "chunk_tokens", "language"),
    )
    parser.add_argument(
        "--replace", action="store_true", help="drop all sources that this command does not name"
    )
    parser.add_argument(
        "--rebuild", action="store_true", help="discard earlier work; needed to change the chunk size"
    )
    examples = parser.add_argument(
        "--examples", metavar="FILE", help="file of example questions for the web page, one per line"
    )
    declare_dry_run(parser)
    partial = parser.add_argument(
        "--publish-partial",
        action="store_true",
        help="publish what an interrupted build has extracted so far",
    )
    mark_rare(examples, partial)
    _declare_ray(parser)
    options.topic(parser, "running", "running")
    options.model(parser)
    options.topic(parser, "extraction by a language model (--llm)", "reading", but=("llm",))
    parser.set_defaults(run=run, go_on=_GO_ON)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    path = _folder(args)
    settings = options.build_settings_of(args)
    is_new = not args.sources and not has_index(path)
    if args.publish_partial and is_new:
        raise ConfigError(f"{path} has nothing to publish", hint="ketrag index SOURCE... --llm SPEC")
    if is_new or (args.replace and not args.sources):
        raise ConfigError(
            "no source was named", hint="ketrag index SOURCE...: files, folders, globs or .jsonl data sets"
        )
    if _is_on_ray(args):
        return _run_on_ray(args, path, settings, examples_of(args), show_report)
    if args.dry_run:
        if not has_index(path):
            raise IndexMissing(
                f"no index in {path}",
                hint="`ketrag estimate SOURCE...` predicts what building one takes",
            )
        return preview(args, sources=args.sources, reread=True, replace=args.replace)
    from ketrag_fast.index import Index

    index = Index.build(
        args.sources,
        path,
        settings=settings,
        progress=options.progress(args),
        replace=args.replace,
        rebuild=args.rebuild,
        partial=args.publish_partial,
        examples=examples_of(args),
    )
    with index:
        report = report_of(index)
        lacking = [] if args.quiet else list(_explain_unserved(index, settings))
    code = show_report(args, path, report)
    for text in lacking:
        output.warn(text)
    return code


def _folder(args: argparse.Namespace) -> Path:
    """Return the index folder: a collection with --name, else that of -i."""
    if args.name is None:
        return options.index_path(args)[0]
    if args.index or args.collection:
        raise ConfigError(
            "--name makes a collection, and -i and -c name another index", hint="leave out -i and -c"
        )
    from ketrag_fast.index.collections import new_collection

    return new_collection(args.name, args.sources)


def has_index(path: Path) -> bool:
    """Return whether a build or a merge has begun in a folder."""
    from ketrag_fast.index.building import has_begun

    return has_begun(path)


def _explain_unserved(index: Index, settings: Settings) -> Iterator[str]:
    """Yield why the index cannot serve each mode that the user requested and it lacks."""
    named = [mode.strip().removeprefix("+") for mode in settings.given.get("modes", "").split(",")]
    for mode in dict.fromkeys(named):
        if mode and mode not in (*_LISTS, *index.modes):
            try:
                index.retrieve(mode, mode=mode)  # refused before it searches
            except ModeUnavailable as error:
                yield f"{error.message}; {error.hint}" if error.hint else error.message


def examples_of(args: argparse.Namespace) -> tuple[str, ...] | None:
    """Return the questions of `--examples`."""
    if args.examples is None:
        return None
    from ketrag_fast.index.annotations import checked_examples, read_examples

    return checked_examples(read_examples(Path(args.examples)))


def show_report(args: argparse.Namespace, path: Path, report: BuildReport) -> int:
    """Print the report of a build, and return the exit code."""
    args.code = output.PARTIAL if report.failures or _cut_short(args, report) else 0
    print_report(args, path, report)
    return int(args.code)


def print_report(args: argparse.Namespace, path: Path, report: BuildReport, **more: Any) -> None:
    """Print the report of a change, with its warnings and failures; `more` is added to the JSON."""
    if args.json:
        output.write_json({**report.to_json(), "index": str(path), **more})
    else:
        output.write(summary(report, inline(path)))
    if not args.quiet:
        print_details(args, report)


def _cut_short(args: argparse.Namespace, report: BuildReport) -> bool:
    """Return whether extraction stopped with chunks left."""
    found = report.extraction
    if found is None or not found["pending"]:
        return False
    return bool(found["stopped"] or args.publish_partial)


def report_of(index: Index) -> BuildReport:
    """Return the report of the build that made `index`."""
    if index.report is None:
        raise InternalError("a build ended without a report")
    return index.report


def summary(report: BuildReport, path: str) -> str:
    """Return one line about a build."""
    if not report.changed:
        count = counted(report.documents, "document")
        return f"{path} is up to date: {count}, generation {report.generation}; nothing was done" + (
            f"\n{_read_line(report)}" if report.extraction is not None else ""
        )
    ran = sum(1 for stage in report.stages if stage.how == "ran")
    kept = len(report.stages) - ran
    changes = f"{report.added:,} added, {report.updated:,} changed, {report.removed:,} removed"
    read = _read_line(report)
    count = counted(report.documents, "document")
    if [stage.name for stage in report.stages] == [_DELTA]:
        size, how = "", "stored as a delta"
    else:
        size = f"{output.size_text(sum(stage.bytes for stage in report.stages))}, "
        how = f"{counted(ran, 'stage')} run, {kept} kept"
    return (
        f"{path}: {count} ({changes}), generation {report.generation}, {size}{report.seconds:.2f} s ({how})"
        + (f"\n{read}" if read else "")
    )


def _read_line(report: BuildReport) -> str:
    """Return a line about LLM extraction."""
    found = report.extraction
    if found is None:
        return ""
    each = report.usage.core_chunks
    passes = found["core"] // each if each else 1  # another kind of extraction reads them again
    several = f" ({each:,} in {passes} passes)" if passes > 1 else ""
    parts = [f"{found['read']:,} of {found['core']:,} core chunks read{several}"]
    if found["asked"]:
        replies = "1 reply" if found["asked"] == 1 else f"{found['asked']:,} replies"
        parts.append(f"{replies} in this build ({found['seconds']:.1f} s)")
    if found["tokens_out"]:
        shared = f"{found['tokens_shared']:,} shared"
        parts.append(f"{found['tokens_in']:,} tokens in ({shared}), {found['tokens_out']:,} out")
    parts += [f"{found[name]:,} {name}" for name in ("failed", "pending") if found[name]]
    return "  extraction: " + ", ".join(parts)


def print_details(args: argparse.Namespace, report: BuildReport) -> None:
    """Print warnings, changed settings and failures to stderr."""
    for warning in report.warnings:
        output.warn(complete_hint(warning, index_of(args)))
    if args.verbose:
        for file in report.skipped:
            output.say(inline(f"  skipped {file.document}: {file.message}"))
        for stage in report.stages:
            output.say(
                f"  {stage.name:<16} {stage.how:<8} {stage.seconds:8.3f} s  {output.size_text(stage.bytes)}"
            )
    for name, old, new in report.settings_changed:
        output.say(inline(f"setting {name}: {old} -> {new}"))
    output.report_failures(report.failures, listed=not args.json)


_ALONE = {"dry_run": "--dry-run", "rebuild": "--rebuild", "publish_partial": "--publish-partial"}


def _declare_ray(parser: argparse.ArgumentParser) -> None:
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


def _is_on_ray(args: argparse.Namespace) -> bool:
    """Return whether `--on` is given. Raises ConfigError if it is missing and an option requires it."""
    if args.on is None and (args.shards is not None or args.keep_shards):
        name = "--keep-shards" if args.keep_shards else "--shards"
        raise ConfigError(f"{name} needs --on", hint="--on ray; without Ray see --shard I/N")
    return args.on is not None


def _run_on_ray(
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


def declare_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument("--dry-run", action="store_true", help="print what would change, and change nothing")


def preview(
    args: argparse.Namespace,
    *,
    sources: Sequence[str] = (),
    remove: Sequence[str] = (),
    where: str | None = None,
    reread: bool = False,
    replace: bool = False,
) -> int:
    """Print what a change would do; return the exit code."""
    from ketrag_fast.index import Index

    path, _ = options.index_path(args)
    found = Index.preview(
        path,
        add=sources,
        remove=remove,
        where=where,
        reread=reread,
        replace=replace,
        settings=options.build_settings_of(args),
        progress=options.progress(args),
    )
    if args.json:
        output.write_json({**found.to_json(), "index": str(path)})
    else:
        output.write(
            f"{inline(path)} would have {counted(found.documents, 'document')} "
            f"({found.added:,} added, {found.updated:,} changed, {found.removed:,} removed; "
            f"{counted(found.characters, 'character')} to read); nothing was done"
        )
    if found.failures and not args.quiet and not args.json:
        output.report_failures(found.failures)
    return output.PARTIAL if found.failures else 0
