"""Who may import whom: the table of ARCHITECTURE.md, read from the imports themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / "python" / "ketrag_fast"

P0 = {"keys", "errors", "memory", "locations", "types", "filters", "progress", "regular", "config"}
P1 = {"storage", "backends", "tasks", "extraction"}
P2 = {"stages", "channels"}
KERNELS = {"_core", "kernels"}
LOWER = P0 | P1 | P2 | KERNELS | {"declarations", "systems"}

# Each part of the package, and the parts that it may import besides itself.
PARTS: dict[str, set[str]] = {
    "keys": set(),
    "errors": {"keys"},
    "memory": {"errors"},
    # Where passages stand in their sources: plain values.
    "locations": set(),
    "types": {"errors", "locations"},
    # Over metadata as plain values.
    "filters": {"errors"},
    "progress": {"errors", "types"},
    # Reads a small file that may be a pipe or a device.
    "regular": set(),
    "config": P0,
    "kernels": P0 | {"_core"},
    # The oracle of the walk takes words as the index cut them, as it takes the arrays.
    "reference": {"errors", "_core"},
    "storage": P0 | KERNELS,
    # Vectors are kept in a table of the storage's; a full disk is the same error everywhere.
    "backends": P0 | KERNELS | {"storage.vectors", "storage.faults"},
    # What is asked of language models, whatever it is about: it knows texts, and no index.
    "tasks": P0 | KERNELS | {"storage", "backends"},
    "extraction": P0 | KERNELS | {"storage", "backends", "tasks"},
    # From a context to an answer: it asks models and knows no index.
    "asking": P0 | {"backends", "tasks"},
    # What a system says about itself: no work, and no system by name.
    "declarations": P0 | P1,
    # What packages with systems of their own import: names of what is above them, and packed strings.
    "extending": P0 | {"declarations", "kernels"},
    "stages": P0 | P1 | KERNELS | {"declarations"},
    "channels": P0 | P1 | KERNELS,
    "systems": P0 | P1 | P2 | KERNELS | {"declarations"},
    "pipeline": LOWER,
    "statistics": LOWER | {"pipeline"},
    "explain": P0 | KERNELS | {"storage"},
    "hyde": P0 | {"backends", "tasks"},
    # One question over one opened generation, to its answer.
    "querying": LOWER
    | {"pipeline.known", "pipeline.planning", "pipeline.endpoints", "explain", "hyde", "asking"},
    # What an opened index tells without a question; a part of the facade.
    "allowing": LOWER | {"pipeline.allowed", "querying"},
    "contents": LOWER | {"pipeline", "statistics", "querying"},
    # Whole indexes as files and as parts of one; a part of the facade.
    "difference": LOWER | {"pipeline"},
    "carrying": LOWER | {"pipeline", "contents", "difference"},
    # Questions to an opened index; a part of the facade.
    "questions": LOWER | {"querying", "carrying", "asking"},
    "index": LOWER | {"pipeline", "statistics", "querying", "allowing", "questions"},
    # A judge of answers is a language model.
    "eval": P0 | {"index", "kernels", "backends.llms", "asking.prompt", "asking.forms", "tasks"},
    # Prices and bills know no index; a prediction builds a sample with one, by the readers of a build.
    "cost": P0 | {"index", "storage", "backends", "extraction", "pipeline", "systems.registry", "kernels"},
    # Whole builds side by side: it stands on everything that a user can reach, and computes nothing itself.
    "comparison": P0
    | {"index", "eval", "cost", "systems.registry", "pipeline.ingest", "pipeline.planning"}
    | {"backends.llms.registry"},
    # The command asks for the index; its settings are told by two tables that hold no work.
    # `ketrag models` is about models, `ketrag recording` about other results, and `ketrag doctor` about
    # an index that may not open.
    "cli": P0
    | {
        "index",
        "eval",
        "cost",
        "comparison",
        "server",
        "systems.registry",
        "pipeline.known",
        # Where queries would be sent.
        "pipeline.endpoints",
        # `ketrag read` shows what a build would read.
        "pipeline.ingest",
        "_core.__version__",
        "backends.embedders",
        "extraction.graphrag",
        "storage.health",
        "difference",
    },
    # The service stands on the index like any user's program; it computes nothing itself.
    "server": P0 | {"index", "__version__"},
    "__init__": P0 | {"index", "_core", "kernels"},
}
# Parts of which no file may import another file of the same part, but for what is no stage or system.
STRANGERS = {"stages", "systems"}
COMMON = (
    "stages.rows.",
    "stages.changes.",
    "stages.changed_units.",
    "stages.published.",
    "stages.proposals.",
)


def part_of(path: Path) -> str:
    parts = path.relative_to(PYTHON).with_suffix("").parts
    return parts[0]


def imported(path: Path) -> Iterator[str]:
    """Each name of this package that a file imports, without the package: `storage.arrays.Arrays`."""
    tree = ast.parse(path.read_bytes())
    here = path.relative_to(PYTHON.parent).with_suffix("").parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*here[: -node.level], *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (n.removeprefix("ketrag_fast.") for n in names if n.startswith("ketrag_fast."))


def allowed(part: str, path: Path, name: str) -> bool:
    target = name.split(".", 1)[0]
    if target == part:
        if part not in STRANGERS:
            return True
        own = path.relative_to(PYTHON).with_suffix("").parts
        return own[-1] == "__init__" or name.split(".")[1] == own[1] or name.startswith(COMMON)
    return any(name == good or name.startswith(f"{good}.") for good in PARTS[part])


PYTHON_FILES = sorted(PYTHON.rglob("*.py"))


@pytest.mark.parametrize("path", PYTHON_FILES, ids=lambda path: str(path.relative_to(PYTHON)))
def test_python_imports(path: Path) -> None:
    part = part_of(path)
    assert part in PARTS, f"{part} has no place in the table"
    wrong = [name for name in imported(path) if not allowed(part, path, name)]
    assert not wrong, f"{path.relative_to(ROOT)} may not import {wrong}"


@pytest.mark.parametrize(
    ("part", "name", "good"),
    [
        ("storage", "errors.IndexDamaged", True),
        ("storage", "declarations.stage.Stage", False),
        ("config", "systems.registry.registry", False),
        ("stages", "stages.embed.run", False),
        ("cli", "storage.layout.Layout", False),
        ("eval", "cli.main.main", False),
        ("errors", "types.Document", False),
    ],
)
def test_the_check_itself(part: str, name: str, good: bool) -> None:
    assert allowed(part, PYTHON / part / "some.py", name) is good


def test_nothing_dangerous_is_imported_or_called() -> None:
    for path in PYTHON_FILES:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                assert not {a.name for a in node.names} & {"pickle", "marshal", "shelve"}, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), path
            if isinstance(node, ast.keyword) and node.arg in ("shell", "allow_pickle"):
                assert isinstance(node.value, ast.Constant), path
                assert node.value.value is False, path
