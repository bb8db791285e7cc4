"""Which Rust crate and module may use which: the table of ARCHITECTURE.md, read from the `use` lines."""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path

import pytest

from tests.support.rust_uses import Crate, circles

ROOT = Path(__file__).parents[1]
RUST = ROOT / "rust"

CRATES: dict[str, set[str]] = {
    "base": set(),
    "text": {"base"},
    # From the characters of a page to its paragraphs.
    "layout": {"base", "text"},
    # From the serialised body of a page to its main text.
    "web": set(),
    "encode": {"base", "text"},
    # The core does not know the encoder: a change of one does not compile the other again.
    "core": {"base", "text"},
    # It knows HTTP and JSON; what answers is a trait.
    "serve": {"base"},
    "py": {"base", "text", "layout", "web", "encode", "core", "serve"},
}
"""The crates that each crate may use."""

LOW = {"cpu", "error", "guard", "items", "memory", "reserve"}
LEAVES = {"vector", "tables", "tokens"}
PARTS: dict[str, dict[str, set[str]]] = {
    "base": {
        "cpu": set(),
        "error": set(),
        "guard": {"error"},
        "items": {"error", "guard"},
        "memory": {"error"},
        "reserve": {"error"},
        "progress": {"error", "reserve"},
        "parallel": {"error", "progress"},
        "tiles": {"cpu"},
        "windows": set(),
        "sparse": LOW,
        "store": LOW | {"progress", "parallel"},
    },
    "core": {
        "vector": set(),
        "tables": set(),
        "tokens": set(),
        # Ranking never knows the builders of graphs; they may lay out what it reads.
        "rank": LEAVES,
        "search": LEAVES | {"rank"},
        "graph": LEAVES | {"rank"},
        "embed": LEAVES,
        # On top, beside nothing: whole questions over whole generations.
        "generation": LEAVES | {"rank", "search", "graph", "embed"},
        "channels": LEAVES | {"rank", "search", "generation"},
        # From recipes to contexts, by channels of any kind.
        "assemble": LEAVES | {"rank", "search", "generation", "channels"},
    },
}
"""Of crates with layers inside: each part at the root, and the parts that it may use."""


@functools.cache
def crate(name: str) -> Crate:
    return Crate(RUST / name / "src")


def test_the_tables_name_what_there_is() -> None:
    folders = {path.parent.name for path in RUST.glob("*/Cargo.toml")}
    assert folders == CRATES.keys()
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]
    assert {f"rust/{name}" for name in CRATES} == set(workspace["members"])
    assert {f"rust/{name}" for name in CRATES.keys() - {"py"}} == set(workspace["default-members"])
    for name, parts in PARTS.items():
        found = {module[0] for module in crate(name).modules if module}
        assert parts.keys() == found, f"rust/{name}: the table and the folder differ"
        assert set().union(*parts.values()) <= found, f"rust/{name}: the table allows what does not exist"


@pytest.mark.parametrize("name", CRATES)
def test_crates(name: str) -> None:
    wanted = {f"ketrag-{other}" for other in CRATES[name]}
    manifest = tomllib.loads((RUST / name / "Cargo.toml").read_text("utf-8"))
    declared = {other for other in manifest["dependencies"] if other.startswith("ketrag-")}
    assert declared <= wanted, f"rust/{name} may not depend on {sorted(declared - wanted)}"
    code = "".join(module.code for module in crate(name).modules.values())
    if name != "py":
        assert not re.search(r"\bpyo3\b", code), "only rust/py knows Python"
        assert "#[global_allocator]" not in code, "a library does not choose the allocator of its users"


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    wrong = [
        f"{module.path.relative_to(ROOT)} may not use {'::'.join(used)}"
        for module in crate(name).modules.values()
        for used in crate(name).uses(module)
        if module.name and used and used[0] not in {"::", module.name[0]} | PARTS[name][module.name[0]]
    ]
    assert not wrong


@pytest.mark.parametrize("name", CRATES)
def test_no_two_files_use_each_other(name: str) -> None:
    uses = {module.name: set(crate(name).uses(module)) for module in crate(name).modules.values()}
    assert sum(map(len, uses.values())) > 10  # they are read at all
    found = circles(uses)
    assert not found, f"files of rust/{name} use each other: {['::'.join(module) for module in found]}"
