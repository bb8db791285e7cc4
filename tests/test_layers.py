"""Who may import whom in the Python package, read from the imports. ARCHITECTURE.md explains the layers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "ketrag_fast"

# From the bottom up. A part may import the parts of lower layers, and no part of its own layer but itself.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"records"}),
    frozenset({"_core", "secrets", "types"}),
    frozenset({"errors"}),
    frozenset({"base", "kernels"}),
    frozenset({"storage", "readers"}),
    frozenset({"models"}),
    frozenset({"systems"}),
    # Queries never build, and builds never query.
    frozenset({"building", "query", "extending"}),
    frozenset({"index"}),
    frozenset({"page"}),
    frozenset({"eval", "interchange", "ray"}),
    frozenset({"apps"}),
    # `python -m ketrag_fast` is the command.
    frozenset({"__main__"}),
)
LAYER = {part: level for level, parts in enumerate(LAYERS) for part in parts}
# The package itself hands out public names of any layer, when they are first used.
FACADE = ""
# The command and the server use `Index` as any program does.
BEHIND_THE_INDEX = {"storage", "building", "_core"}
# Systems and shared stages are plug-ins: they must not know each other.
STRANGERS = ("systems",)
# The published systems are strangers to each other, and their package lists them. Nothing else imports it.
PAPERS = "papers"
SHARED = {"spec", "shared", "registry", "planning", "index_settings"}


@cache
def modules() -> Mapping[str, Path]:
    """The modules of the package by their names below it; the package itself is the empty name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path.read_bytes())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module."""
    return tuple(ast.walk(tree(path)))


def imported(name: str, path: Path) -> Iterator[str]:
    """The modules of the package that a module imports, those for type checking included."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for full in names:
            if full.split(".")[0] != "ketrag_fast":
                continue
            target = full.removeprefix("ketrag_fast").lstrip(".")
            while target and target not in modules() and target.split(".")[0] != "_core":
                target = target.rpartition(".")[0]
            target = "_core" if target.split(".")[0] == "_core" else target
            if target != name:
                yield target


@cache
def graph() -> Mapping[str, frozenset[str]]:
    """For each module the modules that it imports."""
    return {name: frozenset(imported(name, path)) for name, path in modules().items()}


def part_of(module: str) -> str:
    return module.split(".")[0]


def system_of(module: str) -> str:
    """The part of a package of plug-ins to which a module belongs: `walk`, `spec`, `papers.noderag`."""
    _, inner, deeper, *_ = [*module.split("."), "", ""]
    return f"{inner}.{deeper}".rstrip(".") if inner == PAPERS else inner


def is_allowed(module: str, target: str) -> bool:
    """Whether the table lets `module` import `target`."""
    part, other = part_of(module), part_of(target)
    if module == FACADE:
        return True
    if part == other:
        if part not in STRANGERS:
            return True
        inner, wanted = system_of(module), system_of(target)
        return inner in (wanted, PAPERS) or wanted in SHARED or not inner
    if other == FACADE:  # for the version
        return part == "apps"
    if part == "apps" and other in BEHIND_THE_INDEX:
        return False
    return LAYER[other] < LAYER[part]


def test_the_table_names_the_parts_that_exist() -> None:
    on_disk = {part_of(name) for name in modules() if name} | {"_core"}
    assert on_disk == set(LAYER)
    assert {
        part_of(name.removeprefix("systems.")) for name in modules() if name.startswith("systems.")
    } >= SHARED


@pytest.mark.parametrize("module", sorted(modules()), ids=lambda name: name or "ketrag_fast")
def test_imports_point_downwards(module: str) -> None:
    wrong = sorted(target for target in graph()[module] if not is_allowed(module, target))
    assert not wrong, f"{module} must not import {', '.join(wrong)}"


def test_the_server_imports_nothing_of_the_command() -> None:
    """Not even text for a terminal: `apps.terminal` has what both print."""
    server = {name: targets for name, targets in graph().items() if name.startswith("apps.server")}
    assert server
    assert not [
        (name, one) for name, targets in server.items() for one in targets if one.startswith("apps.cli")
    ]


def test_no_module_imports_one_that_imports_it() -> None:
    waiting = {name: set(targets) & modules().keys() for name, targets in graph().items()}
    while waiting:
        free = [name for name, targets in waiting.items() if not targets & waiting.keys()]
        assert free, f"these modules import each other: {sorted(waiting)}"
        for name in free:
            del waiting[name]


def test_nothing_dangerous_is_imported_or_called() -> None:
    for path in modules().values():
        for node in nodes(path):
            if isinstance(node, ast.Import):
                assert not {a.name for a in node.names} & {"pickle", "marshal", "shelve"}, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), path
            if isinstance(node, ast.keyword) and node.arg in ("shell", "allow_pickle"):
                assert isinstance(node.value, ast.Constant), path
                assert node.value.value is False, path
