"""Which file of a Rust crate uses which: read from `use` declarations and paths, without compiling."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

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
