"""Source code: the text unchanged, with locators for functions and classes.

tree-sitter finds functions and classes; without it, or for other languages, there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import accumulate, islice
from typing import Any, Final

from ketrag_fast.readers.file_types import BY_SUFFIX, LANGUAGES
from ketrag_fast.readers.many_places import EACH, MOST
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.readers.titles import cut_path
from ketrag_fast.types import Document
from ketrag_fast.types.locations import Locator

LARGEST: Final = 10_000_000
"""Maximum length of a file that is parsed, in characters; longer files are usually generated."""
_DEEPEST: Final = 60
_BLOCK: Final = 1024
_INNER: Final = bytes(range(0x80, 0xC0))
"""UTF-8 continuation bytes, which are left out when code points are counted."""
_GRAMMARS: Final = {
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "rust": ("tree_sitter_rust", "language"),
    "java": ("tree_sitter_java", "language"),
    "go": ("tree_sitter_go", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
}
_NAMED: Final = frozenset(
    (
        "function_definition",
        "function_declaration",
        "generator_function_declaration",
        "function_item",
        "method_definition",
        "method_declaration",
        "constructor_declaration",
        "class_definition",
        "class_declaration",
        "abstract_class_declaration",
        "class_specifier",
        "struct_specifier",
        "struct_item",
        "enum_item",
        "enum_declaration",
        "enum_specifier",
        "interface_declaration",
        "record_declaration",
        "trait_item",
        "impl_item",
        "mod_item",
        "macro_definition",
        "type_declaration",
        "type_spec",
        "namespace_definition",
        "internal_module",
    )
)
_LEADING: Final = frozenset(("comment", "line_comment", "block_comment", "attribute_item"))
"""Kinds of nodes that belong to the definition below them."""
_WRAPPERS: Final = frozenset(("decorated_definition", "export_statement", "template_declaration"))


def read_code(file: SourceFile) -> Iterator[Item]:
    """Yield the file as one document, with its functions and classes."""
    return _read(file, symbols)


def read_plain_code(file: SourceFile) -> Iterator[Item]:
    """Yield the file as one document without functions and classes.

    It reads source of other kinds, and of any kind if the parser takes too long.

    tree-sitter takes quadratic time on some files with very many errors.
    """
    return _read(file, lambda text, language: ())


def _read(file: SourceFile, symbols_of: Callable[[str, str], Iterable[Locator]]) -> Iterator[Item]:
    data = file.read_bytes()
    if not data.strip():  # empty files such as `__init__.py` are not failures
        return
    text = file.text(data)
    language = BY_SUFFIX.get(file.suffix, "code")
    locators = [Locator(0, len(text), "code", 0), Locator(0, len(text), "lines", 1)]
    most, some = max(MOST, len(text) // EACH) - len(locators), False
    if language in _GRAMMARS and len(text) <= LARGEST:
        found = iter(symbols_of(text, language))
        locators += islice(found, most)
        some = next(found, None) is not None
    name = file.id.rpartition("/")[2]
    yield Document(
        file.id, text, name, {"language": language} if language in LANGUAGES else {}, tuple(locators)
    )
    if some:
        yield file.partial(f"only its first {most:,} functions and classes are used as locations")


@cache
def _parser(language: str) -> Any:
    """Return the parser of a language, or None if its grammar is not installed."""
    module, function = _GRAMMARS[language]
    try:
        tree_sitter = import_module("tree_sitter")
        grammar = tree_sitter.Language(getattr(import_module(module), function)())
    except ImportError:
        return None
    return tree_sitter.Parser(grammar)


def symbols(text: str, language: str) -> Iterator[Locator]:
    """Yield locators of functions, classes and the like, with the names of the enclosing ones.

    A definition begins with the comments, decorators and attributes directly above it, and with its
    indentation.
    """
    parser = _parser(language)
    if parser is None:
        return
    data = text.encode("utf-8", "surrogatepass")
    tree = parser.parse(data)
    place = _Offsets(text, data)
    pending: list[tuple[Any, int, tuple[str, ...], int, Any]] = [(tree.root_node, 0, (), 0, None)]
    while pending:
        node, start, path, depth, outer = pending.pop()
        inner = path
        around = (start, node.end_byte) if node.type in _WRAPPERS else None
        if node.type in _NAMED:
            name = _name(node)
            if name:
                inner = (*path, name)
                first, last = outer if outer is not None else (start, node.end_byte)
                yield Locator(place(_line_start(data, first)), place(last), "symbol", cut_path(inner))
        if depth < _DEEPEST:
            children = [(child, at, inner, depth + 1, around) for child, at in _with_starts(node)]
            pending.extend(reversed(children))


def _line_start(data: bytes, at: int) -> int:
    """Return the start of a line if only blanks are before an offset in it, else the offset."""
    start = at
    while start and data[start - 1] in b" \t":
        start -= 1
    return start if not start or data[start - 1] == 10 else at


def _with_starts(node: Any) -> Iterator[tuple[Any, int]]:
    """Yield the children of a node and the start of each, that of the comments directly above it if any."""
    start: int | None = None
    below = node.start_point[0] - 1
    for child in node.named_children:
        row = child.start_point[0]
        if child.type in _LEADING:
            if row > below or start is not None:  # else it is behind code on its line
                start = child.start_byte if start is None or row > below + 1 else start
            yield child, child.start_byte
        else:
            yield child, child.start_byte if start is None or row > below + 1 else start
            start = None
        below = child.end_point[0]


def _name(node: Any) -> str:
    found = node.child_by_field_name("name") or node.child_by_field_name("type")
    declarator = node.child_by_field_name("declarator")
    while found is None and declarator is not None:
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            found = declarator
        declarator = inner
    text = found.text.decode("utf-8", "replace") if found is not None and found.text else ""
    return " ".join(text.split())[:100]


class _Offsets:
    """Convert byte offsets to code point offsets."""

    def __init__(self, text: str, data: bytes) -> None:
        self._plain = len(text) == len(data)
        self._data = data
        self._known = [0]
        if not self._plain:
            blocks = (data[at : at + _BLOCK].translate(None, _INNER) for at in range(0, len(data), _BLOCK))
            self._known += accumulate(map(len, blocks))

    def __call__(self, byte: int) -> int:
        if self._plain:
            return byte
        block = byte // _BLOCK
        return self._known[block] + len(self._data[block * _BLOCK : byte].translate(None, _INNER))
