"""Parse XML with expat in bounded memory.

Entity declarations are rejected, so nothing is expanded or fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from xml.parsers import expat

from ketrag_fast.errors import DocumentError

_DEEPEST: Final = 400


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


def parse(pieces: Iterable[bytes], handler: Handler, name: str) -> None:
    """Feed XML to a handler. Raises DocumentError if it is not XML or declares entities."""
    for _ in steps(pieces, handler, name):
        pass


def steps(pieces: Iterable[bytes], handler: Handler, name: str) -> Iterator[None]:
    """Feed XML to a handler and yield after each piece, so that results can be used early."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.buffer_size = 1 << 16
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise DocumentError(f"{name}: XML is nested more than {_DEEPEST} levels deep")
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
    try:
        for piece in pieces:
            parser.Parse(piece, False)
            yield
        parser.Parse(b"", True)
        yield
    except expat.ExpatError as error:
        raise DocumentError(f"{name} is not XML: {error}") from None
    except (ValueError, LookupError) as error:  # an unknown encoding
        raise DocumentError(f"{name} is not usable XML: {error}") from None
