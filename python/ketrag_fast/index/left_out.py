"""Files of the sources that have no documents: exact searches read those with text from the disk.

An index leaves out what a program generated, what its readers cannot read, and what is ignored. An exact
search must find the lines that a search of the files finds, so it reads the text files among these. It lists
the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from ketrag_fast._core import decode_text
from ketrag_fast.base.scopes import paths_in
from ketrag_fast.query.narrowing import match_paths
from ketrag_fast.query.source_paths import SourceFile, place_fields
from ketrag_fast.readers import SourceFile as FileToRead
from ketrag_fast.readers.decode import NOT_TEXT, mark_of
from ketrag_fast.readers.file_types import BINARY
from ketrag_fast.readers.repository import KEYS, is_pointer
from ketrag_fast.records import dataclass
from ketrag_fast.storage import read_only
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.source_files import escaped, root_of
from ketrag_fast.storage.source_table import open_sources
from ketrag_fast.storage.source_trust import source_trust
from ketrag_fast.types import Failure, Match, ShownLine
from ketrag_fast.types.documents import FORMAT, IGNORED

if TYPE_CHECKING:
    from ketrag_fast import _core
    from ketrag_fast.index.state import IndexState
    from ketrag_fast.query.search import Globs
    from ketrag_fast.storage.known_files import KnownFile

_MOST: Final = 64 << 20
"""Maximum bytes of files that one search reads, in the order of their paths; they take 0.02 s per MB."""
_HEAD: Final = 8192
"""Bytes at the beginning of a file by which binary files are recognised."""
_POINTER: Final = 1024
"""Maximum size in bytes of a pointer to a file in Git's large file storage."""
_BINARY: Final = "binary"
_TOO_LARGE: Final = f"too large: a search reads {_MOST >> 20} MiB of the files that are not indexed"


class _Looked(NamedTuple):
    """A file without documents, its source, and why it is not searched; None if it is."""

    known: KnownFile
    source: str
    file: FileToRead
    why: str | None


@dataclass(frozen=True, slots=True)
class LeftOutFiles:
    """The files of an index that have no documents, as the owner of the index sees them."""

    state: IndexState
    globs: Globs
    only: str | None
    """As in `Index.grep`."""

    def lines(self, pattern: _core.Pattern, most: int | None, check: Callable[[], object]) -> list[Match]:
        """Return at most `most` matching lines of the text files. `check` is called before each file."""
        from ketrag_fast.base.packed_texts import packed_texts

        limit = 1 << 62 if most is None else most
        found: list[Match] = []
        for one in self._looked():
            check()
            left = limit - len(found)
            text = None if one.why is not None or not left else _text_of(one.file)
            if text is None:
                continue
            name = one.known.file
            place = {name: SourceFile(escaped(one.known.path), one.source, None)}
            for _, before, _, _, shown, cut, marks in pattern.lines(packed_texts([text]), left, left):
                line = before + 1
                fields = place_fields(name, place, {"lines": [line, line]}, name.rpartition("/")[2])
                found.append(Match(**fields, line=ShownLine(shown, tuple(marks), line, cut)))
        return found

    def unsearched(self) -> list[Failure]:
        """Return the files that exact searches do not read, with the reasons; ignored folders as a whole."""
        noted = [one for one in read_only.left_out(Layout(self.state.path)) if one.code == IGNORED]
        wanted = frozenset(paths_in(self.only, match_paths(self.globs, [one.document for one in noted])))
        looked = ((one.known.file, one.why) for one in self._looked())
        found = [Failure(name, FORMAT, why) for name, why in looked if why is not None]
        return [*(one for one in noted if one.document in wanted), *found]

    def _looked(self) -> Iterator[_Looked]:
        """Yield the files without documents in the sources that may be read."""
        layout, settings = Layout(self.state.path), self.state.opened.settings
        if not layout.tables.is_file():
            return
        with open_sources(layout.tables) as tables:
            specs = {row.number: row.spec for row in tables.sources() if row.kind == "path"}
            every = tables.files_without_documents()
        trust, left = source_trust(layout), _MOST
        wanted = frozenset(match_paths(self.globs, [one.path for one in every]))
        names = frozenset(paths_in(self.only, [one.file for one in every]))
        roots = {spec: root_of(spec, follow=settings.follow_links) for spec in specs.values()}
        for one in every:
            spec = specs.get(one.source)
            if spec is None or one.path not in wanted or one.file not in names or not trust.allows(spec):
                continue
            file = FileToRead(Path(one.path), one.file, settings.fallback_encoding, root=roots[spec])
            why = _BINARY if _is_known_as_binary(one) else _why_not(file)
            if why is None and one.size > left:
                why = _TOO_LARGE
            left -= one.size if why is None else 0
            yield _Looked(one, spec, file, why)


def reasons_of(unsearched: Iterable[Failure]) -> str:
    """Return how many files were not searched for which reason; empty if there are none.

    Examples:
        >>> reasons_of([Failure("a", IGNORED, "hidden"), Failure("b", FORMAT, "binary")])
        '1 ignored or hidden, 1 binary'
    """
    kinds = ("ignored or hidden" if one.code == IGNORED else one.message for one in unsearched)
    return ", ".join(f"{count:,} {kind}" for kind, count in Counter(kinds).items())


def _is_known_as_binary(known: KnownFile) -> bool:
    """Return whether a build found a file to be binary; thousands of pictures are not opened for a search."""
    named = PurePosixPath(known.file).suffix.lower() in BINARY and known.size > _POINTER
    return any(one.message.startswith(NOT_TEXT) or (one.code == FORMAT and named) for one in known.notes)


def _why_not(file: FileToRead) -> str | None:
    """Return why a file is not searched; None if it is."""
    if file.suffix in KEYS:
        return "a key or a certificate"
    try:
        head = file.head(_HEAD)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if is_pointer(head):
        return "a Git LFS pointer"
    return _BINARY if b"\0" in head and mark_of(head)[1] is None else None


def _text_of(file: FileToRead) -> str | None:
    """Return the text of a file; None if it is binary or cannot be read."""
    try:
        data = file.read_bytes()
    except OSError:
        return None
    length, encoding = mark_of(data)
    if encoding is not None:
        return str(data[length:], encoding, "replace")
    return None if b"\0" in data else decode_text(data)[0]
