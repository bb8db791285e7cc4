"""Resolve the settings, indexes and progress display of a parsed command, and word hints that name them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from ketrag_fast.apps.cli import output
from ketrag_fast.apps.cli.command import FILTER, Command
from ketrag_fast.apps.terminal import columns_of_terminal
from ketrag_fast.base.config import (
    Settings,
    catalogue,
    find_setting,
    from_environment,
    names,
    parse,
)
from ketrag_fast.base.config.settings import PREFIX
from ketrag_fast.base.config.settings_file import SettingsFile, read_settings_file
from ketrag_fast.errors import ConfigError, DocumentError, EmptyQuery, IndexMissing, KetragError

if TYPE_CHECKING:
    from ketrag_fast.base.progress import Callback, Kind
    from ketrag_fast.eval import DataSet
    from ketrag_fast.index import Index

_NAME: Final = ".ketrag"
_DATA_SET: Final = (
    "a data set is a folder with queries.jsonl, qrels.tsv and maybe corpus.jsonl, or a file of MuSiQue, "
    "HotpotQA or 2WikiMultihopQA"
)


def flags(command: Command) -> dict[str, Any]:
    """Return the settings given as flags and with -o."""
    _require_filter(command.settings.get("filter"), "--filter")
    values = {name: parse(name, text) for name, text in command.settings.items()}
    for text in command.assignments:
        key, mark, value = text.partition("=")
        if not mark:
            raise ConfigError(f"-o {text!r} has no value", hint="give -o NAME=VALUE, such as -o seed=7")
        name = find_setting(key, f" (-o {text})")
        if name in command.settings:
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


def parse_settings(command: Command) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the settings from flags, from the environment and from the settings file.

    What the file names outside its folder need not be confirmed: the values are for display.
    """
    return flags(command), from_environment(os.environ), dict(settings_file(command).values)


def settings_file(command: Command) -> SettingsFile:
    """Return the settings file of a command: that of --config or KETRAG_CONFIG, else ./ketrag.toml."""
    file = command.config or os.environ.get("KETRAG_CONFIG")
    return read_settings_file(Path(file) if file else None)


def build_settings_of(command: Command, used: Collection[str] | None = None) -> Settings:
    """Return the settings given by the user; others come from the index or are defaults.

    Raises SettingsNotConfirmed if the settings file of the working folder decides one of the `used` settings
    (None: any) with something outside the folder that the user has not confirmed.
    """
    file = settings_file(command)
    given = {**from_environment(os.environ), **flags(command)}
    file.require_confirmed({name for name in file.values if used is None or name in used} - given.keys())
    values = {**file.values, **given}
    if values.get("answer_llm", "") is None:  # `none` was given: no model, not even the setting llm
        values["answer_llm"] = "none"
    return Settings(**values)


def query_settings_of(command: Command, *, strict: bool = True) -> Settings:
    """Return the settings given by the user that apply to an existing index.

    With `strict`, a build setting given with -o is a ConfigError, because it would have no effect.
    """
    used = {*names("query", "run"), "embedder", "llm"}
    if strict:
        lost = next((name for name in flags(command) if name not in used), None)
        if lost is not None:
            raise ConfigError(
                f"{lost} is a build setting: the index was built with its own value",
                hint=f"ketrag index -o {lost}=VALUE",
            )
    values = build_settings_of(command, used).given
    return Settings(**{name: value for name, value in values.items() if name in used})


def freshen(command: Command, index: Index) -> None:
    """Update an index before a query, or print that files have changed."""
    line = index.freshen().line
    if line is not None and not command.quiet:
        output.notice(line, as_json=command.json)


def folders_of(text: str) -> list[str]:
    """Return the folders of the indexes that `-i` names, which commas separate.

    Examples:
        >>> folders_of("north,south")
        ['north', 'south']
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    return [text] if len(names) < 2 or Path(text).exists() else list(dict.fromkeys(names))


def is_address(name: str) -> bool:
    """Return whether `-i` names a service instead of a folder."""
    return name.startswith(("http://", "https://"))


def folder_of(name: str) -> Path:
    """Return the folder that `-i` names; of an index in an object store, that of its local copy."""
    if "://" in name:
        from ketrag_fast.index.object_stores import cached_index, is_object

        if is_object(name):
            return cached_index(name)
    return Path(name)


def searched_paths(command: Command) -> dict[str | None, Path]:
    """Return the folders of the indexes to query, as `searched_places`.

    Raises ConfigError if one is behind a service.
    """
    found = {}
    for name, place in searched_places(command).items():
        if isinstance(place, str):
            raise _no_folder(place)
        found[name] = place
    return found


def listed_paths(command: Command) -> dict[str | None, Path]:
    """Return the folders of the indexes that a command lists: all that -i or -c name, else the usual one.

    The key of a single index is None. Raises ConfigError if one is behind a service.
    """
    named = _collections_named(command)
    folders = folders_of(_folder_named(command) or "")
    is_several = len(named) > 1 or (not named and len(folders) > 1)
    return searched_paths(command) if is_several else {None: one_path(command)}


def _no_folder(address: str) -> ConfigError:
    return ConfigError(
        f"this command reads folders, and {address} is a service",
        hint="run it on the machine of the service, or name a folder with -i",
    )


def searched_places(command: Command) -> dict[str | None, Path | str]:
    """Return the indexes to query: those given with -i or -c, else the default, else all collections by name.

    An index behind a service is its address. The key of a single index is None.
    """
    named: dict[str, Path | str] = {**collection_paths(command)} or {
        name: name if is_address(name) else folder_of(name)
        for name in folders_of(_folder_named(command) or str(default_index()))
    }
    return {name if len(named) > 1 else None: place for name, place in named.items()}


def collection_paths(command: Command) -> dict[str, Path]:
    """Return the collections given with -c; without an index, all of them."""
    named = _collections_named(command)
    if not named and _folder_named(command) is None and not default_index().exists():
        from ketrag_fast.index.collections import collection_names, collections_folder

        named = {name: collections_folder() / name for name in collection_names()}
    return named


@contextmanager
def searched_indexes(command: Command, settings: Settings) -> Iterator[dict[str | None, Index | str]]:
    """Open the indexes of a query by name, brought up to date, for the time of a block.

    An index behind a service is its address.
    """
    from ketrag_fast.index import Index

    with ExitStack() as stack:
        indexes: dict[str | None, Index | str] = {}
        for name, place in searched_places(command).items():
            if isinstance(place, str):
                indexes[name] = place
            else:
                opened = Index.open(place, settings=settings, deadline=settings.deadline)
                indexes[name] = stack.enter_context(opened)
        for index in indexes.values():
            if not isinstance(index, str):
                freshen(command, index)
        yield indexes


def open_index(command: Command) -> Index:
    """Open the one index that a command shows."""
    from ketrag_fast.index import Index

    return Index.open(one_path(command), settings=query_settings_of(command))


def only_index(indexes: dict[str | None, Index | str], option: str) -> Index:
    """Return the single index that an option needs.

    Raises ConfigError if there are several, or if it is behind a service.
    """
    index = next(iter(indexes.values()))
    if len(indexes) > 1:
        raise ConfigError(f"{option} takes one index", hint="choose it with -c or -i")
    if isinstance(index, str):
        raise ConfigError(f"{option} takes the folder of an index, and {index} is a service")
    return index


def one_path(command: Command) -> Path:
    """Return the folder of the one index that a command changes or shows."""
    named = _collections_named(command)
    if len(named) > 1:
        raise ConfigError("this command takes one collection", hint=f"-c {next(iter(named))}")
    if named:
        return next(iter(named.values()))
    name = _folder_named(command)
    if name is None:
        return _usual()
    folders = folders_of(name)
    if len(folders) > 1:
        raise ConfigError("this command takes one index", hint=f"-i {folders[0]}")
    if is_address(name):
        raise _no_folder(name)
    return folder_of(name)


def index_path(command: Command) -> tuple[Path, str]:
    """Return the index folder, and whether -c, -i, $KETRAG_INDEX or the default named it."""
    if command.collection is not None:
        return one_path(command), "collection"
    if command.index is not None:
        return _own_folder(command.index), "flag"
    named = os.environ.get("KETRAG_INDEX")
    return (_own_folder(named), "environment") if named else (Path(_NAME), "default")


def _own_folder(name: str) -> Path:
    """Return the folder in which a command builds. Raises ConfigError for an address."""
    if "://" in name and not Path(name).exists():
        raise ConfigError(
            f"an index is built in a folder, and {name} is an address",
            hint="name a folder with -i; `ketrag bundle s3://BUCKET/NAME -i DIR` stores the index",
        )
    return Path(name)


def default_index() -> Path:
    """Return ./.ketrag; if it does not exist, the nearest one in a folder above, as Git finds its repository.

    Another user's index is not used: anybody may create a folder in /tmp.
    """
    here = Path.cwd()
    for depth, folder in enumerate((here, *here.parents)):
        try:
            status = (folder / _NAME).stat()
        except OSError:
            continue
        if depth == 0 or not hasattr(os, "getuid") or status.st_uid == os.getuid():
            return Path(*[".."] * depth, _NAME)
    return Path(_NAME)


def _folder_named(command: Command) -> str | None:
    return command.index or os.environ.get("KETRAG_INDEX") or None


def _usual() -> Path:
    """Return the default index, or the only collection if that folder does not exist.

    Raises IndexMissing if there are several collections.
    """
    default = default_index()
    if default.exists():
        return default
    from ketrag_fast.index.collections import collection_names, collections_folder

    names = collection_names()
    if len(names) == 1:
        return collections_folder() / names[0]
    if names:
        raise IndexMissing(
            f"no index in {default}, and there are {len(names)} collections",
            hint=f"choose one: -c {names[0]} (there are: {', '.join(names[:10])})",
        )
    return default


def _collections_named(command: Command) -> dict[str, Path]:
    """Return the folders of the collections given with -c, by name."""
    if command.collection is None:
        return {}
    if command.index:
        raise ConfigError("-c and -i name two indexes", hint="leave one of them out")
    from ketrag_fast.index.collections import collection_path

    names = dict.fromkeys(name.strip() for name in command.collection.split(","))
    return {name: collection_path(name) for name in names}


def progress(command: Command) -> Callback | None:
    """Return the callback that shows progress."""
    from ketrag_fast.base.progress import sink

    is_terminal = sys.stderr.isatty()
    kind = cast("Kind", command.progress)
    if kind == "auto":
        can_redraw = is_terminal and os.environ.get("TERM") != "dumb"
        kind = "bar" if can_redraw and not command.quiet else "none"
    if kind == "bar" and is_terminal:
        return sink(kind, cast("TextIO", NarrowStream(sys.stderr)))
    return sink(kind, sys.stderr)


def load_data_set(path: str) -> DataSet:
    """Read a data set; the hint of an error says what one is."""
    from ketrag_fast.eval import load_dataset

    try:
        return load_dataset(path)
    except DocumentError as error:
        error.hint = error.hint or _DATA_SET
        raise


def refuse_standard_stream(path: str, stream: str) -> None:
    """Raise ConfigError if `-` is given for a file: the command does not use that stream."""
    if path == "-":
        raise ConfigError(f"-: {stream} is not supported here", hint="name a file (./- for a file called -)")


def require_text(text: str) -> None:
    """Raise EmptyQuery if a question is empty."""
    if not text.strip():
        raise EmptyQuery("the question is empty", hint="give at least one word: is a variable unset?")


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
        return columns or columns_of_terminal()


# ---------------------------------------------------------------- hints

# Not after "alone (": documents that are indexed alone belong in another index.
_COMMAND: Final = re.compile(
    r"(?<!alone \(`)\bketrag (?:index|reembed|add|remove|documents|doctor|stats|graph)"
    r"(?![\w-])"
    r"(?P<rest>(?:(?!\bketrag )[^`;])*)"
)
_INDEX: Final = re.compile(r"(?:^|\s)(?:-i|--index)\b")
_ADDED_MODE: Final = re.compile(r"--modes auto(?:,([\w-]+))?(?![\w,-])")
_SETTING: Final = re.compile(r"(\w+)(?:: | is | must )")


def add_context(error: KetragError, command: Command) -> KetragError:
    """Return an error that names where a wrong setting was given, with a hint that names the index."""
    message, hint = error.message, error.hint
    origin = _origin(error, command)
    error.message = f"{origin}: {message}" if origin else message
    error.hint = None if hint is None else complete_hint(hint, index_of(command))
    return error


def complete_hint(hint: str, index: str | None) -> str:
    """Complete the commands in a hint: add `-i INDEX`, and add modes instead of replacing them.

    Examples:
        >>> complete_hint("`ketrag index --modes auto,knn` adds it", "my notes")
        "`ketrag index -i 'my notes' --modes +knn` adds it"
        >>> complete_hint("rebuild the vectors: ketrag reembed", None)
        'rebuild the vectors: ketrag reembed'
    """
    hint = _ADDED_MODE.sub(lambda found: f"--modes +{found[1] or 'auto'}", hint)
    if index is None:
        return hint

    from shlex import quote  # only errors need it

    def named(found: re.Match[str]) -> str:
        if _INDEX.search(found["rest"]):
            return found[0]
        return f"{found[0].removesuffix(found['rest'])} -i {quote(index)}{found['rest']}"

    return _COMMAND.sub(named, hint)


def index_of(command: Command) -> str | None:
    """Return the index that hints should name; None for the default index and for several."""
    named = command.named_index
    if not named or Path(named) == Path(_NAME):
        return None
    return named if len(folders_of(named)) == 1 else None


def _origin(error: KetragError, command: Command) -> str | None:
    """Return where the setting at the start of a message was given; None for a flag, or if there is no
    setting."""
    found = _SETTING.match(error.message)
    if found is None or found[1] not in catalogue():
        return None
    try:
        flags, environment, file = parse_settings(command)
    except KetragError:  # the error itself
        return None
    name = found[1]
    if name in flags:
        return None
    if name in environment:
        return f"environment variable {PREFIX}{name.upper()}"
    return str(settings_file(command).path) if name in file else None
