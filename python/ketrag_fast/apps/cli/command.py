"""Commands as typed values: a command is a class whose fields are its arguments.

Its docstring is the description in the help. `Flags` in its body declare settings at that place of the help.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Collection, Mapping
from textwrap import fill
from typing import Any, ClassVar, Final, NamedTuple, dataclass_transform

from ketrag_fast.apps.cli.command_parser import COMMON, CommandParser
from ketrag_fast.base.config import Setting, catalogue, of_topic
from ketrag_fast.base.config.fields import Topic
from ketrag_fast.base.config.settings import systems
from ketrag_fast.records import Field, dataclass, field, fields

FILTER: Final = "'year>=1990 and lang=en'"
"""An example filter for help texts."""
_METAVARS: Final = {int: "N", float: "X", bool: "{true,false}"}
_MOST_CHOICES: Final = 5
"""Maximum number of choices listed in a placeholder; with more, it is a word such as MODE."""
_TYPES: Final = {"int": int, "float": float}


def argument(metavar: str | None, help: str | Callable[[], str], **about: Any) -> Any:  # noqa: A002 - as in argparse
    """Declare a positional argument; `about` are keywords of argparse. A function is called for the help."""
    return field(metadata={"flags": None, "about": {"metavar": metavar, "help": help, **about}})


def option(
    metavar: str | tuple[str, str] | None,
    help: str,  # noqa: A002
    *flags: str,
    rare: bool = False,
    group: str | None = None,
    **about: Any,
) -> Any:
    """Declare an option, by default with the flag `--NAME` of the field; if it is a tuple, a repeatable one.

    A `rare` one is only in the full help; `group` is a title in it; `about` are keywords of argparse.
    """
    about = {"metavar": metavar, "help": help, **about}
    return field(metadata={"flags": flags, "about": about, "rare": rare, "group": group})


def switch(help: str, *flags: str, rare: bool = False, group: str | None = None) -> Any:  # noqa: A002
    """Declare an option without a value."""
    return option(None, help, *flags, rare=rare, group=group, action="store_true")


def declare_hops() -> Any:
    """Declare `--hop`."""
    return option(
        "TEXT", "a name or sub-question on the way to the answer that you know already; repeatable", "--hop"
    )


def declare_literal() -> Any:
    """Declare `--literal`."""
    return switch(
        "read the query as plain words: no phrases, exclusions, prefixes, fields or similar words",
        "--literal",
        rare=True,
    )


def declare_only() -> Any:
    """Declare `--only`, with the names of `base.scopes`, which is imported when a query has one."""
    names = ("code", "docs", "config", "tests")
    return option(None, "only such files of a repository, by their paths", choices=names)


class Flags(NamedTuple):
    """Flags of settings; `declare` adds them to a parser."""

    declare: Callable[[CommandParser], None]


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True, kw_only=True)
class Command:
    """The options that every command takes. Each subclass is a frozen dataclass."""

    examples: ClassVar[tuple[str, ...]] = ()
    epilog: ClassVar[str | None] = None
    go_on: ClassVar[str] = "run the same command again"
    """How to continue after an interruption."""
    actions: ClassVar[Mapping[str, tuple[str, type[Command]]]] = {}
    """Sub-commands: help and class by name. A command that has some takes no options itself."""
    action_metavar: ClassVar[str] = "ACTION"
    declared: ClassVar[dict[str, Any]] = {}
    """Fields and flags in the order of the class body."""

    index: str | None = option(
        "DIR",
        "index folder (default: $KETRAG_INDEX, else the nearest .ketrag)",
        "-i",
        "--index",
    )
    collection: str | None = option(
        "NAME", "named index, or several: notes,work (`ketrag collections`)", "-c", "--collection"
    )
    assignments: tuple[str, ...] = option(
        "NAME=VALUE", "set any setting; repeatable (`ketrag config list`)", "-o"
    )
    json: bool = switch("print JSON")
    quiet: bool = switch("print only errors to stderr", "-q", "--quiet")
    verbose: bool = switch("print more to stderr", "-v", "--verbose")
    config: str | None = option(
        "FILE", "settings file (default: $KETRAG_CONFIG, else ./ketrag.toml)", rare=True
    )
    progress: str = option(
        None,
        "progress on stderr (default auto: a bar on a terminal)",
        rare=True,
        choices=("auto", "bar", "json", "none"),
        default="auto",
    )
    settings: Mapping[str, str] = field(default_factory=dict)
    """Text of each setting given as a flag, by name."""

    def __init_subclass__(cls) -> None:
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Field | Flags)}
        cls.declared = {**cls.declared, **own}
        dataclass(frozen=True, kw_only=True)(cls)  # it removes the fields from the class

    def run(self) -> int:
        """Run the command and return the exit code."""
        raise NotImplementedError

    @property
    def answers_once(self) -> bool:
        """Whether the command answers one query and ends."""
        return False

    @property
    def named_index(self) -> str | None:
        """The index that a hint should name; None for the default index, or if the command has several."""
        return self.index


def declare(commands: Any, name: str, command: type[Command], text: str) -> None:
    """Add a command to the sub-commands of a parser."""
    parser = commands.add_parser(
        name,
        help=text,
        description=" ".join((command.__doc__ or "").split()),
        epilog=command.epilog,
        examples=command.examples,
        conflict_handler="resolve",  # `ketrag grep -i` ignores case, and `ketrag serve -i` is repeatable
    )
    if command.actions:
        inner = parser.add_subparsers(
            metavar=command.action_metavar, required=True, parser_class=CommandParser
        )
        for action, (about, declared) in command.actions.items():
            declare(inner, action, declared, about)
        return
    declare_common(parser)
    for dest, one in command.declared.items():
        if isinstance(one, Flags):
            one.declare(parser)
        else:
            _add(parser, parser, dest, one)
    parser.set_defaults(parser=parser, make=lambda values: command(**values_of(values, command)))


def declare_common(parser: CommandParser) -> None:
    """Add the options that every command takes."""
    group = parser.add_argument_group(COMMON)
    for one in fields(Command):
        if one.metadata:
            _add(parser, group, one.name, one)
    _add_settings(group, of_topic("common"), rare=True)


def _add(parser: CommandParser, group: Any, dest: str, declared: Field[Any]) -> None:
    flags, kind = declared.metadata["flags"], str(declared.type)
    about = {name: value for name, value in declared.metadata["about"].items() if value is not None}
    about |= {"type": _TYPES[kind.split()[0]]} if kind.split()[0] in _TYPES else {}
    about |= {"help": about["help"]()} if callable(about["help"]) else {}
    if flags is None:  # a positional argument
        about |= {"nargs": "?"} if kind.endswith(" | None") else {}
        group.add_argument(dest, **about)
        return
    if kind == "tuple[str, ...]":
        about["action"] = "append"
    if declared.metadata["group"] is not None:
        group = parser.group(declared.metadata["group"])
    action = group.add_argument(*flags or ("--" + dest.replace("_", "-"),), dest=dest, **about)
    action.rare = declared.metadata["rare"]


def values_of(parsed: Namespace, command: type[Command]) -> dict[str, Any]:
    """Return the values of the fields of a command, from what argparse found."""
    found: dict[str, Any] = {}
    for one in fields(command):
        if one.metadata:
            value = getattr(parsed, one.name, None)
            if isinstance(value, list) or (value is None and str(one.type) == "tuple[str, ...]"):
                value = tuple(value or ())
            found[one.name] = value
    given = {name.removeprefix("set_"): text for name, text in vars(parsed).items() if name[:4] == "set_"}
    return {**found, "settings": {name: text for name, text in given.items() if text is not None}}


# ---------------------------------------------------------------- flags of settings


def settings(*names: str, title: str = "", rare: bool = False, about: str | None = None) -> Flags:
    """Return a flag for each setting, in the group `title`; `about` replaces its help."""
    return Flags(lambda parser: _add_settings(parser.group(title), names, rare=rare, about=about))


def topic(title: str, *topics: Topic, shown: Collection[str] = (), but: Collection[str] = ()) -> Flags:
    """Return the settings of some topics.

    Those `shown` appear in the short help and the others that have a flag only in the full help. Shared
    settings without a flag are listed there as -o NAME=VALUE.
    """

    def add(parser: CommandParser) -> None:
        wanted = [name for name in of_topic(*topics) if name not in but]
        group = parser.group(title)
        _add_settings(group, shown)
        _add_settings(group, [n for n in wanted if catalogue()[n].flag and n not in shown], rare=True)
        for name in wanted:
            spec = catalogue()[name]
            if not spec.flag and not spec.owner:
                parser.more.append((f"{name}={placeholder(spec)}", _escape(help_of(spec))))
        notes = choices_of_system() if "system" in wanted else []
        if "mode" in wanted or "modes" in wanted:
            notes.append(f"modes: {', '.join(systems().listed['modes'])}")
        notes = [fill(note, 90, subsequent_indent="  ", break_on_hyphens=False) for note in notes]
        owners = dict.fromkeys(spec.owner for spec in catalogue().values() if spec.owner)
        notes.append(f"settings of one system: ketrag config list {{{','.join(owners)}}}")
        parser.notes += [note for note in notes if note not in parser.notes]

    return Flags(add)


def embedding(*shown: str) -> Flags:
    """Return the settings of the embedding model."""
    return topic("embedding model", "embedding", shown=shown)


def answering(*shown: str) -> Flags:
    """Return the settings of the language model that answers; those not `shown` are rare."""

    def add(parser: CommandParser) -> None:
        group = parser.group("language model")
        _add_settings(group, shown)
        rest = [name for name in ("llm", "answer_llm", "llm_context") if name not in shown]
        _add_settings(group, rest, rare=True)

    return Flags(add)


def _freshness(parser: CommandParser) -> None:
    group = parser.add_mutually_exclusive_group()
    for flag, value, text in (
        ("--fresh", "always", "first index files that have changed, however long it takes"),
        ("--stale", "never", "do not check whether files have changed"),
    ):
        group.add_argument(flag, dest="set_refresh", action="store_const", const=value, help=text)


FRESHNESS: Final = Flags(_freshness)
"""The flags `--fresh` and `--stale`."""
EMBEDDER: Final = settings("embedder", title="embedding model", rare=True)
READING: Final = topic("extraction by a language model (--llm)", "reading", but=("llm",))
RUNNING: Final = topic("running", "running")
WHAT_TO_BUILD: Final = topic(
    "what to build", "build", shown=("system", "modes", "embedder", "llm", "chunk_tokens", "language")
)


def _add_settings(
    group: Any, names: Collection[str], *, rare: bool = False, about: str | None = None
) -> None:
    for name in names:
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
        action.rare = rare


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


def choices_of_system() -> list[str]:
    """Return two lines: the systems that `--system` takes, and the presets."""
    owners = systems().preset_owners
    main = [name for name, owner in owners.items() if name in (owner, "default")]
    presets = [name for name in owners if name not in main]
    return [f"systems: {', '.join(main)}", f"presets: {', '.join(presets)}"]
