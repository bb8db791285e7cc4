"""Commands that change an index without reading its other sources: `ketrag add`, `remove`, `merge`
and `reembed`."""

from __future__ import annotations

from typing import Any, Literal

from ketrag_fast.apps.cli import index, options, output
from ketrag_fast.apps.cli.command import (
    RUNNING,
    Command,
    argument,
    embedding,
    option,
    settings,
    switch,
    topic,
)
from ketrag_fast.apps.cli.index import CONTINUES
from ketrag_fast.apps.terminal import inline
from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ConfigError


def _change(command: Command, dry_run: bool, *, purge: bool = False, **change: Any) -> int:
    """Apply a change, or preview it with --dry-run, and print a report."""
    path, _ = options.index_path(command)
    if dry_run:
        return index.preview(command, path, **change)
    from ketrag_fast.index import Index

    with Index.open(path, settings=options.build_settings_of(command)) as opened:
        report = opened.update(**change, purge=purge, progress=options.progress(command))
    if command.json or not purge:
        return index.print_report(command, path, report)
    code = output.PARTIAL if report.failures else 0
    if report.changed:
        output.write(index.summary(report, inline(path)), code)
    output.write(f"{inline(path)}: what was stored of removed documents is erased", code)
    if not command.quiet:
        index.print_details(command, report)
    return code


class Add(Command):
    """Add files, folders, globs or data sets to an index, or read them again. Other sources are not read.
    Removed documents come back with their source."""

    go_on = CONTINUES
    examples = (
        "ketrag add notes/new.md",
        "ketrag add 'reports/2024-*.pdf' --dry-run",
        "ketrag add notes/ --llm llama-cpp:model.gguf",
    )
    sources: tuple[str, ...] = argument("SOURCE", "file, folder, glob or .jsonl data set", nargs="+")
    dry_run: bool = index.declare_dry_run()
    running = RUNNING
    model = embedding()
    reading = topic(
        "extraction by a language model (without --llm, new chunks stay pending)", "reading", shown=("llm",)
    )

    def run(self) -> int:
        """Add the documents."""
        return _change(self, self.dry_run, add=self.sources)


class Remove(Command):
    """Remove documents from an index. No source is read and no model is called. They stay removed even if
    their source still has them, until `ketrag add` names the source or their file."""

    go_on = CONTINUES
    epilog = (
        "In a pattern, * matches any characters (also /), ? one character, [abc] one of these.\n"
        "Quote patterns, so that the shell does not expand them."
    )
    examples = (
        "ketrag remove old.md 'drafts/*'",
        "ketrag remove --filter 'year<1990' --dry-run",
        "ketrag remove --purge secret.md",
    )
    ids: tuple[str, ...] = argument("ID|GLOB", "document id, or pattern of ids", nargs="*")
    where: str | None = option(
        "CONDITION", "remove documents whose metadata match, such as 'year<1990'", "--filter"
    )
    purge: bool = switch("also erase their text, vectors, replies and ids from all files of the index")
    dry_run: bool = index.declare_dry_run()
    running = RUNNING
    model = embedding()

    def run(self) -> int:
        """Remove the documents."""
        if not self.ids and self.where is None and not self.purge:
            raise ConfigError("no document was named", hint="ketrag remove ID..., or --filter 'year<1990'")
        return _change(self, self.dry_run, purge=self.purge, remove=self.ids, where=self.where)


class Merge(Command):
    """Merge several indexes into one (-i OUT), byte for byte the index of one build over all their documents.
    Nothing is read, embedded or extracted again. The indexes must have the same settings and models."""

    go_on = CONTINUES
    named_index = None  # hints are about the parts
    examples = (
        "ketrag merge part1 part2 part3 -i whole",
        "ketrag merge north south -i whole --prefer last",
        "ketrag index corpus/ -i part1 --shard 1/3",
    )
    parts: tuple[str, ...] = argument("DIR", "index folder", nargs="+")
    prefer: Literal["first", "last"] | None = option(
        None,
        "index that takes precedence if two have different documents with one id (default: an error)",
        choices=("first", "last"),
    )
    embedder = settings("embedder", title="embedding model")
    running = RUNNING
    model = embedding()

    def run(self) -> int:
        """Merge the indexes and print a report."""
        path, _ = options.index_path(self)
        from ketrag_fast.index import Index

        given, progress = options.build_settings_of(self), options.progress(self)
        with Index.merge(self.parts, path, prefer=self.prefer, settings=given, progress=progress) as merged:
            report = index.report_of(merged)
        return index.print_report(self, path, report, parts=list(self.parts))


class Reembed(Command):
    """Compute all vectors again, with another model or the same one, and publish them at once when they are
    complete; queries use the old ones until then. Documents are read from the index, not from their sources.
    Run it again after an interruption to continue."""

    go_on = "embedded texts are kept: run the same command again"
    examples = (
        "ketrag reembed --embedder native:all-MiniLM-L6-v2",
        "ketrag reembed --embedder openai:MODEL@http://127.0.0.1:8080/v1",
        "ketrag reembed --limit-seconds 3600",
    )
    build = settings("embedder", "limit_seconds", title="what to build")
    model = embedding("precision", "device", "limit_usd")

    def run(self) -> int:
        """Embed the index again and print a report."""
        from ketrag_fast.index import Index

        path, _ = options.index_path(self)
        given = dict(options.query_settings_of(self).given)
        embedder = given.pop("embedder", None)  # an index is opened with the one that it has
        with Index.open(path, settings=Settings(**given)) as opened:
            report = opened.reembed(embedder, progress=options.progress(self))
        index.print_report(self, path, report)
        return 0
