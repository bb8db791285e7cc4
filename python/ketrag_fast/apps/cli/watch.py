"""`ketrag watch SOURCE...`: build, and update whenever the sources change, until stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ketrag_fast.apps.cli import index, options, output
from ketrag_fast.apps.cli.command import (
    READING,
    RUNNING,
    WHAT_TO_BUILD,
    Command,
    argument,
    embedding,
    option,
)
from ketrag_fast.apps.terminal import inline
from ketrag_fast.base.installed import install_command
from ketrag_fast.errors import BackendMissing, ConfigError, IndexLocked, KetragError
from ketrag_fast.records import replace
from ketrag_fast.types.wording import counted

if TYPE_CHECKING:
    from watchfiles import Change

    from ketrag_fast.base.config import Settings
    from ketrag_fast.types import BuildReport

_LOOK = 2000
"""Milliseconds between checks that the watched folders exist."""
_POLL = 1.0
"""Seconds between checks for a missing folder, or for the end of another build."""
_MOST_NAMED: Final = 10
"""Maximum number of changed files that are named: a branch of a repository may change thousands."""


class Watch(Command):
    """Build the index of some folders or files, and update it whenever they change, until Ctrl-C. Queries use
    the old generation until the new one is published. Changes of files that .gitignore or --exclude leaves
    out start no build."""

    examples = (
        "ketrag watch notes/",
        "ketrag watch notes/ --settle 10 -i notes-index",
        "ketrag watch notes/ --embedder native:all-MiniLM-L6-v2",
    )
    sources: tuple[str, ...] = argument("SOURCE", "folder or file", nargs="+")
    settle: float = option("SECONDS", "build when nothing has changed for this long (default 2)", default=2.0)
    build = WHAT_TO_BUILD
    running = RUNNING
    model = embedding()
    reading = READING

    def run(self) -> int:
        """Watch until Ctrl-C, which is the normal end."""
        try:
            from watchfiles import watch
        except ImportError:
            raise BackendMissing(
                "ketrag watch needs the package watchfiles, which is not installed",
                hint=install_command("watch"),
            ) from None
        if not 0 < self.settle <= 3600:
            raise ConfigError("--settle must be above 0 and at most 3600 seconds")
        from ketrag_fast.models.embedders.native import keep_open

        try:
            with keep_open():
                _keep_updating(self, watch)
        except KeyboardInterrupt:
            return 0


def _keep_updating(command: Watch, watch: Callable[..., Any]) -> NoReturn:
    path, _ = options.index_path(command)
    settings = options.build_settings_of(command)
    sources = [os.path.abspath(source) for source in command.sources]  # noqa: PTH100 - links stay as they are
    if not index.has_index(path):
        _wait_for_documents(command, settings, sources)
    builds = _Builds(command, path, settings)
    builds.run(sources)
    if not command.quiet:
        output.say(inline(f"watching {', '.join(sources)} for changes, until Ctrl-C"))
    own = path.resolve()
    from ketrag_fast.index.building import leaves_out

    def others(_: Any, changed: str) -> bool:
        """Return whether a changed file is a source: outside the index folder, and not excluded."""
        if Path(changed).resolve().is_relative_to(own):
            return False
        return not any(leaves_out(Path(source), Path(changed), settings) for source in sources)

    milliseconds = round(1000 * command.settle)
    while True:
        _wait(command, sources)
        # The first round builds again: changes between the build and the watch were not reported.
        first, places = True, _places(sources)
        try:
            for changes in watch(
                *sources,
                watch_filter=others,
                debounce=max(milliseconds * 10, 1600),
                step=milliseconds,
                raise_interrupt=True,
                rust_timeout=_LOOK,
                yield_on_timeout=True,
            ):
                if _places(sources) != places:
                    break  # a missing source may come back: its documents stay until then
                if changes or first:
                    first = False
                    builds.run([], _named(changes, sources))
        except FileNotFoundError:
            continue  # it was deleted between the check and the watch


def _places(sources: list[str]) -> list[tuple[int, int] | None]:
    """Return device and inode of each source: a watch does not follow a name to another folder."""
    places: list[tuple[int, int] | None] = []
    for source in sources:
        try:
            about = Path(source).stat()
        except OSError:
            places.append(None)
        else:
            places.append((about.st_dev, about.st_ino))
    return places


def _wait(command: Watch, sources: list[str]) -> None:
    """Wait until all sources exist."""
    gone = [source for source in sources if not Path(source).exists()]
    if gone and not command.quiet:
        output.warn(inline(f"waiting for {', '.join(gone)}, which is missing; its documents stay until then"))
    while any(not Path(source).exists() for source in gone):
        time.sleep(_POLL)


def _wait_for_documents(command: Watch, settings: Settings, sources: list[str]) -> None:
    """Wait until a source has a document: a new index without any would be an error."""
    from ketrag_fast.index.building import read_sources

    is_told = command.quiet
    while next(iter(read_sources(sources, settings)), None) is None:
        if not is_told:
            output.say(inline(f"waiting for a document in {', '.join(sources)}, until Ctrl-C"))
            is_told = True
        time.sleep(_POLL)


class _Builds:
    """Builds of one index. A warning or failure that an earlier build had is not printed again."""

    def __init__(self, command: Watch, path: Path, settings: Settings) -> None:
        self._command = command
        self._path = path
        self._settings = settings
        self._known: BuildReport | None = None

    def run(self, sources: list[str], changed: str = "") -> None:
        """Build once. Errors are printed and the watch continues, except for a wrong setting."""
        from ketrag_fast.index import Index

        command, path, settings = self._command, self._path, self._settings
        while True:
            try:
                with Index.build(
                    sources, path, settings=settings, progress=options.progress(command)
                ) as built:
                    report = index.report_of(built)
                break
            except ConfigError:
                raise
            except IndexLocked:
                time.sleep(_POLL)
            except KetragError as error:
                if sources:
                    raise
                output.fail(error, as_json=command.json)
                return
        known, self._known = self._known, report
        new = report if known is None else _without(report, known)
        if not (report.changed or sources or new.failures or new.warnings):
            return
        if changed and not command.quiet:
            output.say(inline(changed))
        index.print_report(command, path, new)


def _without(report: BuildReport, known: BuildReport) -> BuildReport:
    """Return a report without the warnings and failures of an earlier one."""
    return replace(
        report,
        warnings=tuple(text for text in report.warnings if text not in known.warnings),
        failures=tuple(one for one in report.failures if one not in known.failures),
        skipped=tuple(one for one in report.skipped if one not in known.skipped),
    )


def _named(changes: Iterable[tuple[Change, str]], sources: list[str]) -> str:
    """Return which files changed, in one line: "added: new.md; deleted: a.md, b.md"."""
    found: dict[str, list[str]] = {}
    ordered = sorted(changes, key=lambda change: change[1])
    for kind, path in ordered[:_MOST_NAMED]:
        inside = [source for source in sources if Path(path).is_relative_to(source) and path != source]
        name = Path(path).relative_to(inside[0]).as_posix() if inside else Path(path).name
        found.setdefault(kind.raw_str(), []).append(name)
    text = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in sorted(found.items()))
    more = len(ordered) - _MOST_NAMED
    return f"{text} and {counted(more, 'more file')}" if more > 0 else text
