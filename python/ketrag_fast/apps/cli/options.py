"""Options that several commands share, and the settings that they set."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from ketrag_fast.apps.cli.command_parser import COMMON, CommandParser, mark_rare
from ketrag_fast.base.config import (
    Setting,
    Settings,
    catalogue,
    find_setting,
    from_environment,
    from_file,
    names,
    of_topic,
    parse,
)
from ketrag_fast.base.config.fields import Topic
from ketrag_fast.base.config.settings import systems
from ketrag_fast.base.config.sources import DEFAULT_FILE
from ketrag_fast.errors import ConfigError, DocumentError, IndexMissing

if TYPE_CHECKING:
    from ketrag_fast.base.progress import Callback, Kind
    from ketrag_fast.index import Index

_METAVARS = {int: "N", float: "X", bool: "{true,false}"}
_MOST_CHOICES = 5
"""Maximum number of choices listed in a placeholder; with more, it is a word such as MODE."""
_LONGEST_LINE = 1_000_000
_DEFAULT = Path(".ketrag")
FILTER = "'year>=1990 and lang=en'"
"""An example filter for help texts."""
_OWNED = "settings of one system: ketrag config list {%s}"


def common(*, letters: bool = True) -> CommandParser:
    """Return a parser with the options that every command takes.

    Without `letters` the index has no short option: `ketrag grep -i` ignores case.
    """
    parser = CommandParser(add_help=False)
    group = parser.add_argument_group(COMMON)
    group.add_argument(
        *(["-i"] if letters else []),
        "--index",
        metavar="DIR",
        help="index folder (default: $KETRAG_INDEX, else ./.ketrag)",
    )
    group.add_argument(
        *(["-c"] if letters else []),
        "--collection",
        metavar="NAME",
        help="named index, or several: notes,work (`ketrag collections`)",
    )
    group.add_argument(
        "-o",
        dest="assignments",
        action="append",
        metavar="NAME=VALUE",
        help="set any setting; repeatable (`ketrag config list`)",
    )
    group.add_argument("--json", action="store_true", help="print JSON")
    group.add_argument("-q", "--quiet", action="store_true", help="print only errors to stderr")
    group.add_argument("-v", "--verbose", action="store_true", help="print more to stderr")
    mark_rare(
        group.add_argument(
            "--config", metavar="FILE", help="settings file (default: $KETRAG_CONFIG, else ./ketrag.toml)"
        ),
        group.add_argument(
            "--progress",
            choices=("auto", "bar", "json", "none"),
            default="auto",
            help="progress on stderr (default auto: a bar on a terminal)",
        ),
    )
    setting(group, *of_topic("common"), rare=True)
    return parser


def setting(group: Any, *wanted: str, rare: bool = False, about: str | None = None) -> None:
    """Add a flag for each setting, with its help (or `about`), its choices and its default."""
    for name in wanted:
        spec = catalogue()[name]
        flag, dest = "--" + name.replace("_", "-"), f"set_{name}"
        if spec.types == (bool,) and spec.default is False and spec.concerns in ("run", "query"):
            action = group.add_argument(
                flag, dest=dest, action="store_const", const="true", help=_escape(about or spec.help)
            )
        else:
            action = group.add_argument(
                flag, dest=dest, metavar=placeholder(spec), help=_escape(about or help_of(spec))
            )
        if rare:
            mark_rare(action)


def placeholder(spec: Setting) -> str:
    """Return the placeholder of a setting's value: its choices, or a word for its type."""
    if spec.choices and len(spec.choices) <= _MOST_CHOICES and not spec.metavar:
        return "{" + ",".join(spec.choices) + "}"
    return spec.metavar or next((_METAVARS[kind] for kind in spec.types if kind in _METAVARS), "VALUE")


def help_of(spec: Setting) -> str:
    """Return the help of a setting, ending with its default."""
    if spec.default is None:
        return spec.help
    default = str(spec.default).lower() if spec.types == (bool,) else str(spec.default)
    return f"{spec.help} (default {default})"


def _escape(text: str) -> str:
    return text.replace("%", "%%")


def topic(
    parser: argparse.ArgumentParser,
    title: str,
    *topics: Topic,
    shown: Collection[str] = (),
    but: Collection[str] = (),
) -> None:
    """Add the settings of some topics to a command.

    Those `shown` appear in the short help and the others that have a flag only in the full help. Shared
    settings without a flag are listed there as -o NAME=VALUE.
    """
    group = parser.add_argument_group(title)
    wanted = [name for name in of_topic(*topics) if name not in but]
    setting(group, *shown)
    setting(group, *(n for n in wanted if catalogue()[n].flag and n not in shown), rare=True)
    if not isinstance(parser, CommandParser):
        return
    for name in wanted:
        spec = catalogue()[name]
        if not spec.flag and not spec.owner:
            parser.more.append((f"{name}={placeholder(spec)}", _escape(help_of(spec))))
    owners = dict.fromkeys(spec.owner for spec in catalogue().values() if spec.owner)
    notes = choices_of_system() if "system" in wanted else []
    if "mode" in wanted or "modes" in wanted:
        notes.append(f"modes: {', '.join(systems().listed['modes'])}")
    for note in (*(_fill(note) for note in notes), _OWNED % ",".join(owners)):
        if note not in parser.notes:
            parser.notes.append(note)


def choices_of_system() -> list[str]:
    """Return two lines: the systems that `--system` takes, and the presets."""
    owners = systems().preset_owners
    main = [name for name, owner in owners.items() if name in (owner, "default")]
    presets = [name for name in owners if name not in main]
    return [f"systems: {', '.join(main)}", f"presets: {', '.join(presets)}"]


def _fill(text: str) -> str:
    from textwrap import fill

    return fill(text, 90, subsequent_indent="  ", break_on_hyphens=False)


def model(parser: argparse.ArgumentParser, shown: Collection[str] = ()) -> None:
    """Add the settings of the embedding model."""
    topic(parser, "embedding model", "embedding", shown=shown)


def answering(parser: argparse.ArgumentParser, shown: Collection[str] = ("llm",)) -> None:
    """Add the settings of the language model that answers."""
    group = parser.add_argument_group("language model")
    setting(group, *shown)
    rest = ("llm", "answer_llm", "llm_context")
    setting(group, *(name for name in rest if name not in shown), rare=True)


def flags(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings given as flags and with -o."""
    texts = {name: getattr(args, f"set_{name}", None) for name in catalogue()}
    _require_filter(texts["filter"], "--filter")
    values = {name: parse(name, text) for name, text in texts.items() if text is not None}
    for text in getattr(args, "assignments", None) or ():
        key, mark, value = text.partition("=")
        if not mark:
            raise ConfigError(f"-o {text!r} has no value", hint="give -o NAME=VALUE, such as -o seed=7")
        name = find_setting(key, f" (-o {text})")
        if texts[name] is not None:
            raise ConfigError(f"{name} is given twice: -o {text} and --{name.replace('_', '-')}")
        if name == "filter":
            _require_filter(value, "-o filter")
        values[name] = parse(name, value)
    return values


def _require_filter(text: str | None, option: str) -> None:
    """Raise ConfigError if the filter is empty: an unset variable would select all documents."""
    if text is not None and not text.strip():
        raise ConfigError(
            f"{option} is empty: is a variable unset?",
            hint=f"give a condition such as {FILTER}, or leave {option} out",
        )


def parse_settings(args: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the settings from flags, from the environment and from the settings file."""
    file = args.config or os.environ.get("KETRAG_CONFIG")
    return flags(args), from_environment(os.environ), from_file(Path(file) if file else None)


def settings_file(args: argparse.Namespace) -> Path:
    """Return the settings file: that of --config or $KETRAG_CONFIG, else `ketrag.toml`."""
    return Path(args.config or os.environ.get("KETRAG_CONFIG") or DEFAULT_FILE)


def build_settings_of(args: argparse.Namespace) -> Settings:
    """Return the settings given by the user; others come from the index or are defaults."""
    flag, environment, file = parse_settings(args)
    values = {**file, **environment, **flag}
    if values.get("answer_llm", "") is None:  # `none` was given: no model, not even the setting llm
        values["answer_llm"] = "none"
    return Settings(**values)


def query_settings_of(args: argparse.Namespace, *, strict: bool = True) -> Settings:
    """Return the settings given by the user that apply to an existing index.

    With `strict`, a build setting given with -o is a ConfigError, because it would have no effect.
    """
    used = {*names("query", "run"), "embedder", "llm"}
    if strict:
        lost = next((name for name in flags(args) if name not in used), None)
        if lost is not None:
            raise ConfigError(
                f"{lost} is a build setting: the index was built with its own value",
                hint=f"ketrag index -o {lost}=VALUE",
            )
    values = build_settings_of(args).given
    return Settings(**{name: value for name, value in values.items() if name in used})


def hops(parser: argparse.ArgumentParser) -> None:
    """Add `--hop`."""
    parser.add_argument(
        "--hop",
        dest="hops",
        action="append",
        default=[],
        metavar="TEXT",
        help="a name or sub-question on the way to the answer that you know already; repeatable",
    )


def freshness(parser: argparse.ArgumentParser) -> None:
    """Add `--fresh` and `--stale`."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--fresh",
        dest="set_refresh",
        action="store_const",
        const="always",
        help="first index files that have changed, however long it takes",
    )
    group.add_argument(
        "--stale",
        dest="set_refresh",
        action="store_const",
        const="never",
        help="do not check whether files have changed",
    )


def freshen(args: argparse.Namespace, index: Index) -> None:
    """Update an index before a query, or print that files have changed."""
    line = index.freshen().line
    if line is not None and not args.quiet:
        from ketrag_fast.apps.cli import output

        output.say(line)


def folders_of(text: str) -> list[str]:
    """Return the folders of the indexes that `-i` names, which commas separate.

    Examples:
        >>> folders_of("north,south")
        ['north', 'south']
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    return [text] if len(names) < 2 or Path(text).exists() else list(dict.fromkeys(names))


def searched_paths(args: argparse.Namespace) -> dict[str | None, Path]:
    """Return the indexes to query: those given with -i or -c, else ./.ketrag, else all collections by name.

    The key of a single index is None.
    """
    named = _collection_paths(args)
    if not named and _folder_named(args) is None and not _DEFAULT.exists():
        from ketrag_fast.index.collections import collection_names, collections_folder

        named = {name: collections_folder() / name for name in collection_names()}
    if not named:
        named = {name: Path(name) for name in folders_of(_folder_named(args) or str(_usual(args)))}
    return {name if len(named) > 1 else None: path for name, path in named.items()}


@contextmanager
def searched_indexes(args: argparse.Namespace, settings: Settings) -> Iterator[dict[str | None, Index]]:
    """Open the indexes of a query by name, brought up to date, for the time of a block."""
    from ketrag_fast.index import Index

    with ExitStack() as stack:
        indexes = {
            name: stack.enter_context(Index.open(path, settings=settings, deadline=settings.deadline))
            for name, path in searched_paths(args).items()
        }
        for index in indexes.values():
            freshen(args, index)
        yield indexes


def only_index(indexes: dict[str | None, Index], option: str) -> Index:
    """Return the single index that an option needs. Raises ConfigError if there are several."""
    if len(indexes) > 1:
        raise ConfigError(f"{option} takes one index", hint="choose it with -c or -i")
    return next(iter(indexes.values()))


def served_indexes(args: argparse.Namespace) -> list[str]:
    """Return the indexes of a server as NAME=DIR; by default those that a search would use."""
    if args.index:
        return list(args.index)
    paths = {**_collection_paths(args)}
    if not paths and _folder_named(args) is None and not _DEFAULT.exists():
        from ketrag_fast.index.collections import collection_names, collections_folder

        paths = {name: collections_folder() / name for name in collection_names()}
    return [f"{name}={path}" for name, path in paths.items()] or [_folder_named(args) or str(_DEFAULT)]


def one_path(args: argparse.Namespace) -> Path:
    """Return the folder of the one index that a command changes or shows."""
    named = _collection_paths(args)
    if len(named) > 1:
        raise ConfigError("this command takes one collection", hint=f"-c {next(iter(named))}")
    return next(iter(named.values()), None) or Path(_folder_named(args) or _usual(args))


def index_path(args: argparse.Namespace) -> tuple[Path, str]:
    """Return the index folder, and whether -c, -i, $KETRAG_INDEX or the default named it."""
    if args.collection is not None:
        return one_path(args), "collection"
    if args.index is not None:
        return Path(args.index), "flag"
    named = os.environ.get("KETRAG_INDEX")
    return (Path(named), "environment") if named else (_DEFAULT, "default")


def _folder_named(args: argparse.Namespace) -> str | None:
    return args.index or os.environ.get("KETRAG_INDEX") or None


def _usual(args: argparse.Namespace) -> Path:
    """Return ./.ketrag, or the only collection if that folder does not exist.

    Raises IndexMissing if there are several collections.
    """
    if _DEFAULT.exists():
        return _DEFAULT
    from ketrag_fast.index.collections import collection_names, collections_folder

    names = collection_names()
    if len(names) == 1:
        return collections_folder() / names[0]
    if names:
        raise IndexMissing(
            f"no index in {_DEFAULT}, and there are {len(names)} collections",
            hint=f"choose one: -c {names[0]} (there are: {', '.join(names[:10])})",
        )
    return _DEFAULT


def _collection_paths(args: argparse.Namespace) -> dict[str, Path]:
    """Return the folders of the collections given with -c, by name."""
    given = getattr(args, "collection", None)
    if given is None:
        return {}
    if args.index:
        raise ConfigError("-c and -i name two indexes", hint="leave one of them out")
    from ketrag_fast.index.collections import collection_path

    names = dict.fromkeys(name.strip() for name in given.split(","))
    return {name: collection_path(name) for name in names}


def progress(args: argparse.Namespace) -> Callback | None:
    """Return the callback that shows progress."""
    from ketrag_fast.base.progress import sink

    is_terminal = sys.stderr.isatty()
    kind: Kind = args.progress
    if kind == "auto":
        can_redraw = is_terminal and os.environ.get("TERM") != "dumb"
        kind = "bar" if can_redraw and not args.quiet else "none"
    if kind == "bar" and is_terminal:
        return sink(kind, cast("TextIO", NarrowStream(sys.stderr)))
    return sink(kind, sys.stderr)


def require_data_set(path: str) -> None:
    """Raise DocumentError if a path is not a data set: it has no questions."""
    if Path(path).is_dir() and not (Path(path) / "queries.jsonl").exists():
        raise DocumentError(
            f"{path} has no queries.jsonl",
            hint="a data set is a folder with queries.jsonl, qrels.tsv and maybe corpus.jsonl, or a file of "
            "MuSiQue, HotpotQA or 2WikiMultihopQA",
        )
    if Path(path).is_file() and _has_texts_only(Path(path)):
        raise DocumentError(
            f"{path} looks like a corpus or a file of queries in BEIR layout, not like a data set",
            hint="name its folder, with corpus.jsonl, queries.jsonl and qrels.tsv; or a file of questions "
            "of MuSiQue, HotpotQA or 2WikiMultihopQA",
        )


def _has_texts_only(file: Path) -> bool:
    """Return whether the first line of a file is an object with a text, but without a question."""
    try:
        with file.open("rb") as stream:
            first = json.loads(stream.readline(_LONGEST_LINE))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "text" in first and "question" not in first


def refuse_standard_stream(path: str, stream: str) -> None:
    """Raise ConfigError if `-` is given for a file: the command does not use that stream."""
    if path == "-":
        raise ConfigError(
            f"-: {stream} is not supported here", hint="name a file; one that is called - is ./-"
        )


def require_file(option: str, file: str | None, hint: str) -> None:
    """Raise ConfigError if the file of an option was named and does not exist."""
    if file is not None and not Path(file).exists():
        raise ConfigError(f"{option} {file}: no such file", hint=hint)


class NarrowStream:
    """A terminal stream that cuts lines to the current width.

    A line that wraps cannot be redrawn: each refresh would leave a line behind.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write `\\rLINE`, with or without an end of line; the last column stays empty."""
        line = text.strip("\r\n")
        return self._stream.write(text.replace(line, line[: self._columns() - 1]) if line else text)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()

    def _columns(self) -> int:
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):  # a stream without a file
            columns = 0
        return columns or shutil.get_terminal_size().columns
