"""`ketrag completion SHELL`: a completion script, generated from the declarations of the commands."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import Final

from ketrag_fast.apps.cli import output
from ketrag_fast.apps.cli.command import Command, argument
from ketrag_fast.apps.cli.command_parser import CommandParser
from ketrag_fast.base.config import catalogue
from ketrag_fast.base.config.settings import systems

_BASH: Final = """# bash completion of ketrag
_ketrag() {{
    local cur prev command word
    cur="${{COMP_WORDS[COMP_CWORD]}}"
    prev="${{COMP_WORDS[COMP_CWORD-1]}}"
    command=""
    for word in "${{COMP_WORDS[@]:1:$((COMP_CWORD-1))}}"; do
        case "$command $word" in
            {commands}) command="${{command:+$command }}$word" ;;
        esac
    done
    if [ "$prev" = -o ]; then
        COMPREPLY=( $(compgen -S = -W "{settings}" -- "$cur") )
        return
    fi
    case "$command $prev" in
{values}
    esac
    case "$command" in
{options}
    esac
    case "$cur" in
        -*) ;;
        *) COMPREPLY+=( $(compgen -f -- "$cur") ) ;;
    esac
}}
complete -o nospace -F _ketrag ketrag 2>/dev/null || complete -F _ketrag ketrag
"""
_ZSH: Final = """# zsh completion of ketrag, to be sourced in ~/.zshrc
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
autoload -Uz bashcompinit && bashcompinit
"""


class Completion(Command):
    """Print a completion script for a shell: commands, options, choices, modes, presets, settings."""

    examples = (
        "ketrag completion bash > ~/.local/share/bash-completion/completions/ketrag",
        "ketrag completion zsh > ~/.ketrag-completion.zsh    # and source it in ~/.zshrc",
        "ketrag completion fish > ~/.config/fish/completions/ketrag.fish",
    )
    shell: str = argument(None, "shell to complete in", choices=("bash", "zsh", "fish"))

    def run(self) -> int:
        """Print the script."""
        from ketrag_fast.apps.cli.main import parser

        commands = dict(walk_commands(parser()))
        if self.shell == "fish":
            output.write(_fish(commands))
        else:
            output.write((_ZSH if self.shell == "zsh" else "") + _bash(commands).rstrip("\n"))
        return 0


def walk_commands(parser: CommandParser, path: str = "") -> Iterator[tuple[str, CommandParser]]:
    """Yield (command line, parser) of a parser and all its sub-commands; "" is `ketrag` itself."""
    yield path, parser
    for name, inner in sub_commands(parser).items():
        yield from walk_commands(inner, f"{path} {name}".strip())


def sub_commands(parser: CommandParser) -> dict[str, CommandParser]:
    """Return the sub-commands of a parser by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def values_of(action: argparse.Action) -> list[str]:
    """Return the values that an option or argument takes, if they can be listed."""
    if action.choices is not None and not isinstance(action, argparse._SubParsersAction):
        return [str(choice) for choice in action.choices]
    spec = catalogue().get(action.dest.removeprefix("set_"))
    if spec is not None and action.dest.startswith("set_"):
        return list(spec.choices or systems().listed.get(spec.name, ()))
    if action.dest == "mode":
        return list(catalogue()["mode"].choices)
    return []


def _bash(commands: dict[str, CommandParser]) -> str:
    values, options = [], []
    for path, parser in commands.items():
        words = [*sub_commands(parser)]
        for action in parser._actions:
            words += action.option_strings or values_of(action)
            if action.option_strings and (listed := values_of(action)):
                patterns = "|".join(f'"{path} {flag}"' for flag in action.option_strings)
                reply = f'COMPREPLY=( $(compgen -W "{" ".join(listed)}" -- "$cur") ); return'
                values.append(f"        {patterns}) {reply} ;;")
        reply = f'COMPREPLY=( $(compgen -W "{" ".join(words)}" -- "$cur") )'
        options.append(f'        "{path}") {reply} ;;')
    known = [f'"{path.rpartition(" ")[0]} {path.rpartition(" ")[2]}"' for path in commands if path]
    return _BASH.format(
        commands="|".join(known),
        settings=" ".join(catalogue()),
        values="\n".join(values),
        options="\n".join(options),
    )


def _fish(commands: dict[str, CommandParser]) -> str:
    lines = ["# fish completion of ketrag"]
    for path, parser in commands.items():
        where = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path.split())
        unseen = f"not __fish_seen_subcommand_from {' '.join(sub_commands(parser))}"
        here = f"{where}; and {unseen}" if where else unseen
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                lines += [
                    f"complete -c ketrag -n {shlex.quote(here)} -f -a {one.dest} -d {_quote(one.help)}"
                    for one in action._choices_actions
                ]
            elif where and action.option_strings:
                lines.append(f"complete -c ketrag -n {shlex.quote(where)} {_fish_option(action)}")
            elif where and (listed := values_of(action)):
                lines.append(
                    f"complete -c ketrag -n {shlex.quote(where)} -f -a {shlex.quote(' '.join(listed))}"
                )
    return "\n".join(lines)


def _fish_option(action: argparse.Action) -> str:
    flags = [f"-l {flag[2:]}" if flag[1] == "-" else f"-s {flag[1]}" for flag in action.option_strings]
    listed = values_of(action)
    if action.dest == "assignments":
        listed = [f"{name}=" for name in catalogue()]
    value = "" if action.nargs == 0 else f" -x -a {shlex.quote(' '.join(listed))}" if listed else " -r"
    return f"{' '.join(flags)}{value} -d {_quote(action.help)}"


def _quote(text: str | None) -> str:
    return shlex.quote((text or "").replace("%%", "%"))
