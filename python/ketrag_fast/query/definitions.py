"""Names in source code: those that a text uses, and those that it defines, by keywords and signs around them.

Nothing is parsed, so every language with usual keywords works. Comments and strings count as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ketrag_fast import _core

NAME: Final = re.compile(r"[^\W\d]\w{2,}")
"""A name that is long enough to tell something: local variables such as `i` do not."""
_MODIFIER: Final = (
    r"(?:(?:pub(?:\([^()\n]*\))?|export|default|declare|async|static|public|private|protected|internal|open"
    r"|abstract|final|override|sealed|unsafe|extern|inline|local|virtual|constexpr|suspend|data|partial"
    r"|template[ \t]*<[^\n]*>)[ \t]+)*"
)
_KEYWORD: Final = (
    r"class|def|define|defmacro|defmodule|defp|defprotocol|enum|extension|fn|fun|func|function|impl|interface"
    r"|macro_rules!|module|namespace|newtype|object|package|protocol|record|struct|sub|trait|typedef|type|union"
)
_AFTER: Final = r"(?=[ \t]*(?:[(:{<=\[;,|!?]|->|$)|[ \t]+(?:extends|implements|is|do|for|where|with|as|of)\b)"
"""Signs and words that may follow the name in a definition. In prose other words follow: "class that has"."""
_VARIABLE: Final = r"const|static|let|val|var"
_QUALIFIED: Final = r"(?:[\w.:]*[.:]|\([^()\n]*\)[ \t]*)?"
_BY_KEYWORD: Final = re.compile(
    rf"^[ \t]*#?{_MODIFIER}(?:{_KEYWORD})(?:[ \t]*<[^\n>]*>)?[ \t*&]+{_QUALIFIED}([^\W\d]\w*)\b{_AFTER}"
    rf"|^{_MODIFIER}(?:{_VARIABLE})[ \t]+(?:mut[ \t]+)?([^\W\d]\w*)|^([A-Z][A-Z0-9_]{{2,}})\b[^=\n(]*=(?!=)",
    re.MULTILINE,
)
_HEAD: Final = re.compile(r"^([^\S\n]*+)([^\s(][^\n(]*+)\(([^\n]*+)$", re.MULTILINE)
"""The head of a function without a keyword: `int main(...)`, `public void read(...) {`."""
_TYPE: Final = re.compile(r"\S[\w \t*&:<>~\[\],.@?]*+")
"""The return type and the name before the parenthesis."""
_CONTROL: Final = frozenset(
    [
        "assert",
        "await",
        "case",
        "catch",
        "def",
        "do",
        "elif",
        "else",
        "except",
        "for",
        "fn",
        "fun",
        "func",
        "function",
        "if",
        "import",
        "let",
        "match",
        "new",
        "not",
        "raise",
        "return",
        "switch",
        "throw",
        "until",
        "unless",
        "use",
        "var",
        "while",
        "with",
        "yield",
        "const",
        "class",
        "enum",
        "struct",
        "union",
    ]
)


def defined_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield the names that a text of source code defines, each with the offset of its line.

    Examples:
        >>> list(defined_names("class Reader:\\n    def read(self):\\n        return parse(self)"))
        [(0, 'Reader'), (14, 'read')]
    """
    found = [
        (match.start(), name)
        for match in _BY_KEYWORD.finditer(text)
        if (name := next(filter(None, match.groups()))) not in _CONTROL
    ]
    for match in _HEAD.finditer(text):
        indent, head, after = match.groups()
        name = _last_word(head)
        before = head[: len(head) - len(name)]
        words = before.split()
        if not words or words[0] in _CONTROL or name in _CONTROL or before[-1:] not in " \t*&:~":
            continue
        if not name or name[0].isdigit() or not _TYPE.fullmatch(head):
            continue
        after = after.rstrip()
        if after.endswith("{") or (not indent and not after.endswith(";")):
            found.append((match.start(), name))
    yield from sorted(set(found))


def matching_definitions(text: str, query: str, most: int) -> list[tuple[int, str]]:
    """Return up to `most` definitions of a text of source code whose names share words with a query.

    At least half of the keywords in the name are keywords of the query; names that share more of them come
    first. Each has the offset of its line. Half was chosen on the twenty tasks of benches/tasks.py; no other
    share was compared.

    Examples:
        >>> matching_definitions("def read(): 1\ndef guess_json_utf(): 2", "guess the encoding of JSON", 3)
        [(14, 'guess_json_utf')]
    """
    asked = set(_core.lexical_keywords(query))
    found = []
    for offset, name in defined_names(text):
        every = set(_core.lexical_keywords(name))
        # The keywords of `merge_cookies` are its words and the whole, which contains them.
        words = {word for word in every if not any(other != word and other in word for other in every)}
        shared = len(words & asked)
        if shared and 2 * shared >= len(words):
            found.append((-shared, len(words), offset, name))
    chosen: dict[str, int] = {}
    for _, _, offset, name in sorted(found):
        chosen.setdefault(name, offset)
    return [(offset, name) for name, offset in list(chosen.items())[:most]]


def _last_word(text: str) -> str:
    """Return the letters, digits and underscores at the end of a text."""
    at = len(text)
    while at and (text[at - 1].isalnum() or text[at - 1] == "_"):
        at -= 1
    return text[at:]
