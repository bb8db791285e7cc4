"""`ketrag watch SOURCE...`: builds, and builds again after changes settle, until it is stopped."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import index, options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import BackendMissing, ConfigError, IndexLocked, KetragError

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings

_LOOK = 2000
"""Milliseconds after which the watch looks whether its folders are still there."""
_POLL = 1.0
"""Seconds between two looks for a folder that is not there, or for the end of another build."""


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "watch",
        parents=[shared],
        description="Builds the index of some folders or files, and builds it again whenever they change. "
        "Readers keep their answers until the new generation is there. Ctrl-C ends it.",
    )
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="folder or file")
    parser.add_argument(
        "--settle", type=float, default=2.0, metavar="SECONDS", help="wait until nothing changed for so long"
    )
    options.topic(parser, "what is built", "build")
    options.topic(parser, "how it runs", "running")
    options.model(parser)
    options.reading(parser, "the skeleton: what reads the core chunks")
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Runs the command until it is stopped."""
    try:
        import watchfiles
    except ImportError:
        raise BackendMissing("watchfiles is not installed", hint="pip install 'ketrag-fast[watch]'") from None
    if not 0 < args.settle <= 3600:
        raise ConfigError("--settle must be above 0 and at most 3600 seconds")
    path, _ = options.index_path(args)
    settings = options.build_settings_of(args)
    sources = [os.path.abspath(source) for source in args.sources]  # noqa: PTH100 - links stay as they are
    _build(args, path, settings, sources)
    own = path.resolve()

    def others(_: Any, changed: str) -> bool:
        """Changes that are not the index's own."""
        return not Path(changed).resolve().is_relative_to(own)

    milliseconds = round(1000 * args.settle)
    while True:
        _wait(args, sources)
        first, places = (
            True,
            _places(sources),
        )  # what changed between the build and the watch was told to nobody
        try:
            for changes in watchfiles.watch(
                *sources,
                watch_filter=others,
                debounce=max(milliseconds * 10, 1600),
                step=milliseconds,
                raise_interrupt=True,
                rust_timeout=_LOOK,
                yield_on_timeout=True,
            ):
                if _places(sources) != places:
                    break  # what vanished may come back: its documents stay until then
                if changes or first:
                    first = False
                    _build(args, path, settings, [])
        except FileNotFoundError:
            continue  # gone between the look and the watch


def _places(sources: list[str]) -> list[tuple[int, int] | None]:
    """Which folders and files the sources are; a watch does not follow a name to another."""
    found: list[tuple[int, int] | None] = []
    for source in sources:
        try:
            about = Path(source).stat()
        except OSError:
            found.append(None)
        else:
            found.append((about.st_dev, about.st_ino))
    return found


def _wait(args: argparse.Namespace, sources: list[str]) -> None:
    """Until all sources are there."""
    gone = [source for source in sources if not Path(source).exists()]
    if gone and not args.quiet:
        output.warn(inline(f"waiting for {', '.join(gone)}, which is gone; its documents stay until then"))
    while any(not Path(source).exists() for source in gone):
        time.sleep(_POLL)


def _build(args: argparse.Namespace, path: Path, settings: Settings, sources: list[str]) -> None:
    """One build. What is wrong is said, and the next change tried; a wrong setting ends it all."""
    from ketrag_fast.index import Index

    while True:
        try:
            with Index.build(sources, path, settings=settings, progress=options.progress(args)) as built:
                report = index.report_of(built)
            break
        except ConfigError:
            raise
        except IndexLocked:
            time.sleep(_POLL)
        except KetragError as error:
            if sources:
                raise
            output.fail(error, as_json=args.json)
            return
    if not report.changed and not sources:
        return
    if args.json:
        output.write_json({**report.to_json(), "index": str(path)})
    else:
        output.write(index.summary(report, inline(path)))
    if not args.quiet:
        index.tell(args, report)
