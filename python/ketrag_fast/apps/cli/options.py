"""Options that several commands share, and how they become settings."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.config import (
    Setting,
    Settings,
    catalogue,
    from_environment,
    from_file,
    names,
    of_topic,
    parse,
)
from ketrag_fast.base.config.catalogue import systems
from ketrag_fast.base.config.fields import Topic

if TYPE_CHECKING:
    from ketrag_fast.base.progress import Callback, Kind

_METAVARS = {int: "N", float: "X"}


def common() -> argparse.ArgumentParser:
    """The options that every command takes."""
    parser = argparse.ArgumentParser(add_help=False)
    group = parser.add_argument_group("common options")
    group.add_argument(
        "-i", "--index", metavar="DIR", help="folder of the index (else $KETRAG_INDEX, else ./.ketrag)"
    )
    group.add_argument(
        "--config", metavar="FILE", help="settings file (else $KETRAG_CONFIG, else ./ketrag.toml)"
    )
    group.add_argument("--json", action="store_true", help="print JSON")
    group.add_argument(
        "--progress",
        choices=("auto", "bar", "json", "none"),
        default="auto",
        help="how progress is shown on stderr (auto: a bar on a terminal)",
    )
    setting(group, *of_topic("common"))
    loudness = group.add_mutually_exclusive_group()
    loudness.add_argument("-q", "--quiet", action="store_true", help="say nothing on stderr but errors")
    loudness.add_argument("-v", "--verbose", action="store_true", help="say more on stderr")
    return parser


def setting(group: Any, *wanted: str) -> None:
    """One flag for each setting, with its help, its choices and its default."""
    for name in wanted:
        spec = catalogue()[name]
        flag, dest = "--" + name.replace("_", "-"), f"set_{name}"
        if spec.types == (bool,) and spec.concerns == "run":
            group.add_argument(flag, dest=dest, action="store_const", const="true", help=spec.help)
            continue
        metavar = next((_METAVARS[kind] for kind in spec.types if kind in _METAVARS), "VALUE")
        group.add_argument(flag, dest=dest, metavar=metavar, help=_help(spec))


def _help(spec: Setting) -> str:
    listed = spec.choices or systems().listed.get(spec.name, ())
    default = "none" if spec.default is None else str(spec.default).lower()
    if spec.types != (bool,):
        default = "none" if spec.default is None else str(spec.default)
    choices = f": {', '.join(listed)}" if listed else ""
    return f"{spec.help}{choices} (default {default})".replace("%", "%%")


def topic(parser: argparse.ArgumentParser, title: str, *topics: Topic, but: Collection[str] = ()) -> None:
    """The options of some topics: the shared ones under `title`, then those of each system."""
    groups: dict[str, Any] = {}
    for name in of_topic(*topics):
        if name in but:
            continue
        owner = catalogue()[name].owner
        if owner not in groups:
            groups[owner] = parser.add_argument_group(f"{title} ({owner})" if owner else title)
        setting(groups[owner], name)


def model(parser: argparse.ArgumentParser) -> None:
    """How an embedding model is found and computes."""
    topic(parser, "the embedding model", "embedding")


def reading(parser: argparse.ArgumentParser, title: str, text: str | None = None) -> None:
    """What reads the core chunks, and how."""
    group = parser.add_argument_group(title, text)
    setting(group, *of_topic("reading"))


def writer(group: Any) -> None:
    """The model that answers, and that mode hyde asks."""
    text = catalogue()["writer"].help
    group.add_argument("--llm", dest="set_writer", metavar="SPEC", help=f"{text} (default none)")


def flags(args: argparse.Namespace) -> dict[str, Any]:
    """The settings given as flags."""
    given = {name: getattr(args, f"set_{name}", None) for name in catalogue()}
    return {name: parse(name, text) for name, text in given.items() if text is not None}


def parse_settings(args: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The settings from flags, environment and file, each by itself."""
    file = args.config or os.environ.get("KETRAG_CONFIG")
    return flags(args), from_environment(os.environ), from_file(Path(file) if file else None)


def build_settings_of(args: argparse.Namespace) -> Settings:
    """All that was asked for, as settings; what was not is left to the index and the defaults."""
    flag, environment, file = parse_settings(args)
    given = {**file, **environment, **flag}
    if given.get("writer", "") is None:  # "none" was said: no model, not the one that read the chunks
        given["writer"] = "none"
    return Settings(**given)


def query_settings_of(args: argparse.Namespace) -> Settings:
    """The same for a command that does not build: how the index was made is its own affair."""
    given = build_settings_of(args).given
    used = {*names("query", "run"), "embedder"}
    return Settings(**{name: value for name, value in given.items() if name in used})


def index_path(args: argparse.Namespace) -> tuple[Path, str]:
    """The folder of the index and where its name comes from."""
    if args.index is not None:
        return Path(args.index), "flag"
    named = os.environ.get("KETRAG_INDEX")
    return (Path(named), "environment") if named else (Path(".ketrag"), "default")


def progress(args: argparse.Namespace) -> Callback | None:
    """Where progress goes."""
    from ketrag_fast.base.progress import sink

    kind: Kind = "none" if args.quiet and args.progress == "auto" else args.progress
    return sink(kind, sys.stderr)
