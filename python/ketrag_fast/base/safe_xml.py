"""Parse XML with expat in bounded memory.

Entity declarations are rejected, so nothing is expanded or fetched. A caller may permit short entities that
refer to no others, which documents define for the names and versions that they repeat.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from html.entities import html5
from itertools import chain
from typing import Any, Final
from xml.parsers import expat

from ketrag_fast.errors import DocumentError

DEEPEST: Final = 400
"""Nested elements of a file, unless its reader allows more."""
_LONGEST_TAG: Final = 20_000_000
"""Maximum number of bytes of one tag or comment, which the parser holds as a whole."""
_LONGEST_ENTITY: Final = 500
"""Maximum number of characters of an entity's value. DocBook defines names, versions and single elements."""
_EXPANSION: Final = 10
"""Maximum ratio of the text to the bytes of a file that defines entities, above `_ALWAYS` characters."""
_ALWAYS: Final = 1_000_000
_REFERENCE: Final = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);|#)|%")
_WRONG: Final = re.compile(rb"\s*<\?xml[^>\0]{0,100}encoding\s*=\s*[\"'](?:utf-?16|utf-?32|ucs-?[24])", re.I)
"""A declaration of 16 or 32 bits for each character, in bytes that have 8: programs write it with UTF-8."""


class Handler:
    """A receiver of XML events. Names have no namespace prefixes."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""

    def end(self, name: str) -> None:
        """Handle the end of an element."""

    def text(self, text: str) -> None:
        """Handle text."""


def local(name: str) -> str:
    """Return a name without its namespace prefix."""
    return name.rpartition(":")[2] if ":" in name else name


def parse(
    pieces: Iterable[bytes], handler: Handler, name: str, *, deepest: int = DEEPEST, entities: bool = False
) -> None:
    """Feed XML to a handler. Raises DocumentError if it is not XML or declares entities.

    With `entities`, short ones are expanded, and references to those outside the file stay as they are.
    """
    for _ in steps(pieces, handler, name, deepest=deepest, entities=entities):
        pass


def _whole(pieces: Iterable[bytes], parser: expat.XMLParserType, name: str) -> Iterator[bytes]:
    """Yield pieces that are at least as long as the tag which the parser has not finished.

    Expat before 2.6 reads an unfinished tag again with each piece, which takes quadratic time.
    """
    held: list[bytes] = []
    size = fed = unfinished = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size < unfinished:
            continue
        yield held[0] if len(held) == 1 else b"".join(held)
        fed += size
        held, size = [], 0
        unfinished = fed - max(parser.CurrentByteIndex, 0)
        if unfinished > _LONGEST_TAG:
            raise DocumentError(f"{name}: a tag is longer than {_LONGEST_TAG:,} bytes")
    if held:
        yield b"".join(held)


def _encoding(first: bytes) -> str | None:
    """Return the encoding of XML whose declaration may be wrong; None if the parser recognises it."""
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    return "utf-8" if _WRONG.match(first) else None


def _permit_entities(
    parser: expat.XMLParserType, handler: Handler, name: str, refuse: Callable[..., int]
) -> None:
    """Expand short entities that refer to no others; write references to entities elsewhere as they are."""
    characters = 0

    def count(text: str) -> None:
        nonlocal characters
        characters += len(text)
        if characters > _ALWAYS + _EXPANSION * max(parser.CurrentByteIndex, 0):
            raise DocumentError(f"{name}: its entities expand to more than {_EXPANSION} times its size")
        handler.text(text)

    def declare(_name: str, is_parameter: bool, value: str | None, *_: Any) -> None:
        if is_parameter or value is None:  # never read
            return
        if len(value) > _LONGEST_ENTITY or _REFERENCE.search(value):
            refuse()
        parser.CharacterDataHandler = count

    def skip(context: str, *_: Any) -> int:
        handler.text(html5.get(f"{context};", f"&{context};"))  # DocBook has names of characters as HTML does
        return 1

    def skip_undefined(own: str, is_parameter: bool) -> None:
        if not is_parameter:
            skip(own)

    parser.EntityDeclHandler = declare
    parser.ExternalEntityRefHandler = skip
    parser.SkippedEntityHandler = skip_undefined


def steps(
    pieces: Iterable[bytes], handler: Handler, name: str, *, deepest: int = DEEPEST, entities: bool = False
) -> Iterator[None]:
    """Feed XML to a handler and yield after each piece, so that results can be used early."""
    rest = iter(pieces)
    first = next(rest, b"")
    parser = expat.ParserCreate(_encoding(first))
    parser.buffer_text = True
    parser.buffer_size = 1 << 16
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > deepest:
            raise DocumentError(f"{name}: XML is nested more than {deepest:,} levels deep")
        if ":" in "".join(attributes):  # with a prefix before without, if both occur
            ordered = sorted(attributes.items(), key=lambda entry: ":" in entry[0])
            attributes = {local(key): value for key, value in ordered}
        handler.start(local(tag), attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        handler.end(local(tag))

    def refuse(*_: Any) -> int:
        raise DocumentError(f"{name}: XML with entity declarations is not accepted")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = handler.text
    parser.EntityDeclHandler = refuse
    parser.UnparsedEntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    if entities:
        _permit_entities(parser, handler, name, refuse)
    try:
        for piece in _whole(chain([first], rest), parser, name):
            parser.Parse(piece, False)
            yield
        parser.Parse(b"", True)
        yield
    except expat.ExpatError as error:
        raise DocumentError(f"{name} is not XML: {error}") from None
    except (ValueError, LookupError) as error:  # an unknown encoding
        raise DocumentError(f"{name} is not usable XML: {error}") from None
