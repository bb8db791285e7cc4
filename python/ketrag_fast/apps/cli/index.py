"""`ketrag index SOURCE...`: build an index, or update it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import (
    READING,
    RUNNING,
    WHAT_TO_BUILD,
    Command,
    argument,
    embedding,
    option,
    switch,
)
from ketrag_fast.apps.terminal import inline
from ketrag_fast.errors import ConfigError, IndexMissing, InternalError, ModeUnavailable
from ketrag_fast.types.wording import counted

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings
    from ketrag_fast.index import Index
    from ketrag_fast.index.on_ray.building import ShardReport
    from ketrag_fast.types import BuildReport


_LISTS = ("auto", "all")
"""Values of --modes that stand for several modes."""
_DELTA = "delta"
"""The only stage that a report lists if the change is stored as a delta."""
_MACHINES = "several machines (docs/how-to/clusters.md)"
CONTINUES = "finished work is kept: run the same command again to continue"


def declare_dry_run() -> Any:
    """Declare `--dry-run` of a command that changes an index."""
    return switch("print what would change, and change nothing")


class Build(Command):
    """Build an index of files, folders or globs, or update it. Sources accumulate: without SOURCE, all
    sources of the index are read again."""

    go_on = f"{CONTINUES}, or with --publish-partial to publish what has been extracted so far"
    examples = (
        "ketrag index docs/",
        "ketrag index ~/notes --name notes",
        "ketrag index docs/ --embedder native:all-MiniLM-L6-v2 --modes auto,knn",
    )
    sources: tuple[str, ...] = argument("SOURCE", "file, folder, glob or .jsonl data set", nargs="*")
    name: str | None = option("NAME", "keep the index in the user's data folder; -c NAME uses it anywhere")
    build = WHAT_TO_BUILD
    replace: bool = switch("drop all sources that this command does not name")
    rebuild: bool = switch("discard earlier work; needed to change the chunk size")
    check: bool = switch(
        "compare the contents of all files, and not only of those whose size or times differ"
    )
    questions: str | None = option(
        "FILE", "file of example questions for the web page, one per line", "--examples", rare=True
    )
    dry_run: bool = declare_dry_run()
    publish_partial: bool = switch("publish what an interrupted build has extracted so far", rare=True)
    on: str | None = option(
        "WHERE",
        "build a new index on Ray: `ray`, or ray://HOST:PORT of a cluster",
        rare=True,
        group=_MACHINES,
    )
    shards: int | None = option(
        "N", "with --on: number of shards (default: one for each task)", rare=True, group=_MACHINES
    )
    keep_shards: bool = switch(
        "with --on: leave the shards in DIR.shards, unmerged", rare=True, group=_MACHINES
    )
    running = RUNNING
    model = embedding()
    reading = READING

    def run(self) -> int:
        """Build or update the index and print a report."""
        path = self._folder()
        settings = options.build_settings_of(self)
        is_new = not self.sources and not has_index(path)
        if self.publish_partial and is_new:
            raise ConfigError(f"{path} has nothing to publish", hint="ketrag index SOURCE... --llm SPEC")
        if is_new or (self.replace and not self.sources):
            raise ConfigError(
                "no source was named",
                hint="ketrag index SOURCE...: files, folders, globs or .jsonl data sets",
            )
        if self.on is not None:
            return self._run_on_ray(self.on, path, settings)
        if self.shards is not None or self.keep_shards:
            name = "--keep-shards" if self.keep_shards else "--shards"
            raise ConfigError(f"{name} needs --on", hint="--on ray; without Ray see --shard I/N")
        if self.dry_run:
            if not has_index(path):
                raise IndexMissing(
                    f"no index in {path}",
                    hint="`ketrag estimate SOURCE...` predicts what building one takes",
                )
            return preview(self, path, add=self.sources, reread=True, replace=self.replace)
        from ketrag_fast.index import Index

        with Index.build(
            self.sources,
            path,
            settings=settings,
            progress=options.progress(self),
            replace=self.replace,
            rebuild=self.rebuild,
            partial=self.publish_partial,
            check=self.check,
            examples=self._questions(),
        ) as index:
            report = report_of(index)
            lacking = [] if self.quiet else list(_explain_unserved(index, settings))
        found = report.extraction
        stopped = bool(found and found["pending"] and (found["stopped"] or self.publish_partial))
        code = print_report(self, path, report, partial=stopped)
        for text in lacking:
            output.warn(text)
        return code

    def _folder(self) -> Path:
        """Return the index folder: a collection with --name, else that of -i."""
        if self.name is None:
            path, named_by = options.index_path(self)
            return options.default_index() if named_by == "default" and not self.sources else path
        if self.index or self.collection:
            raise ConfigError(
                "--name makes a collection, and -i and -c name another index", hint="leave out -i and -c"
            )
        from ketrag_fast.index.collections import new_collection

        return new_collection(self.name, self.sources)

    def _questions(self) -> tuple[str, ...] | None:
        """Return the questions of `--examples`."""
        if self.questions is None:
            return None
        from ketrag_fast.index.annotations import checked_examples, read_examples

        return checked_examples(read_examples(Path(self.questions)))

    def _run_on_ray(self, on: str, path: Path, settings: Settings) -> int:
        """Build the shards on Ray and merge them, unless --keep-shards is given."""
        for flag, given in (
            ("--dry-run", self.dry_run),
            ("--rebuild", self.rebuild),
            ("--publish-partial", self.publish_partial),
        ):
            if given:
                raise ConfigError(
                    f"--on and {flag} cannot be used together", hint=f"leave out one: --on or {flag}"
                )
        if not self.sources:
            raise ConfigError("--on needs sources", hint="ketrag index SOURCE... --on ray")
        from ketrag_fast.index.on_ray import building

        how: dict[str, Any] = {"on": on, "shards": self.shards, "settings": settings}
        how["progress"] = options.progress(self)
        if self.keep_shards:
            return self._show_shards(path, building.build_shards(self.sources, path, **how))
        report = building.build(self.sources, path, examples=self._questions(), **how)
        return print_report(self, path, report)

    def _show_shards(self, path: Path, built: Sequence[ShardReport]) -> int:
        failures = [failure for one in built for failure in one.failures]
        code = output.PARTIAL if failures else 0
        if self.json:
            rows = [
                {"path": str(one.path), "shard": one.name, "documents": one.documents, "digest": one.digest}
                for one in built
            ]
            listed = [failure.to_json() for failure in failures]
            output.write_json({"schema": "ketrag/shards/1", "shards": rows, "failures": listed}, code)
        else:
            count = sum(one.documents for one in built)
            folder = inline(str(built[0].path.parent))
            output.write(f"{folder}: {count:,} documents in {len(built):,} shards", code)
            output.say(f"merge them: ketrag merge {folder}/*-of-* -i {inline(str(path))}")
        output.report_failures(failures, listed=not self.json)
        return code


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


def print_report(
    command: Command, path: Path, report: BuildReport, *, partial: bool = False, **more: Any
) -> int:
    """Print the report of a change, with its warnings and failures, and return the exit code.

    `partial` is set if the change stopped early; `more` is added to the JSON.
    """
    code = output.PARTIAL if report.failures or partial else 0
    if command.json:
        output.write_json({**report.to_json(), "index": str(path), **more}, code)
    else:
        output.write(summary(report, inline(path)), code)
    if not command.quiet:
        print_details(command, report)
    return code


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


def print_details(command: Command, report: BuildReport) -> None:
    """Print warnings, changed settings and failures to stderr."""
    for warning in report.warnings:
        output.warn(options.complete_hint(warning, options.index_of(command)))
    if command.verbose:
        for file in report.skipped:
            output.say(inline(f"  skipped {file.document}: {file.message}"))
        for stage in report.stages:
            output.say(
                f"  {stage.name:<16} {stage.how:<8} {stage.seconds:8.3f} s  {output.size_text(stage.bytes)}"
            )
    for name, old, new in report.settings_changed:
        output.say(inline(f"setting {name}: {old} -> {new}"))
    output.report_failures(report.failures, listed=not command.json)


def preview(command: Command, path: Path, **change: Any) -> int:
    """Print what a change would do, whose arguments are those of `Index.preview`; return the exit code."""
    from ketrag_fast.index.building import preview_update

    settings = options.build_settings_of(command)
    change = {"add": (), "remove": (), "where": None, **change}  # there may be no index yet
    found = preview_update(path, settings=settings, progress=options.progress(command), **change)
    code = output.PARTIAL if found.failures else 0
    if command.json:
        output.write_json({**found.to_json(), "index": str(path)}, code)
    else:
        output.write(
            f"{inline(path)} would have {counted(found.documents, 'document')} "
            f"({found.added:,} added, {found.updated:,} changed, {found.removed:,} removed; "
            f"{counted(found.characters, 'character')} to read); nothing was done",
            code,
        )
    if not command.quiet and not command.json:
        output.report_failures(found.failures)
    return code
