"""Search for people and assistants: hits with places and snippets, and exact matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast import _core
from ketrag_fast.query.hit_places import place_fields
from ketrag_fast.query.inspect import document_title
from ketrag_fast.query.limits import Clock
from ketrag_fast.query.open_generation import FilterMask, Opened, mask_of
from ketrag_fast.query.plan import plan_query
from ketrag_fast.query.query import Query
from ketrag_fast.query.retrieval import run_plan
from ketrag_fast.query.snippets import Snippets
from ketrag_fast.query.source_paths import SourceFile, SourcePaths, without_part
from ketrag_fast.systems.shared.row_text import span_of
from ketrag_fast.types import Context, Files, Hit, Hits, Match, Passage, Place

if TYPE_CHECKING:
    from ketrag_fast.query.grep import FoundLine

Globs = str | Sequence[str] | None
_POSITION: Final = ("lines", "page", "cell", "time")
"""Fields of a place that say where in a file it is."""


@dataclass(frozen=True)
class Searcher:
    """Searches one opened generation; `folder` is that of its tables."""

    opened: Opened
    folder: Path
    paths: SourcePaths = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "paths", SourcePaths(self.folder))

    @property
    def units(self) -> Mapping[str, NDArray[Any]]:
        """Arrays of the stage `units`."""
        return self.opened.generation.stages["units"]

    # ------------------------------------------------------------ ranked

    def search(
        self,
        path: Path,
        query: Query,
        count: int,
        globs: Globs,
        pattern: _core.Pattern | None,
    ) -> Hits:
        """Return the best `count` passages for a query, of those that globs and pattern leave."""

        def narrow(filtered: FilterMask | None, clock: Clock) -> FilterMask | None:
            fits = self._units(None if filtered is None else filtered.fits, globs)
            if pattern is not None:
                from ketrag_fast.query.narrowing import units_of_pattern

                fits = units_of_pattern(self.opened, pattern, fits, clock.left)
            return filtered if fits is None else mask_of(fits)

        narrows = globs is not None or pattern is not None
        plan = plan_query(self.opened, path, query, narrow=narrow if narrows else None)
        context = run_plan(plan, [query.text], quoted=False)[0][0]
        return self.hits(context, count, plan.ranked_text(query.text))

    def hits(self, context: Context, count: int, ranked: str) -> Hits:
        """Return the first `count` passages of a context as hits. They were ranked by the text `ranked`."""
        passages = context.passages[:count]
        files = self.paths.of(passage.document for passage in passages)
        snippets = Snippets(self.opened, ranked)
        return Hits(
            context.question,
            context.mode,
            tuple(self._hit(rank, one, snippets, files) for rank, one in enumerate(passages, 1)),
            context.reason,
            context.warnings,
            context.generation,
            context.nothing_fits,
        )

    def _hit(self, rank: int, passage: Passage, snippets: Snippets, files: Mapping[str, SourceFile]) -> Hit:
        text, location, title, start = passage.text, passage.location, passage.title, passage.start
        if passage.units:  # of neighbours that were found together, the best one is shown
            span = span_of(self.units, passage.unit)
            text, title, start = span.text, span.title, span.start
            location = self.opened.places.of_unit(passage.unit, span.start, span.end)
        place = place_fields(passage.document, files, location, title)
        first = None if place["lines"] is None else place["lines"][0]
        return Hit(
            **place,
            text_lines=self._text_lines(place, passage.document, start, text),
            rank=rank,
            score=passage.relevance,
            text=text,
            snippet=snippets.lines(text, first),
            unit=passage.unit,
        )

    def _text_lines(
        self, place: Mapping[str, Any], document: str, start: int, text: str
    ) -> tuple[int, int] | None:
        """Return the lines of the indexed text that a passage has, if it has no other position."""
        if any(place[field] is not None for field in _POSITION):
            return None
        number = self.opened.texts.numbers.get(document)
        if number is None:
            return None
        first = self.opened.texts.text(number).count("\n", 0, start) + 1
        return first, first + text.count("\n")

    def _units(self, fits: NDArray[np.bool_] | None, globs: Globs) -> NDArray[np.bool_] | None:
        """Return the units of a mask that are in documents which globs want."""
        documents = self._documents_of(globs)
        if documents is None:
            return fits
        texts = self.opened.texts
        rows = np.repeat(documents, np.diff(texts.first_row))
        units: NDArray[np.bool_] = rows[self.units["unit_document"]]
        return units if fits is None else units & fits

    def _documents_of(self, globs: Globs) -> NDArray[np.bool_] | None:
        if globs is None:
            return None
        from ketrag_fast.query.narrowing import documents_of_globs

        return documents_of_globs(self.opened, globs, self.paths)

    def _documents(self, filtered: FilterMask | None, globs: Globs) -> NDArray[np.bool_] | None:
        """Return the documents that a filter and globs leave; None for all."""
        wanted = self._documents_of(globs)
        if filtered is None or filtered.core is None:
            return wanted
        matches = self.opened.texts.wanted(filtered.fits)
        return matches if wanted is None else wanted & matches

    # ------------------------------------------------------------ exact

    def grep(
        self,
        pattern: _core.Pattern,
        filtered: FilterMask | None,
        globs: Globs,
        limit: int | None,
        check: Callable[[], object],
    ) -> list[Match]:
        """Return the lines that match a pattern, in index order."""
        from ketrag_fast.query.grep import matching_lines

        found = list(matching_lines(self.opened, pattern, self._documents(filtered, globs), limit, check))
        names = self.opened.texts.names
        files = self.paths.of(names[line.document] for line in found)
        return [self._match(line, files) for line in found]

    def counts(
        self,
        pattern: _core.Pattern,
        filtered: FilterMask | None,
        globs: Globs,
        check: Callable[[], object],
    ) -> dict[str, int]:
        """Return the number of matching lines of each file, or document without one, that has any."""
        from ketrag_fast.query.grep import matching_counts

        counted = matching_counts(self.opened, pattern, self._documents(filtered, globs), check)
        names = self.opened.texts.names
        files = self.paths.of(names[document] for document, _ in counted)
        found: dict[str, int] = {}
        for document, count in counted:
            name = names[document]
            key = files[name].path if name in files else name
            found[key] = found.get(key, 0) + count
        return found

    def _match(self, found: FoundLine, files: Mapping[str, SourceFile]) -> Match:
        number = found.line.number
        rows = self.rows(found.document)
        row = self.opened.texts.row_at(found.document, found.start)
        location = self.opened.places.of_rows([row], found.start, found.end)
        if number is not None:
            location["lines"] = [number, number]
        name = self.opened.texts.names[found.document]
        title = self._titles.get(found.document)
        if title is None:
            title = self._titles[found.document] = document_title(self.units, rows)
        place = place_fields(name, files, location, title)
        has_other = any(place[field] is not None for field in _POSITION)
        lines = None if has_other else (found.text_line, found.text_line)
        return Match(**place, text_lines=lines, line=found.line)

    @cached_property
    def _titles(self) -> dict[int, str]:
        return {}

    def rows(self, document: int) -> range:
        """Return the rows of a document in the documents' arrays."""
        first, last = self.opened.texts.first_row[document : document + 2].tolist()
        return range(first, last)

    def files(self, filtered: FilterMask | None, globs: Globs) -> Files:
        """Return the files of the documents that a filter and globs leave, in index order."""
        texts, wanted = self.opened.texts, self._documents(filtered, globs)
        specs = self.paths.specs()
        first: dict[str, int] = {}
        for at in range(len(texts)) if wanted is None else np.flatnonzero(wanted).tolist():
            name = texts.names[at]  # of the rows of a sheet only the first one
            first.setdefault(without_part(name) if name in specs else name, at)
        files = self.paths.of(texts.names[at] for at in first.values())
        found: dict[str, tuple[str, int]] = {}
        for name, at in first.items():
            file = files.get(texts.names[at])
            found.setdefault(name if file is None else file.path, (name, at))
        documents, numbers = zip(*found.values(), strict=True) if found else ((), ())

        def place(index: int) -> Place:
            number = numbers[index]
            title = document_title(self.units, self.rows(number))
            fields = place_fields(texts.names[number], files, {}, title)
            return Place(**{**fields, "document": documents[index], "lines": None, "part": ""})

        return Files(tuple(found), documents, place)
