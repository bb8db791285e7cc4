"""Which Rust crate and module may use which: the table of ARCHITECTURE.md, read from the `use` lines and
paths, without compiling."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PATH = re.compile(r"(?<![\w:])(?:crate|self|super)(?:::\w+)+")
USE = re.compile(r"(?<!\w)(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
INNER = re.compile(r"(?<!\w)mod\s+\w+\s*\{")
ATTRIBUTE = re.compile(r"\s*#\[[^\]]*\]")


@dataclass
class Module:
    """One file of a crate: its names of modules, and what it passes on by `pub use`."""

    path: Path
    name: tuple[str, ...]
    code: str
    passed_on: dict[str, list[str]] = field(default_factory=dict)
    """Names that are re-exported, and the paths that they stand for."""


def is_test(path: Path) -> bool:
    """Whether a file is compiled for tests alone."""
    return path.stem.endswith("tests") or path.stem == "testing"


def plain_code(text: str) -> str:
    """The code without comments, strings and what is compiled for tests alone."""
    text = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', _emptied, text, flags=re.DOTALL)
    while (at := text.find("#[cfg(test)]")) >= 0:
        text = text[:at] + text[_end_of_item(text, at + len("#[cfg(test)]")) :]
    return text


def _emptied(match: re.Match[str]) -> str:
    return '""' if match.group().startswith('"') else ""


def _end_of_item(text: str, at: int) -> int:
    """The end of an item: its semicolon, or the brace that closes it."""
    while attribute := ATTRIBUTE.match(text, at):
        at = attribute.end()
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] in "{([") - (text[place] in "})]")
        if depth == 0 and (text[place] == ";" or text[place] == "}"):
            return place + 1
    return len(text)


def expanded(tree: str) -> Iterator[tuple[list[str], str]]:
    """Each path of a use tree, and the name that it gets: `a::{b, c as d}` is a::b as b, and a::c as d."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        path, _, name = tree.partition(" as ")
        parts = [part.strip() for part in path.split("::") if part.strip()]
        if len(parts) > 1 and parts[-1] == "self":
            parts = parts[:-1]
        if parts:
            yield parts, name.strip() or parts[-1]
        return
    before = [part.strip() for part in head.split("::") if part.strip()]
    inner, depth, start = rest.rsplit("}", 1)[0], 0, 0
    for place, character in enumerate(inner + ","):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            for parts, name in expanded(inner[start:place]):
                own = parts == ["self"]
                yield [*before, *([] if own else parts)], before[-1] if own and name == "self" else name
            start = place + 1


class Crate:
    """The modules of a crate by name, and their uses of each other and of other crates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: dict[tuple[str, ...], Module] = {}
        for path in sorted(folder.rglob("*.rs")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = parts[:-1] if parts[-1] in ("lib", "mod") else parts
            if not is_test(path):
                self.modules[name] = Module(path, name, plain_code(path.read_text("utf-8")))
        for module in self.modules.values():
            for public, tree in USE.findall(module.code):
                if public:
                    module.passed_on |= {name: parts for parts, name in expanded(tree)}
            if module.name == ():
                # At the root, names of other crates hold in the whole crate: `use ketrag_text as text;`.
                for _, tree in USE.findall(module.code):
                    module.passed_on |= {name: parts for parts, name in expanded(tree)}

    def uses(self, module: Module) -> Iterator[tuple[str, ...]]:
        """Names of the modules that a file uses; of other crates as ("::", crate, module)."""
        code, seen = module.code, list[list[str]]()
        inner = [found.span() for found in INNER.finditer(code)]
        ends = [(start, _end_of_item(code, end - 1)) for start, end in inner]

        def outwards(parts: list[str], at: int) -> list[str]:
            """A path as the file itself would write it: `super` in a module of the file leads to the file."""
            for _ in range(sum(start < at < end for start, end in ends)):
                if parts[0] not in ("self", "super"):
                    break
                parts = parts[1:] if parts[0] == "super" else ["self"]
                parts = parts or ["self"]
                if parts[0] != "super":
                    parts = ["self", *parts]
            return parts

        for found in USE.finditer(code):
            if not found[1]:
                seen += [outwards(parts, found.start()) for parts, _ in expanded(found[2])]
        rest = USE.sub(lambda found: " " * len(found[0]), code)
        seen += [outwards(found[0].split("::"), found.start()) for found in PATH.finditer(rest)]
        children = [name[-1] for name in self.modules if name and name[:-1] == module.name]
        seen += [[child, "_"] for child in children if re.search(rf"(?<![\w:]){child}::", rest)]
        for parts in seen:
            used = self.resolve(module.name, parts)
            if used is not None and used != module.name:
                yield used

    def resolve(self, here: tuple[str, ...], parts: list[str], depth: int = 0) -> tuple[str, ...] | None:
        """The module that a path leads to, through whatever passes its names on."""
        at, parts = list(here), list(parts)
        first = parts[0]
        if first == "crate":
            at, parts = [], parts[1:]
        elif first == "self":
            parts = parts[1:]
        elif first == "super":
            while parts and parts[0] == "super":
                at, parts = at[:-1], parts[1:]
        elif first.startswith("ketrag_"):
            return ("::", *parts[:2])
        elif (*here, first) not in self.modules:
            return None  # the standard library, a dependency, or a name of the file itself
        while parts and (*at, parts[0]) in self.modules:
            at, parts = [*at, parts[0]], parts[1:]
        passed_on = self.modules[tuple(at)].passed_on
        if parts and parts[0] in passed_on and depth < 9:
            return self.resolve(tuple(at), [*passed_on[parts[0]], *parts[1:]], depth + 1)
        return tuple(at)


def circles(uses: dict[tuple[str, ...], set[tuple[str, ...]]]) -> list[tuple[str, ...]]:
    """The modules that are left when those are taken away, again and again, that use none of the others."""
    left = {name: used & uses.keys() for name, used in uses.items()}
    while free := [name for name, used in left.items() if not used & left.keys()]:
        for name in free:
            del left[name]
    # Those that nobody uses among them only stand on a circle.
    while top := [name for name in left if not any(name in used for used in left.values())]:
        for name in top:
            del left[name]
    return sorted(left)


ROOT = Path(__file__).parents[1]
RUST = ROOT / "rust"

CRATES: dict[str, set[str]] = {
    "base": set(),
    "text": {"base"},
    # From the characters of a page to its paragraphs.
    "layout": {"base", "text"},
    # From the serialised body of a page to its main text.
    "web": {"text"},
    "encode": {"base", "text"},
    # The core does not know the encoder: a change of one does not compile the other again.
    "core": {"base", "text"},
    # The published systems. Nothing but the bindings knows them, and these only by a feature.
    "papers": {"base", "text", "encode", "core"},
    # It knows HTTP and JSON; what answers is a trait.
    "serve": {"base"},
    "py": {"base", "text", "layout", "web", "encode", "core", "papers", "serve"},
    "module": {"py"},
}
"""The crates that each crate may use."""

LOW = {"cpu", "error", "guard", "items", "memory", "reserve"}
LEAVES = {"vector", "tokens"}
PARTS: dict[str, dict[str, set[str]]] = {
    "base": {
        "beneath": set(),
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
        "shards": LEAVES | {"rank", "search", "generation", "channels", "assemble"},
    },
}
"""Of crates with layers inside: each part at the root, and the parts that it may use."""


@functools.cache
def crate(name: str) -> Crate:
    return Crate(RUST / name / "src")


def test_the_published_systems_are_a_feature_of_one_module() -> None:
    manifest = tomllib.loads((RUST / "py" / "Cargo.toml").read_text("utf-8"))
    assert manifest["dependencies"]["ketrag-papers"] == {"workspace": True, "optional": True}
    assert manifest["features"] == {"default": ["papers"], "papers": ["dep:ketrag-papers"]}
    root = (RUST / "py" / "src" / "lib.rs").read_text("utf-8")
    exports = re.findall(r".*\n.*\n.*papers::\w+::", root)
    assert len(exports) > 3
    assert all('#[cfg(feature = "papers")]' in lines for lines in exports)
    users = [module.name for module in crate("py").modules.values() if "ketrag_papers" in module.code]
    assert {name[0] for name in users} == {"extensions", "papers"}


def test_the_tables_name_what_there_is() -> None:
    folders = {path.parent.name for path in RUST.glob("*/Cargo.toml")}
    assert folders == CRATES.keys()
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]
    assert {f"rust/{name}" for name in CRATES} == set(workspace["members"])
    assert {f"rust/{name}" for name in CRATES.keys() - {"py", "module"}} == set(workspace["default-members"])
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
    if name not in {"py", "module"}:
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
    assert name == "module" or sum(map(len, uses.values())) > 10  # they are read at all
    found = circles(uses)
    assert not found, f"files of rust/{name} use each other: {['::'.join(module) for module in found]}"
