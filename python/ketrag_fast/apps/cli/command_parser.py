"""The parser of the command line: short and full help, examples, and suggestions for misspelt options."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any, Final, NoReturn

from ketrag_fast.apps.terminal import columns_of_terminal, inline

COMMON: Final = "common options"
"""Title of the options that every command takes; help lists them last."""
_WIDEST: Final = 100
_ALIKE: Final = 0.7
"""Minimum similarity of an unknown option to the suggested one."""
_TEXTS: Final = ("QUERY", "QUESTION", "PATTERN", "NAME")
"""Placeholders of arguments that are free text."""
_MORE: Final = "`%s --help` lists all options, `ketrag config list` all settings (-o NAME=VALUE)"


class _Formatter(argparse.HelpFormatter):
    """Two columns in a width of up to 100 characters."""

    def __init__(self, prog: str, **_: Any) -> None:
        width = min(columns_of_terminal(), _WIDEST)
        super().__init__(prog, max_help_position=29, width=max(width, 60))

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(" ".join(text.split()), width, break_on_hyphens=False)  # specs must not be split


class _HelpAction(argparse.Action):
    """`-h` prints the short help, `--help` all of it."""

    def __call__(
        self, parser: argparse.ArgumentParser, _values: Any, _extra: Any, option_string: str | None = None
    ) -> None:
        assert isinstance(parser, CommandParser)  # noqa: S101 - argparse passes the parser that owns the action
        sys.stdout.write(parser.format_help() if option_string == "--help" else parser.format_short_help())
        parser.exit()


class CommandParser(argparse.ArgumentParser):
    """A parser whose `-h` shows the common options and whose `--help` shows all of them.

    `examples` are commands that the help ends with. `more` are rows (NAME=VALUE, help) of settings that have
    no flag, `notes` further lines of the full help. Usage errors escape control characters, because they echo
    user input.
    """

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        with_help = kwargs.pop("add_help", True)
        kwargs = {"formatter_class": _Formatter, **kwargs, "add_help": False}
        kwargs["allow_abbrev"] = False  # a script would break when a new option makes a prefix ambiguous
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.more: list[tuple[str, str]] = []
        self.notes: list[str] = []
        self._words: tuple[str, ...] = ()
        if with_help:
            self.add_argument(
                "-h",
                "--help",
                action=_HelpAction,
                nargs=0,
                help="print the common options (-h) or all (--help)",
            )

    def group(self, title: str) -> Any:
        """Return the group of options with a title, which is added if it is new; the parser without one."""
        known = {group.title: group for group in self._action_groups}
        return known.get(title) or self.add_argument_group(title) if title else self

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse as argparse does, and keep the arguments for hints."""
        self._words = tuple(args or ())
        return super().parse_known_args(args, namespace)

    def format_usage(self) -> str:
        """Return the usage line: required arguments, then `[options]`."""
        formatter = _Formatter(self.prog)
        words = [self.prog]
        for action in self._actions:
            if action.help == argparse.SUPPRESS:
                continue
            if not action.option_strings:
                default = str(action.metavar or action.dest)
                words.append(formatter._format_args(action, default))
            elif action.required:
                words.append(f"{action.option_strings[-1]} {action.metavar}")
        return f"usage: {' '.join(words)} [options]\n"

    def format_help(self) -> str:
        """Return the full help."""
        formatter = self._get_formatter()
        formatter.add_text(self.description)
        for group in sorted(self._action_groups, key=lambda group: group.title == COMMON):
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        if self.more:
            formatter.start_section("settings without a flag (-o NAME=VALUE)")
            formatter.add_arguments(
                [argparse.Action([], name, metavar=name, help=text) for name, text in self.more]
            )
            formatter.end_section()
        return self._finish(formatter, self.notes)

    def format_short_help(self) -> str:
        """Return the help with the common options only."""
        formatter = self._get_formatter()
        formatter.add_text(self.description)
        shown = [action for action in self._actions if not getattr(action, "rare", False)]
        common = [a for group in self._action_groups if group.title == COMMON for a in group._group_actions]
        shown.sort(key=lambda action: (action in common or action.dest == "help", action.dest == "help"))
        for title, actions in (
            ("arguments", [action for action in shown if not action.option_strings]),
            ("options", [action for action in shown if action.option_strings]),
        ):
            formatter.start_section(title)
            formatter.add_arguments(actions)
            formatter.end_section()
        hidden = len(shown) < len(self._actions) or bool(self.more)
        return self._finish(formatter, [_MORE % self.prog] if hidden else [])

    def _finish(self, formatter: argparse.HelpFormatter, notes: Sequence[str]) -> str:
        text = self.format_usage() + "\n" + formatter.format_help()
        if self.examples:
            text += "\nexamples:\n" + "".join(f"  {line}\n" for line in self.examples)
        closing = [*notes, self.epilog] if self.epilog else list(notes)
        return text + ("\n" + "\n".join(closing) + "\n" if closing else "")

    def error(self, message: str, hint: str = "") -> NoReturn:
        """Print usage, error and hint; exit with 2."""
        sys.stderr.write(inline(self.format_usage().rstrip("\n")) + "\n")
        message, near = _plain(message)
        hint = hint or near or self._dash_hint(message) or f"{self.prog} -h"
        sys.stderr.write(f"ketrag: error: {inline(message)}\nhint: {inline(hint)}\n")
        sys.exit(2)

    def reject(self, words: Sequence[str]) -> NoReturn:
        """Report an argument that the command does not take; exit with 2."""
        word = words[0]
        if not word.startswith("-") or word == "-":
            self.error(f"unexpected argument {word!r}", self._path_hint(word) or self._quoting_hint())
        flag = word.partition("=")[0]
        from ketrag_fast.base.config import catalogue

        name = flag.lstrip("-").replace("-", "_")
        if name in catalogue():
            self.error(f"{flag} is not an option of `{self.prog}`", f"give the setting as -o {name}=VALUE")
        # Compare without dashes, which would make any two short options similar.
        known = {setting.replace("_", "-"): f"-o {setting}=VALUE" for setting in catalogue()}
        known.update((option.lstrip("-"), option) for option in self._option_string_actions)
        if "--" in self._words and flag in self._option_string_actions:
            at = self._words.index("--")
            before = " ".join(map(_quote, self._words[at + 1 : at + 2]))
            given = " ".join(map(_quote, [word, *words[1:]]))
            self.error(
                f"{flag} follows --, after which every argument is text",
                f"options come before --: {self.prog} {given} -- {before}".rstrip(),
            )
        near = closest(flag.lstrip("-"), known, _ALIKE)
        if near:
            self.error(f"unknown option {flag}", f"did you mean {known[near]}?")
        optional = (str(action.metavar) for action in self._actions if action.nargs == "?")
        text = next((name for name in optional if name in _TEXTS), "")
        self.error(f"unknown option {flag}", self._dash_hint(f"arguments are required: {text}"))

    def _dash_hint(self, message: str) -> str:
        """Return a hint to put `--` before text that begins with `-`, if that is the likely mistake."""
        missing = message.partition("arguments are required: ")[2]
        known = self._option_string_actions
        word = next((one for one in self._words if one[:1] == "-" and one.partition("=")[0] not in known), "")
        if missing not in _TEXTS or not word or word == "--":
            return ""
        return f"a {missing} that begins with - follows --: {self.prog} -- {_quote(word)}"

    def _path_hint(self, word: str) -> str:
        """Return a hint about indexes if a word is an existing path; empty for other words."""
        flag = self._option_string_actions.get("--index")
        if flag is None or not os.path.exists(word):  # noqa: PTH110 - Path raises for long texts
            return ""
        path = _quote(word)
        return f"--index {path} names an index; `ketrag index {path}` builds one from files"

    def _quoting_hint(self) -> str:
        """Return a hint to quote text of several words; empty if the command takes no text."""
        flag = self._option_string_actions.get("-i")
        if flag is not None and flag.nargs == 0 and "-i" in self._words:  # elsewhere -i names the index
            return f"{flag.option_strings[-1]} is -i in this command; --index names the index"
        names = [str(action.metavar) for action in self._actions if not action.option_strings]
        text = next((name for name in names if name in _TEXTS), None)
        return f'put a {text} of several words in quotes: {self.prog} "{text}"' if text else ""


def _plain(message: str) -> tuple[str, str]:
    """Rewrite an argparse message in the style of other errors; also return a hint if a known name is
    similar."""
    where, _, value = message.partition(": invalid int value: ")
    if value:
        return f"{where}: {value} is not a whole number", ""
    where, _, rest = message.partition(": invalid choice: ")
    value, _, choices = rest.rpartition(" (choose from ")
    if not value:
        return message, ""
    names = [name.strip("'") for name in choices.removesuffix(")").split(", ")]
    return f"{where}: {value} is not one of {', '.join(names)}", suggestion(value.strip("'"), names)


def closest(word: str, names: Iterable[str], alike: float = 0.6) -> str | None:
    """Return the name most similar to a misspelt one; None if no similarity reaches `alike`."""
    from difflib import get_close_matches  # imported here, because `-h` does not need it

    return next(iter(get_close_matches(word, list(names), 1, alike)), None)


def suggestion(word: str, names: Iterable[str]) -> str:
    """Return a hint with the closest name, or an empty text."""
    near = closest(word, names)
    return f"did you mean {near}?" if near else ""


def _quote(word: str) -> str:
    from shlex import quote  # only errors need it

    return quote(word)
