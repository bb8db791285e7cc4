"""Every regular expression of the package, read from its source, and texts that are hostile to each.

Patterns are found in the syntax tree: calls of `re.compile`, `re.sub` and the like. A pattern that is put
together from constants of its module is put together here in the same way; one that is made at run time has
no constant form, and the test that uses this lists those by hand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

PACKAGE = Path(__file__).parents[2] / "python" / "ketrag_fast"
_FUNCTIONS = ("compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
_ANCHORED = frozenset(("match", "fullmatch"))
_USES = frozenset((*_FUNCTIONS[1:], "scanner"))


@dataclass(frozen=True)
class PackagePattern:
    """A pattern: where it is, and by which methods the package applies it ("search" if it is not known)."""

    module: str
    line: int
    name: str
    pattern: re.Pattern[Any]
    uses: frozenset[str]

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.name} {self.pattern.pattern!r:.60}"


@dataclass(frozen=True)
class RuntimePattern:
    """A call whose pattern is made at run time."""

    module: str
    line: int
    function: str


class _Constants(dict[str, Any]):
    """The names of a module, each evaluate from its assignment when an expression needs it."""

    def __init__(self, tree: ast.Module, module: str) -> None:
        super().__init__(re=re, tuple=tuple, map=map, frozenset=frozenset, Final=None)
        self._values: dict[str, ast.expr] = {}
        self._imports: dict[str, str] = {}
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self._values[node.targets[0].id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                self._values[node.target.id] = node.value
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ketrag_fast"):
                for one in node.names:
                    self._imports[one.asname or one.name] = f"{node.module}:{one.name}"

    def __missing__(self, name: str) -> Any:
        if name in self._values:
            self[name] = evaluate(self._values[name], self)
            return self[name]
        if name in self._imports:
            module, _, own = self._imports[name].partition(":")
            self[name] = _names(module)[own]
            return self[name]
        raise KeyError(name)


def evaluate(node: ast.expr, names: _Constants) -> Any:
    """The value of an expression over the constants of its module. NameError if it needs anything else."""
    known: dict[str, Any] = {"__builtins__": {"dict": dict}}
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            with suppress(KeyError, NameError):
                known[one.id] = names[one.id]
    return eval(compile(ast.Expression(node), "pattern", "eval"), known)


def _path(module: str) -> Path:
    base = PACKAGE.parent.joinpath(*module.split("."))
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_path(module).read_text("utf-8"))


@cache
def _names(module: str) -> _Constants:
    return _Constants(_tree(module), module)


def modules() -> list[str]:
    """The names of all modules of the package."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


def collect_patterns() -> tuple[list[PackagePattern], list[RuntimePattern]]:
    """All patterns of the package, and the calls whose patterns are made at run time."""
    uses = _uses()
    known: list[PackagePattern] = []
    unknown: list[RuntimePattern] = []
    for module in modules():
        if "import re" not in _path(module).read_text("utf-8"):
            continue
        names, covered = _names(module), set()
        for node in _tree(module).body:
            value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if value is None or not isinstance(target, ast.Name) or not any(_calls(value)):
                continue
            for pattern in _patterns(evaluate(value, names)):
                own = frozenset(uses.get((module, target.id), ("search",)))
                known.append(PackagePattern(module, node.lineno, target.id, pattern, own))
            covered |= {id(call) for call in _calls(value)}
        for function, call in _with_functions(_tree(module)):
            if id(call) in covered:
                continue
            assert isinstance(call.func, ast.Attribute)
            try:
                pattern = re.compile(evaluate(call.args[0], names), _flags(call, names))
            except NameError:
                unknown.append(RuntimePattern(module, call.lineno, function))
                continue
            use = "search" if call.func.attr == "compile" else call.func.attr
            known.append(PackagePattern(module, call.lineno, function, pattern, frozenset((use,))))
    return known, unknown


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    for call in ast.walk(node):
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == "re"
            and call.func.attr in _FUNCTIONS
        ):
            yield call


def _with_functions(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    owners: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for call in _calls(node):
                owners[id(call)] = node.name
    yield from ((owners.get(id(call), "module"), call) for call in _calls(tree))


def _flags(call: ast.Call, names: _Constants) -> int:
    assert isinstance(call.func, ast.Attribute)
    place = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(call.func.attr, 2)
    given = next((word.value for word in call.keywords if word.arg == "flags"), None)
    if given is None and len(call.args) > place:
        given = call.args[place]
    return int(evaluate(given, names)) if given is not None else 0


def _patterns(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (tuple, list, set, frozenset)):
        for one in value:
            yield from _patterns(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _patterns(one)


def _uses() -> dict[tuple[str, str], set[str]]:
    """By the module and name of a pattern, the methods that are called on it. A pattern that is handed on
    (in a tuple, as an argument) counts as searched for: that is the most expensive use.
    """
    found: dict[tuple[str, str], set[str]] = {}
    for module in modules():
        homes = {
            own.asname or own.name: (node.module or "", own.name)
            for node in _tree(module).body
            if isinstance(node, ast.ImportFrom)
            for own in node.names
        }
        called: set[int] = set()
        for node in ast.walk(_tree(module)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                called.add(id(node.value))
                if node.attr in _USES:
                    found.setdefault(homes.get(node.value.id, (module, node.value.id)), set()).add(node.attr)
        for node in ast.walk(_tree(module)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in called:
                found.setdefault(homes.get(node.id, (module, node.id)), set()).add("search")
    return found


def application_methods(found: PackagePattern) -> list[str]:
    """How a pattern is to be applied so that it takes as long as the package lets it take."""
    own = {"fullmatch" if use == "fullmatch" else "match" for use in found.uses & _ANCHORED}
    return [*sorted(own), *(["finditer"] if found.uses - _ANCHORED else [])]


# ---------------------------------------------------------------- hostile texts

_ALWAYS = " \n\ta1"


Recipe = tuple[str, str, str]


def hostile_recipes(pattern: re.Pattern[Any]) -> list[Recipe]:
    """(beginning, what is repeated, end) of texts that make a pattern try and fail as often as it can.

    For each repeat in the pattern: what leads to it, then any character of the pattern again and again, then
    an end that does not fit; and what leads to each part of the pattern, repeated as a whole.
    """
    source = pattern.pattern
    text = source.decode("latin-1") if isinstance(source, bytes) else source
    tree = parser.parse(text, pattern.flags & ~re.UNICODE if isinstance(source, bytes) else pattern.flags)
    signs = _choose({*_signs(tree)} - {*_ALWAYS}, 8) + list(_ALWAYS)
    leads = _choose((lead for lead, _ in _leads(tree)), 12)
    bodies = _choose((body for _, body in _leads(tree) if body and body not in signs), 6)
    found: dict[tuple[str, str, str], None] = {}
    for end in ("", "\n", "\0"):
        for lead in leads:
            for unit in [*signs, *bodies]:
                found[lead, unit, end] = None
    for lead in leads:
        if lead:
            found["", lead, ""] = None
            for sign in signs:
                found["", lead + sign, ""] = None
            found["", lead + " " * 30, ""] = None
    for one in signs:
        for other in (*signs, *bodies):
            found["", one + other, ""] = None
    return list(found)


def _choose(texts: Iterable[str], most: int) -> list[str]:
    """At most so many of the texts, spread over all of them, the longest and the shortest among them."""
    every = sorted(dict.fromkeys(texts), key=lambda text: (len(text), text))
    if len(every) <= most:
        return every
    return [every[round(place * (len(every) - 1) / (most - 1))] for place in range(most)]


def _leads(tree: Any, lead: str = "") -> Iterator[tuple[str, str]]:
    """(a shortest text that leads to a part of the pattern, a shortest text that the part repeats)."""
    for code, value in tree:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            least, _, inner = value
            yield lead, _shortest(inner)
            yield from _leads(inner, lead)
            lead += _shortest(inner) * max(min(least, 4), 0)
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield lead, ""
                yield from _leads(branch, lead)
            lead += _shortest(value[1][0])
        elif code in (codes.SUBPATTERN, codes.ATOMIC_GROUP):
            inner = value[-1] if code is codes.SUBPATTERN else value
            yield from _leads(inner, lead)
            lead += _shortest(inner)
        else:
            lead += _shortest([(code, value)])
            yield lead, ""


def _shortest(tree: Any) -> str:
    out = ""
    for code, value in tree:
        if code is codes.LITERAL:
            out += chr(value)
        elif code is codes.NOT_LITERAL:
            out += "a" if value != ord("a") else "b"
        elif code is codes.ANY:
            out += "a"
        elif code is codes.IN:
            out += next(_of_set(value), "a")
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            out += _shortest(value[2]) * value[0]
        elif code is codes.SUBPATTERN:
            out += _shortest(value[-1])
        elif code is codes.ATOMIC_GROUP:
            out += _shortest(value)
        elif code is codes.BRANCH:
            out += min((_shortest(branch) for branch in value[1]), key=len)
    return out


_CANDIDATES = "ax1 .,;:-_#=<>[](){}|/\\'\"`~*+?!@&%$^\t\néßÄ中\u2013"


def _of_set(items: Any) -> Iterator[str]:
    """Some characters of a set, tried out."""
    literals = [chr(value) for code, value in items if code is codes.LITERAL]
    ranges = [chr(value[0]) for code, value in items if code is codes.RANGE]
    if not (items and items[0][0] is codes.NEGATE):
        yield from (sign for sign in literals + ranges)
    classes = {value for code, value in items if code is codes.CATEGORY}
    negated = bool(items) and items[0][0] is codes.NEGATE
    for sign in _CANDIDATES:
        inside = sign in literals or any(_in_category(sign, one) for one in classes)
        inside |= any(low <= ord(sign) <= high for code, (low, high) in _ranges(items))
        if inside != negated:
            yield sign


def _ranges(items: Any) -> list[Any]:
    return [item for item in items if item[0] is codes.RANGE]


def _in_category(sign: str, category: Any) -> bool:
    pattern = {
        codes.CATEGORY_DIGIT: r"\d",
        codes.CATEGORY_NOT_DIGIT: r"\D",
        codes.CATEGORY_SPACE: r"\s",
        codes.CATEGORY_NOT_SPACE: r"\S",
        codes.CATEGORY_WORD: r"\w",
        codes.CATEGORY_NOT_WORD: r"\W",
    }[category]
    return re.match(pattern, sign) is not None


def _signs(tree: Any) -> Iterator[str]:
    for code, value in tree:
        if code is codes.LITERAL:
            yield chr(value)
        elif code in (codes.ANY, codes.NOT_LITERAL):
            yield "a"
        elif code is codes.IN:
            for number, sign in enumerate(_of_set(value)):
                if number >= 4:
                    break
                yield sign
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield from _signs(value[2])
        elif code is codes.SUBPATTERN:
            yield from _signs(value[-1])
        elif code is codes.ATOMIC_GROUP:
            yield from _signs(value)
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from _signs(branch)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _signs(value[1])
