"""Commands and options that messages and hints name exist."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from ketrag_fast.apps.cli.main import COMMANDS, parser
from tests.process import ROOT

PACKAGE = ROOT / "python" / "ketrag_fast"
MODULES = sorted(PACKAGE.rglob("*.py"))
COMMAND = re.compile(r"\bketrag ([a-z][a-z-]*)((?: (?:\.\.\.|[^\s`;,:()]+))*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]")
FOREIGN = re.compile(
    r"`?\b(?:uv pip|pip install|tesseract|llama-gguf-split|ray start|apt-get|cargo|git)\b[^`]*`?"
)
"""Other programs, with what follows."""


def text_of(node: ast.expr) -> str | None:
    """Return the text of a literal, with `X` for values that are put in; None for other expressions."""
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
        return "".join(map(str, parts))
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def texts(tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """Yield the texts of a module except docstrings, with their lines, and whether they are hints."""
    hints = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg == "hint"}
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = text_of(node) if isinstance(node, ast.expr) and id(node) not in skipped else None
        if text is not None:
            yield node.lineno, text, id(node) in hints
        if isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in node.values)


@cache
def whole_parser() -> Any:
    """Return the parser with all commands."""
    return parser()


def children(command: Any) -> dict[str, Any]:
    """Return the sub-commands of a parser."""
    actions = (a for a in command._actions if isinstance(a, argparse._SubParsersAction))
    return {name: inner for action in actions for name, inner in action.choices.items()}


@cache
def all_options() -> frozenset[str]:
    """Return the options of all commands."""
    todo, found = [whole_parser()], set()
    while todo:
        command = todo.pop()
        found.update(command._option_string_actions)
        todo += children(command).values()
    return frozenset(found)


def faults(text: str, *, is_hint: bool) -> Iterator[str]:
    """Yield the commands, their options, and the options in hints that the command line lacks."""
    text = FOREIGN.sub("", text)
    for name, rest in COMMAND.findall(text):
        if name not in COMMANDS:
            yield f"ketrag {name}"
            continue
        command = children(whole_parser())[name]
        for argument in rest.split():
            inner = children(command)
            if argument in inner:
                command = inner[argument]
            elif re.match(r"--?[a-z]", argument) and argument not in command._option_string_actions:
                yield f"ketrag {name} {argument}"
    if is_hint:
        yield from (option for option in OPTION.findall(text) if option not in all_options())


def test_messages_name_commands_and_options_that_exist() -> None:
    found, commands, hints = [], 0, 0
    for module in MODULES:
        for line, text, is_hint in texts(ast.parse(module.read_text("utf-8"))):
            commands += len(COMMAND.findall(text))
            hints += is_hint
            where = f"{module.relative_to(PACKAGE).as_posix()}:{line}"
            found += [f"{where}: {fault}" for fault in faults(text, is_hint=is_hint)]
    assert found == []
    assert commands > 150 and hints > 300
