"""How many arguments a function of the package takes by position."""

from __future__ import annotations

import ast

from tests.test_layers import modules, nodes

MOST = 6


def test_no_function_takes_more_than_six_arguments_by_position() -> None:
    found = set()
    for module, path in modules().items():
        for node in nodes(path):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
                if len(names) - (names[:1] in (["self"], ["cls"])) > MOST:
                    found.add(f"{module}.{node.name}")
    assert not found
