"""Lines and texts of files that have changed, and that are not indexed yet: they are read from the files.

A query that would take too long to index changed files first answers without them. Exact searches need no
index: they read these files as a build does, within their source and under the same rights.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.base.filters.condition import FieldComparison
from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import InputError, UnknownName
from ketrag_fast.query.source_paths import SourceFile, place_fields
from ketrag_fast.records import dataclass
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.source_files import base_of, root_of
from ketrag_fast.types import Document, Excerpt, Match, ShownLine
from ketrag_fast.types.locations import location_of, sort_locators

if TYPE_CHECKING:
    from ketrag_fast import _core
    from ketrag_fast.base.filters import Condition
    from ketrag_fast.index.state import IndexState

_MOST: Final = 64 << 20
"""Maximum bytes of files that one call reads, in the order of their paths; plain files take 0.02 s per MB."""
_PLAIN: Final = 1 << 20
"""Bytes of a file that is searched for words as it is on the disk."""
_FILES: Final = 12
"""Files with most words whose lines are shown; a result of the MCP server has room for as many."""
_LINES_OF_FILE: Final = 3
_LONGEST_LINE: Final = 300
_LINES: Final = 20
"""Number of lines of an excerpt that is requested by its first line alone, as in `query.excerpts`."""


@dataclass(frozen=True, slots=True)
class UnindexedFiles:
    """The files of an index that have changed since they were indexed, or are new.

    Attributes:
        state: The index as its owner sees it.
        permitted: The index of the documents that the caller may see.
        conditions: What the metadata of a document must meet: the filter and the rights of the caller.
    """

    state: IndexState
    permitted: IndexState
    conditions: Sequence[Condition]

    def lines(self, pattern: _core.Pattern, globs: Any, only: str | None, most: int | None) -> list[Match]:
        """Return at most `most` matching lines of the files; `globs` and `only` are as in `Index.grep`."""
        from ketrag_fast.base.packed_texts import packed_texts
        from ketrag_fast.base.scopes import paths_in
        from ketrag_fast.query.narrowing import match_paths

        texts = self._read(match_paths(globs, self.state.unindexed))
        names = frozenset(paths_in(only, [document.id for _, document in texts]))
        texts = [row for row in texts if row[1].id in names]
        packed = packed_texts([document.text for _, document in texts])
        each = 1 << 62 if most is None else most
        found = []
        for number, before, start, end, text, cut, marks in pattern.lines(packed, each, each):
            file, document = texts[number]
            place = _place(file, document, start, end)
            at = _line_in_file(document, start)
            place["lines"] = place["lines"] if at is None else (at, at)
            has_other = any(place[name] is not None for name in ("lines", "page", "cell", "time"))
            shown = ShownLine(text, tuple(marks), at, cut)
            found.append(
                Match(**place, text_lines=None if has_other else (before + 1, before + 1), line=shown)
            )
        return found

    def lines_with_words(self, words: Sequence[str], most: int) -> list[Match]:
        """Return lines that contain some of the words, of the files that contain most of them.

        The files are searched as they are on the disk, and only the best ones are read as a build reads them.
        """
        wanted = {word.lower(): word.lower().encode("utf-8") for word in words}
        inside: dict[str, list[str]] = {}
        for spec, files in self._by_source(self.state.unindexed).items():
            root = root_of(spec, follow=bool(self.state.opened.settings.follow_links))
            for _, path in files:
                with suppress(OSError):
                    data = read_regular(path, _PLAIN, root).lower()
                    inside[str(path)] = [word for word, encoded in wanted.items() if encoded in data]
        counts = Counter(word for own in inside.values() for word in own)
        rarity = {word: log((len(inside) + 1) / count) for word, count in counts.items()}
        scores = sorted((-sum(rarity[word] for word in own), path) for path, own in inside.items() if own)
        best = [path for _, path in scores[:_FILES]]
        texts = sorted(self._read(best), key=lambda one: best.index(str(one[0].path)))
        found: list[Match] = []
        for file, document in texts:
            found += _lines_with(file, document, rarity, most - len(found))
        return found

    def excerpt(self, name: str, lines: tuple[int, int | None] | None) -> Excerpt | None:
        """Return lines of a file, which its path or the end of it names; None if it is not one of these.

        Raises UnknownName if the caller may not see the file, or if it has no such line.
        """
        path = os.path.abspath(os.path.expanduser(name))  # noqa: PTH100, PTH111 - links stay, no error
        paths = [one for one in self.state.unindexed if path == one or one.endswith(f"/{name}")]
        if len(paths) != 1:
            return None
        texts = self._read(paths)
        if not texts:
            return None
        file, document = texts[0]
        rows = [row.removesuffix("\r") for _, one in texts for row in one.text.removesuffix("\n").split("\n")]
        begin = _line_in_file(document, 0) if len(texts) == 1 else None
        place = _place(file, document, 0, len(document.text))
        first = begin or 1
        total = first + len(rows) - 1
        low, high = (first, total) if lines is None else (lines[0], lines[1] or lines[0] + _LINES - 1)
        if low > total:
            raise UnknownName(f"{name} has no line {low:,}", hint=f"its text ends with line {total:,}")
        low, high = max(low, first), min(high, total)
        place["lines"] = None if begin is None else (low, high)
        return Excerpt(**place, text="\n".join(rows[low - first : high - first + 1]), first=low, total=total)

    def _read(self, paths: Iterable[str]) -> list[tuple[SourceFile, Document]]:
        """Return the documents of files that the caller may see."""
        from ketrag_fast.building.sources import read_files

        found: list[tuple[SourceFile, Document]] = []
        for spec, files in self._by_source(paths).items():
            known = {name: SourceFile(str(path), spec, None) for name, path in files}
            for name, document in read_files(spec, files, self.state.opened.settings):
                found.append((known[name], document))
        return [found[at] for at in self._visible([document for _, document in found])]

    def _visible(self, documents: Sequence[Document]) -> list[int]:
        """Return the positions of the documents whose metadata meets all conditions."""
        if not self.conditions:
            return list(range(len(documents)))
        from ketrag_fast.base.filters import Columns  # it imports NumPy
        from ketrag_fast.storage.checksum import metadata_json

        rows = [json.loads(metadata_json(one)) for one in documents]
        visible = set(range(len(rows)))
        for condition in self.conditions:
            # The last row has all fields, because a field that no document has is an error elsewhere.
            columns = Columns([*rows, dict(_fields(condition))])
            try:
                marks = columns.fitting(condition, names=False).tolist()
            except InputError:  # values of another type: nobody may see the documents before they are indexed
                return []
            visible &= {at for at in visible if marks[at]}
        return sorted(visible)

    def _by_source(self, paths: Iterable[str]) -> dict[str, list[tuple[str, Path]]]:
        """Return ids and paths of files by source, without those whose stored documents are forbidden."""
        from ketrag_fast.storage.source_table import open_sources

        left = _MOST
        found: defaultdict[str, list[tuple[str, Path]]] = defaultdict(list)
        with open_sources(Layout(self.state.path).tables) as tables:
            specs = [row.spec for row in tables.sources() if row.kind == "path"]
            stored = tables.documents_of_paths(paths) if self.conditions else {}
        numbers = self.permitted.opened.texts.numbers
        for path in sorted(paths):
            spec = next((one for one in specs if Path(path).is_relative_to(base_of(one))), None)
            size = _size(path)
            if spec is None or size is None or size > left:
                continue
            if not all(name in numbers for name in stored.get(path, ())):
                continue
            left -= size
            base = base_of(spec)
            inner = Path(path).relative_to(base).as_posix() if base.is_dir() else base.name
            found[spec].append((inner, Path(path)))
        return found


def _lines_with(
    file: SourceFile, document: Document, rarity: Mapping[str, float], most: int
) -> Iterator[Match]:
    """Yield the lines of a document that contain most of the words, the rare ones first; at most `most`."""
    lines, at = [], 0
    for number, text in enumerate(document.text.split("\n")):
        score = sum(weight for word, weight in rarity.items() if word in text.lower())
        if score:
            lines.append((-score, number, at, text))
        at += len(text) + 1
    for _, number, start, text in sorted(sorted(lines)[: min(_LINES_OF_FILE, most)], key=lambda row: row[1]):
        place = _place(file, document, start, start + len(text))
        own = _line_in_file(document, start)
        line = number + 1 if own is None else own
        place["lines"] = (line, line)
        shown = text[:_LONGEST_LINE]
        yield Match(**place, text_lines=None, line=ShownLine(shown, (), own, len(shown) < len(text)))


def _fields(condition: Condition) -> Iterator[tuple[str, Any]]:
    """Yield each field of a condition with a value that it is compared with."""
    if isinstance(condition, FieldComparison):
        yield condition.field, condition.values[0] if condition.values else True
    else:
        for part in condition.parts:
            yield from _fields(part)


def _place(file: SourceFile, document: Document, start: int, end: int) -> dict[str, Any]:
    location = location_of(sort_locators(document.locators), start, end)
    return place_fields(document.id, {document.id: file}, location, document.title)


def _line_in_file(document: Document, at: int) -> int | None:
    """Return the line of the file that is at an offset of a text; None if the text is not verbatim."""
    for one in document.locators:
        if one.kind == "lines" and one.start <= at < max(one.end, at + 1):
            return int(one.value) + document.text.count("\n", one.start, at)
    return None


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - of a path as text
    except OSError:
        return None
